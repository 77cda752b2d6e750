"""Readings in JSON and CSV: times and numbers in every form in which devices send them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from streamgauge import StreamTester, count
from streamgauge.apps.app import Feed
from streamgauge.apps.jobs.job import Job
from streamgauge.apps.registry import app_of
from streamgauge.apps.running.recording import RecordedMessages

AT = datetime(2023, 11, 14, 22, 13, 20, 250_000, UTC)


def recorded(
    path: Path, given: dict[str, str]
) -> tuple[list[tuple[str, float]], list[int | None], list[str]]:
    """The times and values of a recording's rows, when its messages were sent, and why others are refused."""
    job = Job.of(app_of("iot"), None, given, recording=path)
    messages = list(RecordedMessages(job, [path]).messages())
    rows = job.form.source(Feed("t", "localhost:1"), job.settings)
    tester = StreamTester(rows.select("at", "value").rows_to_kafka("rows"), start=datetime.now(UTC))
    tester.feed_messages([message.value for message in messages])
    payload = [json.loads(one.value or b"") for one in tester.sent()]
    reasons = [one.reason for one in tester.refused]
    return [(row["at"], row["value"]) for row in payload], [one.sent_ms for one in messages], reasons


@pytest.mark.slow
@pytest.mark.parametrize("form", ["json", "csv"])
@pytest.mark.parametrize(
    ("unit", "time"),
    [
        ("s", "1700000000.25"),
        ("s", "1.70000000025e9"),
        ("ms", "1700000000250"),
        ("ms", "1700000000250.0"),
        ("us", "1700000000250000"),
        ("ns", "1700000000250000000"),
        ("", "1700000000.25"),
        ("", "1700000000250"),
        ("", "1700000000250000"),
        ("", "1700000000250000000"),
        ("", '"2023-11-14 22:13:20.25"'),
        ("", '"20231114T231320,25+01"'),
        ("", '"2023-11-14T22:13:20.25Z"'),
    ],
)
@pytest.mark.parametrize("quoted", [False, True], ids=["numbers", "texts"])
def test_times_and_values_may_be_fractions_and_texts(
    form: str, unit: str, time: str, quoted: bool, tmp_path: Path
) -> None:
    time = f'"{time}"' if quoted and '"' not in time else time
    value = '"21.5"' if quoted else "21.5"
    path = tmp_path / f"readings.{form}"
    path.write_text(
        f'{{"time":{time},"value":{value}}}\n' if form == "json" else f"time,value\n{time},{value}\n"
    )
    rows, sent, reasons = recorded(path, {"time": "time", "unit": unit})
    assert not reasons and sent == [int(AT.timestamp() * 1000)]
    assert [(datetime.fromisoformat(at), value) for at, value in rows] == [(AT, 21.5)]


WRONG = {
    "no number": "soon",
    "not finite": "nan",
    "infinite": "inf",
    "beyond all times": "1e300",
    "missing": "",
}


@pytest.mark.parametrize("time", WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("form", ["json", "csv"])
def test_a_number_that_is_no_time_is_a_dead_letter(form: str, time: str, tmp_path: Path) -> None:
    path = tmp_path / f"readings.{form}"
    good, bad = (
        (f'{{"time":"{one}","value":1}}' if form == "json" else f"{one},1") for one in ("1700000000.25", time)
    )
    path.write_text("\n".join([*(["time,value"] if form == "csv" else []), bad, good, bad, good]) + "\n")
    job = Job.of(app_of("iot"), None, {"time": "time", "unit": "s"}, recording=path)
    (batch,) = RecordedMessages(job, [path]).batches()
    rows = job.form.source(Feed("t", "localhost:1"), job.settings)
    tester = StreamTester(rows.tumbling("1m").agg(n=count()), start=datetime.now(UTC))
    account = tester.feed_messages(batch.values.to_pylist())
    assert (account.counted, account.dead_lettered) == (2, 2) and len(tester.refused) == 2


NOTES = {
    "1700000000.25": "times are seconds since 1970, by their size: the first, 1700000000.25, is "
    "2023-11-14T22:13:20.250+00:00",
    "1700000000250": "times are milliseconds since 1970, by their size: the first, 1700000000250, is "
    "2023-11-14T22:13:20.250+00:00",
    "1700000000250000": "times are microseconds since 1970, by their size",
    "1700000000250000000": "times are nanoseconds since 1970, by their size",
    "86400": "times are numbers too small for any since 1973: the first is 86400; --set unit=s",
}


@pytest.mark.parametrize("form", ["json", "csv"])
@pytest.mark.parametrize(("time", "said"), NOTES.items())
def test_the_unit_of_times_is_concluded_and_said(form: str, time: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / f"readings.{form}"
    path.write_text(
        f'{{"value":1}}\n{{"time":{time},"value":1}}\n' if form == "json" else f"time,value\n{time},1\n"
    )
    job = Job.of(app_of("iot"), None, {"time": "time"}, recording=path)
    assert job.form.note(path, job.settings).startswith(said)
    named = Job.of(app_of("iot"), None, {"time": "time", "unit": "ms"}, recording=path)
    assert named.form.note(path, named.settings) == ""


HEADERS = {
    "timestamp,device,temp,unitname": ("value", "--set value=temp --set sensor=device"),
    "when,value,room": ("timestamp", "--set time=when --set sensor=room"),
    "timestamp,room": ("value", "--set value=NAME --set sensor=room"),
}


@pytest.mark.parametrize("header", HEADERS)
def test_a_header_without_the_fields_is_described_with_how_to_name_them(header: str, tmp_path: Path) -> None:
    missing, how = HEADERS[header]
    cells = {"timestamp": "2026-06-01T00:00:00Z", "when": "noon", "temp": "20.5", "value": "1"}
    row = ",".join(cells.get(name, "a") for name in header.split(","))
    path = tmp_path / "readings.csv"
    path.write_text(f"{header}\n{row}\n")
    job = Job.of(app_of("iot"), None, {}, recording=path)
    said = f"there is no column {missing}, only {header.replace(',', ', ')}: choose some, as in {how}"
    assert job.form.note(path, job.settings) == said


def test_times_in_words_and_wrong_files_need_no_note(tmp_path: Path) -> None:
    path = tmp_path / "readings.json"
    for text in ('{"time":"2023-11-14T22:13:20Z","value":1}', '{"time":"soon"}', "{broken", "[]"):
        path.write_text(text + "\n")
        job = Job.of(app_of("iot"), "json", {})
        assert job.form.note(path, job.settings) == ""


def test_a_number_that_is_too_small_for_a_time_is_a_dead_letter() -> None:
    job = Job.of(app_of("iot"), "json", {})
    rows = job.form.source(Feed("t", "localhost:1"), job.settings)
    tester = StreamTester(rows.tumbling("1m").agg(n=count()), start=datetime.now(UTC))
    times = ("86400", "-1700000000", "1e300", '"nan"', "1700000000")
    account = tester.feed_messages([f'{{"time":{time},"value":1}}'.encode() for time in times])
    assert (account.counted, account.dead_lettered) == (1, 4)


def test_a_unit_that_there_is_not_is_named() -> None:
    job = Job.of(app_of("iot"), "json", {"unit": "minutes"})
    with pytest.raises(ValueError, match="--set unit=minutes: a time is in s, ms, us, ns since 1970"):
        job.streams(Feed("t", "localhost:1"))


NIGHTS = [
    ("Europe/Rome", datetime(2026, 10, 24, 22, tzinfo=UTC)),
    ("America/New_York", datetime(2026, 11, 1, 3, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2026, 4, 4, 13, tzinfo=UTC)),
    ("America/New_York", datetime(2026, 3, 8, 4, tzinfo=UTC)),
    ("UTC", datetime(2026, 10, 24, 22, tzinfo=UTC)),
]


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["%Y-%m-%dT%H:%M:%S", "%Y%m%dT%H%M%S", "%d.%m.%Y %H:%M:%S"])
@pytest.mark.parametrize(("zone", "begin"), NIGHTS)
@pytest.mark.parametrize("form", ["json", "csv"])
def test_times_without_an_offset_are_those_of_the_zones_clocks(
    form: str, zone: str, begin: datetime, shape: str, tmp_path: Path
) -> None:
    """Two sensors, every 10 and every 30 minutes, over the night on which clocks are put back or forward."""
    true = [(begin + timedelta(minutes=10 * n), "ab"[i]) for n in range(36) for i in range(2 - n % 3 // 2)]
    true = [(at, sensor) for at, sensor in true if sensor == "a" or at.minute % 30 == 0]
    shown = [(at.astimezone(ZoneInfo(zone)).strftime(shape), sensor) for at, sensor in true]
    if form == "json":
        lines = [json.dumps({"time": at, "sensor": sensor, "value": 1}) for at, sensor in shown]
    else:
        lines = ["time,sensor,value", *(f"{at},{sensor},1" for at, sensor in shown)]
    path = tmp_path / f"readings.{form}"
    path.write_text("\n".join(lines))
    given = {"time": "time", "sensor": "sensor", "zone": zone}
    given |= {"pattern": shape} if "." in shape else {}
    _, sent, _ = recorded(path, given)
    assert sent == [int(at.timestamp() * 1000) for at, _ in true]
    # As in Kafka, each reading is decoded with its message's timestamp.
    job = Job.of(app_of("iot"), None, given, recording=path)
    messages = list(RecordedMessages(job, [path]).messages())
    rows = job.form.source(Feed("t", "localhost:1"), job.settings)
    tester = StreamTester(rows.select("at").rows_to_kafka("rows"), start=datetime.now(UTC))
    stamps = [at for at, _ in true]
    tester.feed_messages([one.value for one in messages], [b""] * len(true), timestamps=stamps)
    assert [datetime.fromisoformat(json.loads(one.value or b"")["at"]) for one in tester.sent()] == stamps


def test_a_meter_that_reports_once_an_hour_shows_the_same_time_twice(tmp_path: Path) -> None:
    true = [datetime(2026, 10, 31, 20, tzinfo=UTC) + timedelta(hours=n) for n in range(14)]
    shown = [at.astimezone(ZoneInfo("America/New_York")).replace(tzinfo=None).isoformat() for at in true]
    lines = [json.dumps({"time": at, "sensor": "a", "value": 1}) for at in shown]
    path = tmp_path / "readings.jsonl"
    path.write_text("\n".join([*lines[:3], lines[2], *lines[3:]]))  # one is repeated
    _, sent, _ = recorded(path, {"zone": "America/New_York"})
    wanted = [int(at.timestamp() * 1000) for at in true]
    assert sent == [*wanted[:3], wanted[2], *wanted[3:]]


def test_a_zone_that_there_is_not_is_refused() -> None:
    job = Job.of(app_of("iot"), "json", {"zone": "Europe/Atlantis", "deviation": ""})
    with pytest.raises(ValueError, match="'Europe/Atlantis' is not a time zone"):
        job.form.source(Feed("t", "localhost:1"), job.settings)
