"""Each alert leads to its picture on the page, in every outlet, whatever its key is called."""

from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import parse_qs, urlsplit

import pytest

import streamgauge as sg
from streamgauge.operators.rules.outlets.grouping import Notification
from streamgauge.operators.rules.outlets.page_links import LONGEST, page_link, time_in

PAGE = "https://gauge.example.org/ops/"
KEY = ("a&b <@x> |\n\"'`#?", None, 7)
NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
NOON_US = int(NOON.timestamp() * 1e6)


def alert(key: tuple[object, ...] = KEY, state: str = "fired", minutes: int = 5) -> sg.rules.Alert:
    since = NOON_US - minutes * 60_000_000
    figures = 31.0, 31.0, 31.0, 30.0
    names = ("host name", "floor", "n")
    times = NOON_US, since
    return sg.rules.Alert("hot", "threshold", state, key, *times, *figures, "31", "iot", key_names=names)  # type: ignore[arg-type]


def test_a_link_says_app_keys_span_zone_and_event() -> None:
    for minutes, span in ((5, "1h"), (60, "6h"), (400, "1d"), (1440, "7d"), (10_080, "")):
        one = alert(minutes=minutes)
        address = urlsplit(page_link(PAGE, one, "Asia/Tokyo"))
        query = parse_qs(address.query, keep_blank_values=True)
        assert address.path == "/ops/app/iot" and address.netloc == "gauge.example.org"
        assert query == {
            "span": [span],
            "zone": ["Asia/Tokyo"],
            "alert": [one.id],
            "key.host name": [KEY[0]],
            "key.n": ["7"],
        }
    assert "alert=" not in page_link(PAGE, alert(state="cleared"))
    assert not set(page_link(PAGE, alert())) & set(" <>|\"'`\n")
    assert len(page_link(PAGE, alert(key=("x" * 5_000, 1, 2)))) < LONGEST


def test_every_outlet_has_the_link() -> None:
    message, link = Notification([alert()]), page_link(PAGE, alert(), "Asia/Tokyo")
    options = {"page": PAGE, "zone": "Asia/Tokyo"}
    ntfy = sg.rules.AlertsToNtfy("https://ntfy.example.org/ops", **options).body(message)
    slack = sg.rules.AlertsToSlack("https://hooks.example.org/x", **options).body(message)
    manager = sg.rules.AlertsToAlertmanager("http://localhost:9093", **options)
    entry = manager.entry(alert(), NOON)
    mail = sg.rules.AlertsToEmail("localhost", sender="a@example.org", to=["b@example.org"], **options)
    assert (ntfy["click"], slack["attachments"][0]["title_link"], entry["generatorURL"]) == (link, link, link)
    assert link in mail.message(message).get_content()
    lines = mail.lines(Notification([alert()] * 30), mail.link)
    assert [line.endswith(link) for line in lines] == [True] * 20 + [False]
    for text in (ntfy["message"], slack["attachments"][0]["text"], entry["annotations"]["summary"]):
        assert "2026-07-01T21:00:00+09:00" in text


def test_each_of_several_alerts_has_its_link_where_all_fit() -> None:
    alerts = [alert(key=(key, None, 7)) for key in ("hall & attic", "cellar", "_b_ *c*")]
    links = [page_link(PAGE, one) for one in alerts]
    ntfy = sg.rules.AlertsToNtfy("https://ntfy.example.org/ops", page=PAGE)
    slack = sg.rules.AlertsToSlack("https://hooks.example.org/x", page=PAGE)
    mattermost = sg.rules.AlertsToMattermost("https://chat.example.org/x", page=PAGE)

    def texts(count: int) -> list[list[str]]:
        message = Notification([*alerts, *[alert(key=("x" * 100, None, 7))] * (count - 3)])
        bodies = [outlet.body(message)["attachments"][0]["text"] for outlet in (slack, mattermost)]
        return [text.split("\n") for text in (ntfy.body(message)["message"], *bodies)]

    plain, entities, brackets = (lines[1::2] for lines in texts(3))
    assert plain == links and brackets == [f"<{link}>" for link in links]
    assert entities == [f"<{link.replace('&', '&amp;')}>" for link in links]
    for lines in texts(20):  # the alerts come first
        assert len(lines) == 20 and not any("https://" in line for line in lines)
    for outlet in (ntfy, slack, mattermost):
        for message in (Notification([alerts[0]]), Notification(alerts)):
            assert outlet.body(message).get("click", links[0]) == links[0]
    assert links[0] not in ntfy.body(Notification([alerts[0]]))["message"]
    bare = sg.rules.AlertsToSlack("https://hooks.example.org/x").body(Notification(alerts))
    assert "<" not in bare["attachments"][0]["text"]


def test_without_a_page_there_is_no_link() -> None:
    message = Notification([alert()])
    ntfy = sg.rules.AlertsToNtfy("https://ntfy.example.org/ops").body(message)
    slack = sg.rules.AlertsToSlack("https://hooks.example.org/x").body(message)
    entry = sg.rules.AlertsToAlertmanager("http://localhost:9093").entry(alert(), NOON)
    assert "click" not in ntfy and "title_link" not in slack["attachments"][0] and "generatorURL" not in entry
    assert time_in(NOON_US, "UTC") == "2026-07-01T12:00:00+00:00"


def test_what_is_no_page_or_zone_is_refused() -> None:
    for options, message in (
        (
            {"page": "gauge.example.org"},
            "ntfy: page must begin with http:// or https://, got 'gauge.example.org'",
        ),
        ({"page": "javascript:x"}, "ntfy: page must begin with"),
        ({"zone": "Mars"}, "ntfy: zone must be a time zone, such as Europe/Berlin, got 'Mars'"),
    ):
        with pytest.raises(ValueError, match=message):
            sg.rules.AlertsToNtfy("https://ntfy.example.org/ops", **options)  # type: ignore[arg-type]
