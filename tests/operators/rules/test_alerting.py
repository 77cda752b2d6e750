"""Where alerts go: once each to files and topics, with patience to a webhook; and a feed that goes stale."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from streamgauge import StreamTester
from streamgauge.errors import SinkError
from streamgauge.operators.sinks.sink import Origin, keys_together
from streamgauge.rules import (
    Alert,
    Alerting,
    AlertsToFile,
    AlertsToKafka,
    AlertsToWebhook,
    CommandsToKafka,
    NewTerm,
    Threshold,
)

from ...waiting import until
from .plain import NOON, READINGS, WINDOWS, Kept, row, summaries

ALERT = Alert("hot", "threshold", "fired", ("a",), 60_000_000, 0, 31.0, 31.0, 31.0, 30.0, "31 > 30", "iot")
HOT = Threshold("hot", value="value", above=30, clear=25)


def test_an_alert_is_the_same_after_its_way_through_json() -> None:
    assert Alert.from_dict(json.loads(json.dumps(ALERT.to_dict()))) == ALERT
    several = replace(ALERT, key=("a", 1), value=None, lower=None, upper=None)
    assert Alert.from_dict(json.loads(json.dumps(several.to_dict()))) == several
    assert several.to_dict()["key"] == ["a", 1] and replace(ALERT, key=()).to_dict()["key"] is None
    changed = [replace(ALERT, key=("b",)), replace(ALERT, state="cleared"), replace(ALERT, at_us=1)]
    assert len({one.id for one in [ALERT, *changed, replace(ALERT, why="other words")]}) == 4


def test_alerts_and_commands_are_messages_of_one_key_in_order() -> None:
    commands = CommandsToKafka("commands", {"hot": {"fired": {"ac": "on"}, "cleared": {"ac": "off"}}})
    tester = StreamTester(
        READINGS, sinks=[Alerting([HOT], [AlertsToKafka("alerts"), commands], at="at")], start=NOON
    )
    tester.feed([row(minute, "a", value) for minute, value in enumerate([20, 31, 28, 25, 20, 40, 20, 20])])
    sent = tester.sent()
    said = [json.loads(message.value or b"") for message in sent]
    assert [(m.topic, m.key) for m in sent[:2]] == [("alerts", b"a"), ("commands", b"a")]
    assert [one["state"] for one in said[::2]] == ["fired", "cleared", "fired"]
    assert [one["command"] for one in said[1::2]] == [{"ac": "on"}, {"ac": "off"}, {"ac": "on"}]
    assert said[0]["at"] == "2026-06-01T12:01:00+00:00" and said[0]["value"] == said[0]["upper"] == 31
    assert said[1]["id"] == said[0]["id"]


def test_a_file_has_each_alert_once_and_loses_half_a_line(tmp_path: Path) -> None:
    path = tmp_path / "new" / "alerts.jsonl"
    first, second = AlertsToFile(path), replace(ALERT, key=("b",))
    first.begin()
    first.write(ALERT)
    with path.open("ab") as file:
        file.write(b'{"id": "cut off by a cra')
    again = AlertsToFile(path)
    again.begin()
    for alert in (ALERT, second, second):
        again.write(alert)
    assert [Alert.from_dict(json.loads(line)) for line in path.read_text().splitlines()] == [ALERT, second]


def test_a_file_that_can_not_be_written_ends_the_run_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(OSError, match="file"):
        StreamTester(WINDOWS, sinks=[Alerting([HOT], [AlertsToFile(tmp_path / "file" / "alerts")])])


class Server:
    """A web address that answers as it is set to, then with 200."""

    def __init__(self, answers: list[int]) -> None:
        self.answers, self.requests = answers, list[tuple[str, Any]]()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.requests.append((self.headers["Idempotency-Key"], body))
                self.send_response(outer.answers.pop(0) if outer.answers else 200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *args: Any) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/alerts?token=secret"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    made = Server(request.param)
    yield made
    made.http.shutdown()
    made.http.server_close()


@pytest.mark.parametrize("server", [[503, 429]], indirect=True)
def test_a_webhook_is_asked_again_until_it_takes_the_alert(server: Server) -> None:
    hook = AlertsToWebhook(server.url)
    hook.write(ALERT)
    hook.close(60)
    assert [key for key, _ in server.requests] == [ALERT.id] * 3 and server.requests[0][1] == ALERT.to_dict()
    assert (hook.account.sent, hook.account.failed) == (1, 0)


@pytest.mark.parametrize("server", [[400, 503]], indirect=True)
def test_a_webhook_that_refuses_is_reported_and_one_that_is_away_holds_nothing_up(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    hook = AlertsToWebhook(server.url, patience="0s")
    for number in range(3):
        hook.write(replace(ALERT, at_us=number))
        until(lambda: not hook.account.pending)
    assert (hook.account.sent, hook.account.failed, len(server.requests)) == (1, 2, 3)
    assert "did not accept 1 alert" in caplog.text and "it answered 400" in caplog.text
    assert "secret" not in caplog.text


def test_a_webhook_that_is_gone_is_given_up(caplog: pytest.LogCaptureFixture) -> None:
    gone = Server([])
    gone.http.shutdown()
    gone.http.server_close()
    hook = AlertsToWebhook(gone.url, patience="100ms")
    hook.write(ALERT)
    hook.write(ALERT)
    until(lambda: not hook.account.pending)
    assert (hook.account.sent, hook.account.failed) == (0, 2)


def test_a_stale_feed_is_reported_once_and_again_after_it_has_come_back() -> None:
    kept = Kept()
    tester = StreamTester(WINDOWS, sinks=[Alerting([HOT], to=[kept], stale="10m")], start=NOON)
    tester.feed([row(0)])
    tester.advance(300).advance(299)
    assert kept.alerts == []
    tester.advance(2).restart().advance(2000)
    assert summaries(kept.alerts) == [("stale feed", "fired", "None", 10)]
    tester.feed([row(30)])
    assert [alert.state for alert in kept.alerts] == ["fired", "cleared"]
    tester.advance(700)
    assert [alert.state for alert in kept.alerts] == ["fired", "cleared", "fired"]


def test_what_is_remembered_is_read_again_or_refused() -> None:
    alerting = Alerting([HOT], [Kept()])
    origin = Origin.of(WINDOWS, "group", named=True)
    folding = alerting.for_partition(origin, 0)
    folding.restore(folding.state())
    with pytest.raises(SinkError, match="the state of 'alerts' is damaged"):
        folding.restore(folding.state()[:-3])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"rules": HOT}, "rules must be a list of rules"),
        ({"rules": [HOT], "to": ["alerts"]}, "to must be a list of outlets"),
        ({"rules": [HOT], "stale": "0s"}, "stale must be a duration"),
    ],
)
def test_what_can_not_be_sent_is_refused(given: dict, said: str) -> None:
    with pytest.raises((TypeError, ValueError), match=said):
        Alerting(**given)


def test_rules_say_which_groups_must_be_together(caplog: pytest.LogCaptureFixture) -> None:
    origin = Origin.of(READINGS, "group", named=True)
    keys = tuple(key for key in origin.keys if key != "at")
    assert Alerting([HOT]).together(origin) is None
    assert Alerting([HOT], at="at").together(origin) == keys
    assert keys_together([Alerting([HOT]), Alerting([HOT], at="at", name="b")], origin) == keys
    Alerting([HOT], at="at").topics(origin, 2)
    assert not caplog.records
    new = Alerting([NewTerm("new", learn="1m")])
    new.topics(origin, 1)
    assert not caplog.records and new.together(origin) == ()
    new.topics(origin, 2)
    assert "look at all groups, so all groups are in one of the 2 partitions" in caplog.text
