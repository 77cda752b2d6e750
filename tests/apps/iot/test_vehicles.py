"""GTFS-realtime: feeds of many vehicles, written byte by byte as the specification has them."""

from __future__ import annotations

import json
import random
import struct
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from streamgauge import StreamTester
from streamgauge.apps.app import Feed
from streamgauge.apps.iot.app import APP
from streamgauge.apps.jobs.job import Job
from streamgauge.operators.formats.messages import Messages

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
FEED = Feed("t", "localhost:9092")


def varint(number: int) -> bytes:
    result = b""
    while number > 127:
        result += bytes([number & 127 | 128])
        number >>= 7
    return result + bytes([number])


def field(number: int, value: Any) -> bytes:
    """One field: text, message, whole number or float; nothing for None."""
    if value is None:
        return b""
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def vehicle(
    entity: str,
    name: str | None,
    at: datetime | None,
    place: tuple[float, float] | None = None,
    speed: float | None = None,
    route: str | None = None,
) -> bytes:
    position = None
    if place is not None:
        position = field(1, place[0]) + field(2, place[1]) + field(3, 90.0) + field(5, speed)
    trip = None if route is None else field(1, f"trip of {route}") + field(5, route)
    own = None if name is None else field(1, name) + field(2, "label")
    stamp = None if at is None else int(at.timestamp())
    whole = field(1, trip) + field(2, position) + field(3, 7) + field(5, stamp) + field(8, own)
    return field(1, entity) + field(4, whole)


def feed(at: datetime | None, *entities: bytes) -> bytes:
    stamp = None if at is None else int(at.timestamp())
    header = field(1, "2.0") + field(2, 0) + field(3, stamp)
    return field(1, header) + b"".join(field(2, one) for one in entities)


def job_of(path: Path, given: dict[str, str] | None = None) -> Job:
    return Job.of(APP, None, given or {}, recording=path)


def test_each_vehicle_of_a_feed_is_a_reading(tmp_path: Path) -> None:
    path = tmp_path / "feed.pb"
    late = NOON - timedelta(seconds=40)
    alone = field(1, "a trip's update") + field(3, field(1, b""))
    path.write_bytes(
        feed(
            NOON,
            vehicle("1", "bus", late, (49.5, 8.5), 10.0, "7"),
            vehicle("2", None, None, (49.25, 8.25)),
            vehicle("3", "nowhere", NOON),
            alone,
        )
    )
    job = job_of(path)
    (message,) = job.form.messages(path, job.settings)
    assert job.form.name == "gtfs-realtime" and message.sent_ms == NOON.timestamp() * 1000
    stream = job.form.source(FEED, job.settings)
    decoded = stream.reading.kafka_source.value.decode(Messages.of([message.value]))
    frame = decoded.frame.with_columns(arrived=NOON)
    rows = stream.reading.transform(frame.lazy()).collect().drop("fences", "arrived").rows()
    assert rows == [
        (late, "bus", 36.0, "7", 49.5, 8.5),
        (NOON, "2", None, None, 49.25, 8.25),
    ]
    tester = StreamTester(job.streams(FEED)["days"], start=NOON)
    timeless = feed(None, vehicle("1", "bus", NOON, (1.0, 1.0)))
    broken = tester.feed_messages([message.value, feed(None), timeless, b"\x0a"])
    assert (broken.counted, broken.filtered, broken.dead_lettered) == (2, 1, 1)


@pytest.mark.parametrize("untimed", ["vehicle", "receipt"])
def test_a_feed_without_a_time_has_its_vehicles_or_its_receipts(untimed: str, tmp_path: Path) -> None:
    path, received = tmp_path / "feed.pb", NOON + timedelta(minutes=3)
    path.write_bytes(feed(None, vehicle("1", "bus", NOON, (1.0, 1.0))))
    job = job_of(path, {"untimed": untimed})
    rows = job.form.source(FEED, job.settings)
    tester = StreamTester(rows.select("at", "sensor").rows_to_kafka("rows"), start=received)
    values = [path.read_bytes(), feed(None, vehicle("1", "tram", None, (1.0, 1.0)))]
    tester.feed_messages(values, timestamps=[received, received])
    sent = [json.loads(one.value or b"") for one in tester.sent()]
    times = {row["sensor"]: datetime.fromisoformat(row["at"]) for row in sent}
    assert times == {"bus": NOON if untimed == "vehicle" else received, "tram": received}
    if untimed == "receipt":
        with pytest.raises(ValueError, match="has no time, nor has a vehicle in it"):
            list(job.form.messages(path, job.settings))


def test_fleets_are_quantiles_over_the_vehicles_of_a_route(tmp_path: Path) -> None:
    dice, path, speeds = random.Random(1), tmp_path / "feed.pb", {"7": [], "8": []}
    path.write_bytes(feed(NOON))
    tester = StreamTester(job_of(path).streams(FEED)["fleets"], start=NOON)
    for minute in range(30):
        at, entities = NOON + timedelta(minutes=minute), []
        for number in range(9):
            route, speed = "78"[number % 2], float(dice.randrange(0, 120)) / 4
            speeds[route].append(round(speed * 3.6, 6))
            entities.append(vehicle(str(number), f"bus {number}", at, (49.0, 8.0), speed, route))
        tester.feed_messages([feed(at, *entities)])
    for row in tester.finish().windows().to_dicts():
        mine = sorted(speeds[row["group"]])
        assert row["readings"] == len(mine) and round(row["sensors"]["estimate"]) == (
            5 if row["group"] == "7" else 4
        )
        for one in row["spread"]["quantiles"]:
            assert one["lower"] - 1e-6 <= mine[int(one["q"] * (len(mine) - 1))] <= one["upper"] + 1e-6


def test_a_group_that_there_is_not_is_refused() -> None:
    job = Job.of(APP, "gtfs-realtime", {"group": "colour"})
    with pytest.raises(ValueError, match="--set group=colour: a vehicle's group is its route or its trip"):
        job.streams(FEED)


def test_a_map_has_where_each_vehicle_was_last() -> None:
    tester = StreamTester(Job.of(APP, "gtfs-realtime").streams(FEED)["places"], start=NOON)
    for second, north in ((0, 49.0), (20, 49.5), (30, None)):
        at = NOON + timedelta(seconds=second)
        tester.feed_messages([feed(at, vehicle("1", "bus", at, None if north is None else (north, 8.0)))])
    rows = tester.finish().windows()
    assert rows.select("sensor", "latitude", "longitude").rows() == [("bus", 49.5, 8.0)]
    assert "places" not in Job.of(APP, "json").streams(FEED)
