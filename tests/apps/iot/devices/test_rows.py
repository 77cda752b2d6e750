"""Devices' payloads as a format of the app: which recordings are of it, their times, and states that last."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from streamgauge import StreamTester
from streamgauge.apps.app import Feed
from streamgauge.apps.iot.app import APP
from streamgauge.apps.jobs.job import Job
from streamgauge.apps.running.recording import RecordedMessages

from ....operators.rules.plain import Kept

FEED = Feed("t", "localhost:1")
T0 = 1_780_315_200
"""2026-06-01T12:00:00Z."""
DOOR = "zigbee2mqtt/hall/door"
TIMED = "\n".join(
    [
        f'{T0}.000 {DOOR} {{"contact":true}}',
        f'{T0 + 60}.000 {DOOR} {{"contact":false}}',
        f"{T0 + 61}.500 stat/kitchen/POWER ON",
        f'{T0 + 800}.000 {DOOR} {{"contact":false}}',
        f'{T0 + 900}.000 {DOOR} {{"contact":true}}',
        "",
    ]
)
SENML = [{"bn": "a/", "bt": T0, "n": "t", "v": 1}, {"n": "h", "v": 2}]
RECORDINGS = {
    "times and topics of mosquitto_sub": (TIMED, 5),
    "lines of JSON": ('{"Time":"2026-06-01T12:00:00","A":{"B":1}}\n' * 3, 3),
    "a document": (json.dumps({"ts": T0 * 1000, "values": {"t": 1}}, indent=1), 1),
    "a list": (json.dumps([{"id": "a", "at": T0, "t": 1}, {"id": "b", "at": T0 + 5, "t": 1}], indent=1), 2),
    "a pack of SenML": (json.dumps(SENML, indent=1), 1),
    "line protocol": (f"# a comment\nm,a=b t=1 {T0 * 10**9}\nm,a=b t=2 {T0 * 10**9}\n", 2),
    "Home Assistant's history": ("entity_id,state,last_changed\nsensor.a,1,2026-06-01T12:00:00Z\n", 1),
}


@pytest.mark.parametrize(("text", "count"), RECORDINGS.values(), ids=RECORDINGS)
def test_recordings_are_recognised_and_go_by_their_times(text: str, count: int, tmp_path: Path) -> None:
    path = tmp_path / "recording.json"
    path.write_text(text)
    job = Job.of(APP, None, {}, recording=path)
    messages = list(RecordedMessages(job, [path]).messages())
    assert job.form.name == "devices" and len(messages) == count
    assert messages[0].sent_ms == T0 * 1000
    assert job.form.note(path, job.settings)


OTHERS = {
    "a value under its name": ('{"time":"2026-06-01T12:00:00Z","sensor":"a","value":1}\n', {}, "json"),
    "a named field": ('{"time":"2026-06-01T12:00:00Z","t":1}\n', {"value": "t"}, "json"),
    "a table": ("timestamp,value\n2026-06-01T12:00:00Z,1\n", {}, "csv"),
    "no field is named": ('{"time":"2026-06-01T12:00:00Z","t":1}\n', {}, "devices"),
}


@pytest.mark.parametrize(("text", "settings", "form"), OTHERS.values(), ids=OTHERS)
def test_what_the_named_fields_are_in_is_read_by_them(
    text: str, settings: dict[str, str], form: str, tmp_path: Path
) -> None:
    path = tmp_path / ("recording.csv" if form == "csv" else "recording.json")
    path.write_text(text)
    assert Job.of(APP, None, settings, recording=path).form.name == form


def test_a_recording_without_any_time_is_refused_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "recording.json"
    path.write_text('{"sensor":"a","value":21.5}\n' * 3)
    job = Job.of(APP, "devices", {})
    with pytest.raises(ValueError, match=r"has a time of its own.*mosquitto_sub -F '%U %t %p'"):
        list(RecordedMessages(job, [path]).messages())


def fired(path: Path, **settings: str) -> list[tuple[str, Any, float]]:
    """What a recording's states fire: fired or cleared, the key, and the seconds since `T0`."""
    job, kept = Job.of(APP, None, settings, recording=path), Kept()
    part = next(part for part in job.parts if part.name == "watched")
    alerting = job.alerting(part, [kept])
    assert alerting is not None
    tester = StreamTester(
        job.streams(FEED)["watched"], sinks=[alerting], start=datetime.fromtimestamp(T0, UTC)
    )
    for message in RecordedMessages(job, [path]).messages():
        at = datetime.fromtimestamp((message.sent_ms or 0) / 1000, UTC)
        tester.feed_messages([message.value], [message.key], timestamps=[at])
    tester.finish()
    return [(alert.state, alert.key, alert.at_us / 1e6 - T0) for alert in kept.alerts]


def test_a_door_that_is_open_for_ten_minutes_fires_then_and_clears(tmp_path: Path) -> None:
    path = tmp_path / "mqtt.txt"
    path.write_text(TIMED)
    key = ["hall/door/contact", "open"]
    assert [
        (state, list(of), at) for state, of, at in fired(path, state="*door*=open", state_hold="10m")
    ] == [
        ("fired", key, 660),
        ("cleared", key, 900),
    ]
    assert not fired(path, state="*window*=open", state_hold="10m")
    assert not fired(path, state="*door*=open", state_hold="15m")


def test_states_are_counted_and_are_no_readings(tmp_path: Path) -> None:
    path = tmp_path / "mqtt.txt"
    path.write_text(TIMED)
    job = Job.of(APP, None, {}, recording=path)
    messages = list(job.form.messages(path, job.settings))
    start = datetime.fromtimestamp(T0, UTC)
    testers = {name: StreamTester(stream, start=start) for name, stream in job.streams(FEED).items()}
    for tester in testers.values():
        times = [datetime.fromtimestamp((one.sent_ms or 0) / 1000, UTC) for one in messages]
        tester.feed_messages([one.value for one in messages], [one.key for one in messages], timestamps=times)
        assert tester.finish().account.dead_lettered == 0
    states = testers["states"].windows().sort("sensor", "state")
    assert states.select("sensor", "state", "reports").rows() == [
        ("hall/door/contact", "closed", 2),
        ("hall/door/contact", "open", 2),
        ("stat/kitchen/POWER", "on", 1),
    ]
    assert testers["days"].windows().is_empty() and "watched" not in testers


def test_a_state_without_a_name_is_refused() -> None:
    job = Job.of(APP, "devices", {"state": "door="})
    with pytest.raises(ValueError, match=r"--set state must be such as open or \*door\*=open, got 'door='"):
        job.streams(FEED)


def test_json_without_the_field_names_the_format_that_reads_it() -> None:
    job = Job.of(APP, "json", {})
    rows = job.form.source(FEED, job.settings)
    tester = StreamTester(rows.select("at", "value").rows_to_kafka("rows"))
    tester.feed_messages(
        [b'{"Time":"2026-06-01T12:00:00","A":{"B":1}}', b'{"time":"2026-06-01T12:00:00Z","value":null}']
    )
    assert [one.reason for one in tester.refused] == [
        "no value, but readings of Tasmota; --format devices reads them"
    ]
