"""Messages that come too late for a part: how many, and of whom."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from streamgauge import StreamTester
from streamgauge.apps.app import Feed, Message
from streamgauge.apps.jobs.job import Job
from streamgauge.apps.registry import APPS, app_of
from streamgauge.apps.running.late import late_messages
from streamgauge.operators.rules.late_readings import LateReadings

from ...operators.rules.plain import Kept

START = datetime(2026, 6, 1, 12, tzinfo=UTC)


def messages() -> list[Message]:
    """Two pumps; the clock of "slow" is 40 s behind, and it is at 9 bar for eight minutes."""
    lines = []
    for second in range(0, 1800, 10):
        for pump, behind in (("right", 0), ("slow", 40)):
            at = START + timedelta(seconds=second - behind)
            bar = 9 if pump == "slow" and 600 <= second < 1080 else 4
            value = json.dumps({"sensor": pump, "value": bar, "time": at.isoformat()}).encode()
            lines.append(Message(value, pump.encode(), int(at.timestamp() * 1000)))
    return lines


def run(job: Job) -> tuple[StreamTester, list[tuple[str, str]]]:
    part, kept = next(part for part in job.parts if part.name == "readings"), Kept()
    alerting = job.alerting(part, [kept])
    tester = StreamTester(job.streams(Feed("t", "localhost:1"))["readings"], sinks=[alerting], start=START)
    sent = messages()
    for low in range(0, len(sent), 7):
        some = sent[low : low + 7]
        stamps = [datetime.fromtimestamp((one.sent_ms or 0) / 1000, UTC) for one in some]
        tester.feed_messages([one.value for one in some], [one.key for one in some], timestamps=stamps)
    return tester.finish(), [(alert.state, str(alert.plain_key)) for alert in kept.alerts]


SET = {"limit": "7", "hold": "1m", "jump": "", "deviation": ""}


def test_readings_that_come_too_late_for_a_part_are_named_with_their_sensor() -> None:
    streams = Job.of(app_of("iot"), "json", SET).streams(Feed("t", "localhost:1"))
    streams["readings"] = replace(streams["readings"], keep_late=False)
    (late,) = late_messages(streams, {"readings": 180, "days": 0}, messages())
    assert late.pop("seconds_behind") > 10
    assert late == {"part": "readings", "messages": 180, "of": {"slow": 180}, "other_keys": 0}


@pytest.mark.slow
def test_a_sensor_whose_clock_is_behind_is_judged_by_its_own_clock() -> None:
    job = Job.of(app_of("iot"), "json", SET)
    for waiting in (job, replace(job, recorded=True), Job.of(app_of("iot"), "json", {**SET, "delay": "1m"})):
        tester, alerts = run(waiting)
        assert tester.account.late == 0
        assert alerts == [("fired", "slow"), ("cleared", "slow")]


def test_late_readings_are_counted_with_their_sensors() -> None:
    """One sensor is 40 s behind; a reading of the other one comes ten minutes after later ones."""
    job = Job.of(app_of("iot"), "json", SET)
    part = next(part for part in job.parts if part.name == "readings")
    alerting = job.alerting(part, [Kept()])
    assert alerting is not None
    tester = StreamTester(job.streams(Feed("t", "localhost:1"))["readings"], sinks=[alerting], start=START)
    sent = messages()
    old = json.dumps({"sensor": "right", "value": 9, "time": (START - timedelta(seconds=5)).isoformat()})
    sent.insert(200, Message(old.encode(), b"right", None))
    end = {"sensor": "right", "value": 4, "time": (START + timedelta(hours=1)).isoformat()}
    sent.append(Message(json.dumps(end).encode(), b"right", None))
    for one in (sent[:250], sent[250:]):
        tester.feed_messages([message.value for message in one], [message.key for message in one])
        tester.restart()
    tester.finish()
    late = alerting.late_readings()
    assert late == LateReadings({'["slow"]': 180}, {'["right"]': 1})
    assert [sentence.rpartition(": ")[2] for sentence in late.sentences()] == [
        "slow 180",
        "right 1; wait longer by --set lateness=",
    ]


def test_every_app_takes_a_delay_and_refuses_what_is_none() -> None:
    for name in APPS:
        app = app_of(name)
        job = Job.of(app, app.formats[0].name, {"delay": "7m"})
        assert {stream.delay_us for stream in job.streams(Feed("t", "localhost:1")).values()} == {420_000_000}
        with pytest.raises(ValueError, match="--set delay: 'soon' is not a duration"):
            Job.of(app, app.formats[0].name, {"delay": "soon"})
