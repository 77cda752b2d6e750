"""Outlets by HTTP say what their servers take, escaped as each needs it, and show no secret."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from streamgauge.errors import OutletError
from streamgauge.operators.rules.outlets import alertmanager
from streamgauge.operators.rules.outlets.outlet import trial_notification
from streamgauge.rules import (
    AlertsToAlertmanager,
    AlertsToMattermost,
    AlertsToNtfy,
    AlertsToSlack,
    AlertsToWebhook,
)

from ....cases import each
from .alerts import ALERT, EVIL, alert, one
from .servers import WebServer


@pytest.fixture
def web() -> Iterator[WebServer]:
    server = WebServer()
    yield server
    server.close()


def test_alertmanager_gets_labels_annotations_and_times(web: WebServer) -> None:
    outlet = AlertsToAlertmanager(f"{web.url}/am/", labels={"severity": "page"}, token="t0ken")
    before = datetime.now(UTC)
    outlet.send(one())
    outlet.send(one(alert("hall", "cleared", minute=5)))
    fired, cleared = (request.body[0] for request in web.requests)
    assert {request.path for request in web.requests} == {"/am/api/v2/alerts"}
    assert web.requests[0].headers["Authorization"] == "Bearer t0ken"
    labels = {"severity": "page", "alertname": "hot", "app": "iot", "kind": "threshold", "key": "hall"}
    assert fired["labels"] == cleared["labels"] == labels
    assert fired["annotations"]["description"] == "31 > 30" and fired["annotations"]["value"] == "31"
    # Event times that lie ahead of the clock are no later than now.
    starts, ends = (datetime.fromisoformat(fired[name]) for name in ("startsAt", "endsAt"))
    assert starts == min(datetime(2026, 6, 1, 12, tzinfo=UTC), starts) and starts <= ends
    assert ends >= before + timedelta(hours=23)
    over = datetime.fromisoformat(cleared["endsAt"])
    assert datetime.fromisoformat(cleared["startsAt"]) <= over <= datetime.now(UTC)


def test_alertmanager_gets_each_column_of_the_key_as_a_label(web: WebServer) -> None:
    outlet = AlertsToAlertmanager(web.url, labels={"severity": "page"})
    names = ("sensor", "kind", "severity", "room.name", "7th", "__x", "none", "straße")
    key = ("s-1", "tag", "low", "hall", 7, "y", None, True)
    outlet.send(one(replace(ALERT, key=key, key_names=names)))
    outlet.send(one(replace(ALERT, key=key, key_names=names, state="cleared")))
    fired, cleared = (request.body[0]["labels"] for request in web.requests)
    own = {"alertname": "hot", "app": "iot", "kind": "threshold", "severity": "page", "key": fired["key"]}
    columns = {"sensor": "s-1", "key_kind": "tag", "key_severity": "low", "room_name": "hall"}
    assert fired == {**own, **columns, "key_7th": "7", "key___x": "y", "stra_e": fired["stra_e"]}
    assert fired == cleared and fired["key"].startswith("s-1, tag, low, hall, 7, y, ")


def test_alertmanager_hears_again_of_what_is_on_and_of_what_ended_lately(
    web: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    outlet = AlertsToAlertmanager(web.url)
    outlet.send(one(*(alert(key) for key in "abcd")))
    outlet.send(one(alert("b", "cleared"), alert("c", "withdrawn"), alert("d", "cleared")))
    ends = {entry["labels"]["key"]: entry["endsAt"] for entry in web.requests[-1].body}
    outlet.send(one(alert("d", minute=1)))
    outlet.send(trial_notification())
    web.requests.clear()
    outlet.resend()
    (request,) = web.requests
    assert [entry["labels"]["key"] for entry in request.body] == ["a", "d", "b", "c"]
    assert [entry["endsAt"] for entry in request.body[2:]] == [ends["b"], ends["c"]]
    assert all(datetime.fromisoformat(entry["endsAt"]) > datetime.now(UTC) for entry in request.body[:2])
    monkeypatch.setattr(alertmanager, "OVER_LASTS", timedelta(0))
    outlet.resend()
    assert [entry["labels"]["key"] for entry in web.requests[-1].body] == ["a", "d"]


def test_alertmanager_hears_again_before_an_event_ends_by_itself() -> None:
    for lasts, seconds in (("24h", 60.0), ("4m", 60.0), ("2m", 30.0), ("4s", 1.0)):
        assert AlertsToAlertmanager("http://h", lasts=lasts).resend_seconds == seconds


def test_alertmanager_gets_what_began_and_ended_together_in_order(web: WebServer) -> None:
    AlertsToAlertmanager(web.url).send(one(alert("a"), alert("b"), alert("a", "cleared", 1)))
    assert [[entry["labels"]["key"] for entry in request.body] for request in web.requests] == [
        ["a", "b"],
        ["a"],
    ]


def test_a_test_of_alertmanager_is_marked_and_ends_by_itself(web: WebServer) -> None:
    AlertsToAlertmanager(web.url).send(trial_notification())
    (entry,) = web.requests[0].body
    assert entry["labels"]["test"] == "true" and "nothing has happened" in entry["annotations"]["description"]
    assert datetime.fromisoformat(entry["endsAt"]) < datetime.now(UTC) + timedelta(minutes=2)


@pytest.mark.parametrize(("kind", "entities"), [(AlertsToSlack, True), (AlertsToMattermost, False)])
def test_no_text_leaves_its_code_span(web: WebServer, kind: type[AlertsToSlack], entities: bool) -> None:
    kind(web.url).send(one(EVIL, replace(EVIL, state="cleared")))
    (request,) = web.requests
    (attachment,) = request.body["attachments"]
    for text in (request.body["text"], attachment["fallback"], *attachment["text"].split("\n")):
        assert re.fullmatch("`[^`\n\r\x1b]+`", text)
        assert not entities or not re.search("[<>]|&(?!amp;|lt;|gt;)", text)
    assert len(attachment["text"].split("\n")) == 2
    assert ("<!channel>" in attachment["text"]) != entities


def test_a_burst_is_one_message_that_says_how_many(web: WebServer) -> None:
    AlertsToSlack(web.url).send(one(*(alert(f"sensor-{number}") for number in range(50))))
    (request,) = web.requests
    assert request.body["text"] == "`iot: 50 alerts (50 fired)`"
    lines = request.body["attachments"][0]["text"].split("\n")
    assert "sensor-0 fired: 31 &gt; 30" in lines[0] and lines[-1] == "`and 30 more`" and len(lines) == 21
    assert request.body["attachments"][0]["color"] == "#c62828"


def test_ntfy_gets_json_in_which_nothing_is_a_header(web: WebServer) -> None:
    outlet = AlertsToNtfy(f"{web.url}/ops", priority=5, tags=["hall"], user="me", password="tr0ut")
    outlet.send(one(EVIL))
    outlet.send(one(alert("hall", "cleared")))
    fired, cleared = (request.body for request in web.requests)
    assert web.requests[0].path == "/" and web.requests[0].headers["Authorization"].startswith("Basic ")
    assert (fired["topic"], fired["priority"], fired["tags"]) == ("ops", 5, ["hall", "rotating_light"])
    assert "\n" not in fired["title"] + fired["message"] and "\\r\\nBcc" in fired["message"]
    assert "priority" not in cleared and cleared["title"] == "iot: hot hall cleared"
    outlet.send(one(*(replace(EVIL, why="é" * 900) for _ in range(100))))
    message = web.requests[2].body["message"]
    assert len(message.encode()) < 4_096 and message.endswith("more lines")


def test_a_webhook_gets_each_alert_by_itself(web: WebServer) -> None:
    outlet = AlertsToWebhook(f"{web.url}/hook", headers={"X-Key": "secret"})
    outlet.send(one(ALERT, alert("attic")))
    assert [request.body["key"] for request in web.requests] == ["hall", "attic"]
    assert web.requests[0].headers["Idempotency-Key"] == ALERT.id
    assert web.requests[0].headers["X-Key"] == "secret"
    outlet.send(trial_notification())
    assert web.requests[2].body["test"] is True


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "may_pass"), [(400, False), (404, False), (302, False), (429, True), (408, True), (503, True)]
)
def test_an_answer_says_whether_to_try_again_and_shows_no_secret(
    web: WebServer, answer: int, may_pass: bool
) -> None:
    web.always = answer
    outlet = AlertsToSlack(f"{web.url}/services/T0/s3cret", token="t0ken-t0ken", headers={"X": "h34der"})
    with pytest.raises(OutletError, match=f"it answered {answer}") as raised:
        outlet.send(one())
    assert raised.value.may_pass == may_pass
    shown = f"{raised.value} {outlet!r} {outlet.title}"
    assert not re.search("s3cret|t0ken|h34der", shown)


def test_a_wrong_password_is_named(web: WebServer) -> None:
    web.always = 401
    with pytest.raises(OutletError, match="it answered 401; check its user and password, or its token"):
        AlertsToAlertmanager(web.url, user="me", password="tr0ut").send(one())


def test_an_address_without_a_server_may_have_one_later(web: WebServer) -> None:
    web.close()
    with pytest.raises(OutletError) as raised:
        AlertsToNtfy(f"{web.url}/ops").send(one())
    assert raised.value.may_pass


def test_headers_that_can_not_be_sent_are_not_tried_again(web: WebServer) -> None:
    outlet = AlertsToWebhook(web.url, headers={"X-Key": "s3cret\nX-Other: 1"})
    with pytest.raises(OutletError, match="token can't be sent") as raised:
        outlet.send(one())
    assert not raised.value.may_pass and not web.requests


@each(
    ("make", "said"),
    [
        (lambda: AlertsToSlack("hooks/s3cret"), "slack: url must begin with http:// or https://$"),
        (lambda: AlertsToSlack("http://"), "slack: url is not an address of the web$"),
        (lambda: AlertsToSlack("http://h/", token="a\nb"), "token must be of plain letters"),
        (lambda: AlertsToSlack("http://h/", token="a", user="b"), "not both"),
        (lambda: AlertsToSlack("http://h/", group_by=["host"]), "group_by must be a list of app, rule"),
        (lambda: AlertsToSlack("http://h/", group_wait="soon"), "group_wait: 'soon' is not a duration"),
        (lambda: AlertsToSlack("http://h/", match=["rule"]), "match: a matcher must be like"),
        (lambda: AlertsToSlack("http://h/", silences=["rule"]), "silences must be a list of AlertSilence"),
        (lambda: AlertsToNtfy("https://ntfy.sh/"), "url must end with the topic"),
        (
            lambda: AlertsToNtfy("https://ntfy.sh/a", priority=6),
            "priority must be a number from 1 to 5, got 6",
        ),
        (lambda: AlertsToNtfy("https://ntfy.sh/a", tags="a"), "tags must be a list of strings"),
        (lambda: AlertsToAlertmanager("http://h", labels={"a b": "c"}), "labels must map names to strings"),
        (lambda: AlertsToAlertmanager("http://h", lasts="1"), "lasts: '1' is not a duration"),
        (lambda: AlertsToAlertmanager("http://h", lasts="3s"), "lasts must be at least 4s, got '3s'"),
    ],
)
def test_options_that_can_not_be_are_named(make, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make()
