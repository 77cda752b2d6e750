"""Apps on recordings, through a real broker: alerts and answers against plain Python, on both engines."""

from __future__ import annotations

import csv
import io
import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from rich.console import Console

from streamgauge.apps.app import Message
from streamgauge.apps.jobs.job import Job
from streamgauge.apps.jobs.outcome import NothingCounted
from streamgauge.apps.registry import APPS, app_of
from streamgauge.apps.running import replaying
from streamgauge.apps.running.exact import all_inside, with_exact
from streamgauge.apps.running.recording import RecordedMessages
from streamgauge.apps.running.replaying import AppReplay, replayed
from streamgauge.apps.running.report import AppReport
from streamgauge.operators.definition.aggregates import (
    distinct,
    kll_quantiles,
    quantiles,
    sample,
    top_k,
)
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json.decoder import json as json_decoder
from streamgauge.operators.testing import StreamTester

from ...operators.rules.plain import NOON, hysteresis, row

KINDS = {"at": pl.String, "key": pl.String, "value": pl.Float64, "bad": pl.Int64}
KEYS = {"app", "kind", "key", "at", "value", "lower", "upper", "limit", "rule", "why", "cleared"}


def readings(seed: int = 1) -> dict[str, list[tuple[datetime, float]]]:
    """Three sensors whose values wander; one is away twice, and one sticks."""
    dice = random.Random(seed)
    by_key: dict[str, list[tuple[datetime, float]]] = {}
    for name in ("a", "b", "c"):
        value, by_key[name] = 25.0, []
        for minute in range(0, 3000, 10):
            if not (name == "c" and (500 < minute < 800 or 2000 < minute < 2400)):
                stuck = name == "b" and 1000 < minute < 2000
                value = value if stuck else min(max(value + dice.gauss(0, 2), 10), 40)
                by_key[name].append((NOON + timedelta(minutes=minute, seconds=dice.randrange(60)), value))
    return by_key


def lines(result: dict[str, list[tuple[datetime, float]]]) -> list[bytes]:
    """As devices send them, with paths of their own, duplicates, and lines that are not readings."""
    rows = sorted((at, name, value) for name, part in result.items() for at, value in part)
    reported = [
        json.dumps(
            {"device": {"id": name}, "ts": int(at.timestamp() * 1000), "payload": {"t": value}}
        ).encode()
        for at, name, value in rows
    ]
    return [*reported[:40], reported[39], b"{broken", *reported[40:], b'{"device": {"id": "a"}, "ts": 1}']


SET = {
    "time": "ts",
    "unit": "ms",
    "sensor": "device.id",
    "value": "payload.t",
    "limit": "30",
    "hysteresis": "2",
}


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("iot") / "readings.jsonl"
    path.write_bytes(b"\n".join(lines(readings())) + b"\n")
    return path


def result_of(kafka: Any, job: Job, path: Path, engine: str = "local", speed: float = 0.0) -> dict[str, Any]:
    console = Console(file=io.StringIO())
    return replayed(AppReplay(job, [path], engine, speed), kafka.bootstrap_servers, console)


def crossings(result: dict[str, list[tuple[datetime, float]]]) -> list[tuple[str, datetime, datetime | None]]:
    wanted = []
    for name, part in result.items():
        times = [(at.timestamp(), value) for at, value in part]
        reported = hysteresis(times, 29.999999999, 28)
        ends = [at for state, at in reported if state == "cleared"] + [None]
        begins = [at for state, at in reported if state == "fired"]
        wanted += [(name, moment(begin), moment(end)) for begin, end in zip(begins, ends)]
    return sorted(wanted, key=str)


def moment(seconds: float | None) -> Any:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat()


@pytest.mark.kafka
@pytest.mark.parametrize("speed", [0.0, 1_000_000.0])
def test_readings_that_no_rule_has_seen_are_reported(kafka, tmp_path: Path, speed: float) -> None:
    file = tmp_path / "readings.jsonl"
    rows = [("a", 0), ("a", 600), ("b", 1_200), ("a", 60), ("b", 1_800)]
    file.write_text(
        "".join(json.dumps({"sensor": sensor, "value": 1, "time": moment(at)}) + "\n" for sensor, at in rows)
    )
    job = Job.of(app_of("iot"), None, {"limit": "30", "delay": "10s", "lateness": "1m"}, recording=file)
    result = result_of(kafka, job, file, speed=speed)
    assert result["account"]["counted"] == len(rows)
    assert result["late_readings"] == {"in_time": {}, "too_late": {"a": 1}, "evicted": 0}


@pytest.mark.slow
@pytest.mark.kafka
def test_sensors_fire_as_in_plain_python(kafka, recording: Path) -> None:
    job = Job.of(app_of("iot"), None, SET, recording=recording)
    assert job.form.name == "json"
    result = result_of(kafka, job, recording)
    sent = len(lines(readings()))
    assert result["account"] == {
        "read": sent,
        "counted": sent - 2,
        "filtered": 1,
        "late": 0,
        "dead_lettered": 1,
    }
    (letter,) = result["dead_letters"]
    assert letter["messages"] == 1 and letter["offset"] == 41 and letter["first"] == "{broken"
    alerts = result["alerts"]
    assert all(alert.keys() >= KEYS for alert in alerts)
    by_rule: dict[str, list[dict]] = {}
    for alert in alerts:
        by_rule.setdefault(alert["rule"], []).append(alert)
    results = [(alert["key"], alert["at"], alert["cleared"]) for alert in by_rule["limit"]]
    assert sorted(results, key=str) == crossings(readings()) and len(results) > 3
    assert [alert["key"] for alert in by_rule["dead sensor"]] == ["c", "c"]
    assert [alert["key"] for alert in by_rule["stuck sensor"]] == ["b"]
    assert result["all_inside_bounds"] and len(result["answers"]["days"]) == 9
    shown = io.StringIO()
    Console(file=shown, width=150).print(AppReport(app_of("iot"), result))
    assert "the first: {broken" in shown.getvalue()
    assert "2 × dead sensor" in shown.getvalue() and "Every estimate" in shown.getvalue()


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.soak
def test_both_engines_and_any_speed_give_the_same(kafka, spark, recording: Path) -> None:
    pytest.importorskip("pyspark")
    job = Job.of(app_of("iot"), None, SET, recording=recording)
    local, other = (result_of(kafka, job, recording, engine) for engine in ("local", "spark"))
    assert {**other, "engine": "local"} == local


def test_estimates_stand_beside_exact_figures() -> None:
    dice = random.Random(3)
    rows = [
        {
            **row(dice.random() * 3, dice.choice("abcdef"), dice.choice([None, dice.gauss(9, 3)])),
            "bad": dice.randrange(50),
        }
        for _ in range(3000)
    ]
    rows.sort(key=lambda one: one["at"])
    source = Stream.from_kafka("t", value=json_decoder(KINDS), time="at")
    stream = (
        source.group_by("key")
        .tumbling("1m")
        .agg(
            d=distinct("bad"),
            t=top_k("bad", k=3),
            q=quantiles("value"),
            k=kll_quantiles("value"),
            s=sample("key", k=1),
        )
    )
    messages = [Message(json.dumps({**one, "at": one["at"].isoformat()}).encode()) for one in rows]
    tester = StreamTester(stream, start=datetime.now(UTC))
    tester.feed_messages([message.value for message in messages])
    table = tester.finish().tables().to_arrow()
    result = with_exact(stream, table, messages)
    assert len(result) == 18 and all_inside(result)
    for answer in result:
        start, end = (answer[name].replace(tzinfo=None) for name in ("window_start", "window_end"))
        mine = [one for one in rows if one["key"] == answer["key"] and start <= one["at"] < end]
        bad, values = (
            [one["bad"] for one in mine],
            sorted(one["value"] for one in mine if one["value"] is not None),
        )
        assert answer["d"]["exact"] == len(set(bad))
        assert all(item["exact"] == bad.count(item["item"]) for item in answer["t"])
        assert [one["exact"] for one in answer["q"]["quantiles"]] == [
            values[int(one["q"] * (len(values) - 1))] for one in answer["q"]["quantiles"]
        ]
    result[3]["t"][0]["inside_bounds"] = False
    assert not all_inside(result)


def test_a_recording_is_sent_in_its_rhythm(tmp_path: Path) -> None:
    path = tmp_path / "readings.csv"
    path.write_text('time,note,value\n2026-01-01 00:00,"a, b",1\n2026-01-01 00:01,,2\n')
    job = Job.of(app_of("iot"), None, {"time": "time"}, recording=path)
    messages = list(RecordedMessages(job, [path]).messages())
    assert [message.value for message in messages] == [
        b'time,note,value\n2026-01-01 00:00,"a, b",1',
        b"time,note,value\n2026-01-01 00:01,,2",
    ]
    (batch,) = RecordedMessages(job, [path], speed=60).batches()
    assert batch.due.tolist() == [0, 1] and batch.sent.tolist() == [1_767_225_600_000, 1_767_225_660_000]


@pytest.mark.kafka
def test_a_record_may_be_larger_than_brokers_take_by_default(kafka, tmp_path: Path) -> None:
    path = tmp_path / "readings.csv"
    path.write_text(f'time,note,value\n2026-01-01 00:00,"{2_000_000 * "x"}\n",1\n2026-01-01 00:01,,2\n')
    result = result_of(kafka, Job.of(app_of("iot"), None, {"time": "time"}, recording=path), path)
    assert result["account"]["counted"] == result["account"]["read"] == 2


@pytest.mark.kafka
def test_a_run_that_counted_nothing_claims_nothing(
    kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "readings.jsonl"
    path.write_text("".join(f'{{"time":"2026-01-01","value":"{n} degrees"}}\n' for n in range(9)) + "{oops\n")
    job = Job.of(app_of("iot"), None, {}, recording=path)
    monkeypatch.setattr(replaying, "broker", lambda console, stack, kafka_beside: kafka.bootstrap_servers)
    with pytest.raises(NothingCounted, match=r"^nothing was counted: iot read 10 messages: 10 "):
        replaying.replay(AppReplay(job, [path]), as_json=True)
    result = json.loads(capsys.readouterr().out)
    assert result["all_inside_bounds"] is None and result["account"]["read"] == 10
    shown = io.StringIO()
    Console(file=shown, width=150).print(AppReport(app_of("iot"), result))
    assert "No message was counted, so there is nothing to compare." in shown.getvalue()
    reasons = [(one["reason"], one["messages"]) for one in result["dead_letters"]]
    assert reasons == [("a value has a unit; --set value_unit=degrees reads it", 9), ("not JSON", 1)]
    assert result["dead_letters"][0]["details"] == "'0 degrees' has a unit; --set value_unit=degrees reads it"


@pytest.mark.parametrize("name", APPS)
def test_every_app_can_be_asked_for(name: str) -> None:
    app = app_of(name)
    assert app.name == name and app.title and app.formats and app.parts
    assert len({part.name for part in app.parts}) == len(app.parts)


def test_an_unknown_app_and_a_run_of_nothing_are_refused(ran, tmp_path: Path) -> None:
    assert "'iott' is not an app; there are " in ran("run", "iott", "--input", __file__, code=1)
    assert "name a recording by --input FILE, or a topic by" in ran("run", "iot", code=1)
    assert "there is no such file" in ran("run", "iot", "--input", tmp_path / "none", code=1)
    assert "write NAME=VALUE" in ran("run", "iot", "--input", __file__, "--set", "limit", code=1)


@pytest.mark.kafka
def test_the_recorded_temperatures_cross_eleven_times_with_nine_gaps(kafka, recordings) -> None:
    path = recordings / "iot" / "ambient_temperature_system_failure.csv"
    job = Job.of(app_of("iot"), None, {"limit": "78", "hysteresis": "2"}, recording=path)
    result = result_of(kafka, job, path)
    rules = [alert["rule"] for alert in result["alerts"]]
    assert (rules.count("limit"), rules.count("dead sensor")) == (11, 9)
    with path.open() as file:
        assert len(list(csv.DictReader(file))) == result["account"]["counted"]
    labelled = json.loads((recordings / "nab_windows.json").read_text())
    spans = labelled["realKnownCause/ambient_temperature_system_failure.csv"]
    spans = [[datetime.fromisoformat(edge).replace(tzinfo=UTC) for edge in span] for span in spans]
    alerts = [datetime.fromisoformat(one["at"]) for one in result["alerts"] if one["rule"] == "unusual"]
    inside = [[low <= at <= high for at in alerts] for low, high in spans]
    # Three of eleven months are of nothing labelled: the price of seeing shifts of minutes, too.
    assert all(map(any, inside)) and len(alerts) - sum(map(any, zip(*inside))) <= 3
