"""When windows close: the watermark of all partitions, silence, open transactions, wrong clocks."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from confluent_kafka import Producer
from pyspark.sql.streaming.datasource import ReadMaxRows

from streamgauge.spark_udafs.merge.partials import AHEAD_US

from .planned import Query, account

pytestmark = pytest.mark.kafka


MINUTE = 60_000_000


def test_the_watermark_waits_for_all_partitions_and_closes_what_is_left_at_the_end(
    sketches: Callable[..., Query],
    topic: Callable[..., str],
    send: Callable[..., None],
    frame_of: Callable[..., pl.DataFrame],
    json_of: Callable[[pl.DataFrame], list[bytes]],
) -> None:
    name = topic(2)
    frame = frame_of(4, rows=400, minutes=4)
    send(name, json_of(frame))
    send(name, json_of(frame.head(10)), partition=1)
    query = sketches(name, closeAtEnd="true")
    query.reader.prepareForTriggerAvailableNow()
    marks = []
    while query.batch(ReadMaxRows(205)) is not None:
        marks.append(query.last.watermark_us)
    first, last = (int(t.timestamp() * 1e6) for t in (frame["at"][9], frame["at"][-1]))
    assert marks[0] < 0
    assert marks[1] <= first
    assert marks[-1] == last - last % MINUTE + MINUTE
    assert marks == sorted(marks)
    # What comes for a window that was closed is late, in whatever partition.
    send(name, json_of(frame.tail(5)), partition=1)
    later = sketches(name, log=query.log)
    batches = later.batch()
    assert batches is not None
    assert account(batches)["late"] == 5


def test_a_file_ends_a_stream_as_its_trigger_would(
    sketches: Callable[..., Query],
    topic: Callable[..., str],
    send: Callable[..., None],
    frame_of: Callable[..., pl.DataFrame],
    json_of: Callable[[pl.DataFrame], list[bytes]],
    tmp_path: Path,
) -> None:
    name, ending = topic(), tmp_path / "end"
    frame = frame_of(4, rows=400, minutes=4)
    send(name, json_of(frame.head(300)))
    query = sketches(name, endFile=str(ending), closeAtEnd="true")
    while query.batch() is not None:
        pass
    send(name, json_of(frame.tail(100)))
    ending.touch()
    while query.batch() is not None:
        pass
    last = int(frame["at"][-1].timestamp() * 1e6)
    assert query.last.watermark_us == last - last % MINUTE + MINUTE
    assert query.last.account().counted == 400
    send(name, json_of(frame.tail(5)))
    assert query.batch() is None


def test_windows_stay_open_at_the_end_if_asked(
    sketches: Callable[..., Query],
    topic: Callable[..., str],
    send: Callable[..., None],
    frame_of: Callable[..., pl.DataFrame],
    json_of: Callable[[pl.DataFrame], list[bytes]],
) -> None:
    name = topic()
    frame = frame_of(4, rows=400)
    send(name, json_of(frame))
    query = sketches(name, closeAtEnd="false")
    query.reader.prepareForTriggerAvailableNow()
    while query.batch() is not None:
        pass
    assert query.last.watermark_us == int(frame["at"][-1].timestamp() * 1e6) - 5_000_000
    send(name, json_of(frame.tail(5)))
    batches = sketches(name, log=query.log).batch()
    assert batches is not None
    assert account(batches)["counted"] == 405


@pytest.mark.slow
def test_an_idle_stream_closes_its_windows_and_then_rests(
    sketches: Callable[..., Query],
    topic: Callable[..., str],
    send: Callable[..., None],
    frame_of: Callable[..., pl.DataFrame],
    json_of: Callable[[pl.DataFrame], list[bytes]],
) -> None:
    name = topic(2)
    frame = frame_of(6, rows=50).filter(pl.col("at").dt.second() >= 50)
    send(name, json_of(frame))
    query = sketches(name, idleTimeout="100")
    last = int(frame["at"][-1].timestamp() * 1e6)
    deadline = time.monotonic() + 300
    while query.last.watermark_us < last - last % MINUTE + MINUTE:
        query.batch()
        assert time.monotonic() < deadline
    while query.batch() is not None:
        assert time.monotonic() < deadline
    announced = pa.Table.from_batches(query.read(len(query.log) - 1)).column("window_end")
    assert announced.cast(pa.int64()).to_pylist() == [AHEAD_US + query.last.watermark_us]
    assert [query.batch() for _ in range(3)] == [None] * 3


@pytest.mark.parametrize("silence", [0, 14, 3_600])
def test_a_stream_that_wakes_condemns_none_of_its_rows(
    sketches: Callable[..., Query], topic: Callable[..., str], send: Callable[..., None], silence: int
) -> None:
    name, now = topic(4), [1_000.0]
    query = sketches(name, idleTimeout="5000")
    query.reader._clock = lambda: now[0]
    values = [b'{"at":"2026-01-01T00:%02d:%02d","item":1}' % divmod(n, 60) for n in range(200)]
    assert query.batch() is None
    now[0] += silence
    assert query.batch() is None
    for partition in range(4):
        # One after the other, each in a micro-batch of its own.
        send(name, values[partition::4], partition=partition)
        batches = query.batch()
        assert batches is not None
        now[0] += 1
    assert account(batches) == {"read": 200, "counted": 200, "filtered": 0, "late": 0, "dead_lettered": 0}
    now[0] += 60
    while query.batch() is not None:
        now[0] += 60
    # All windows with rows are closed, and no time has passed beyond them.
    assert query.last.watermark_us == 1_767_225_600_000_000 + 4 * MINUTE


def test_what_lies_behind_an_open_transaction_is_not_silence(
    kafka: Any, sketches: Callable[..., Query], topic: Callable[..., str], send: Callable[..., None]
) -> None:
    name, now = topic(2), [1_000.0]
    query = sketches(name, idleTimeout="5000")
    query.reader._clock = lambda: now[0]
    values = [b'{"at":"2026-01-01T00:%02d:%02d","item":1}' % divmod(n, 60) for n in range(300)]
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": name})
    producer.init_transactions(120)
    producer.begin_transaction()
    for value in values:
        producer.produce(name, value, partition=0)
    assert producer.flush(120) == 0
    send(name, values, partition=1)
    for _ in range(5):
        query.batch()
        now[0] += 10
    assert query.last.watermark_us < 0
    producer.commit_transaction(120)
    batches = None
    while (result := query.batch()) is not None or batches is None:
        batches = result
        now[0] += 10
    assert account(batches)["counted"] == 600


def test_one_wrong_clock_condemns_none_of_the_rows_that_follow(
    sketches: Callable[..., Query], topic: Callable[..., str], send: Callable[..., None]
) -> None:
    name = topic()
    values = [b'{"at":"2026-01-01T00:%02d:%02d"}' % divmod(n, 60) for n in range(600)]
    # In a recording it can't be known; far ahead of the clock it is a dead letter.
    wrong = [b'{"at":"2026-01-02T00:00:00"}', b'{"at":"2126-01-02T00:00:00"}']
    send(name, values[:30])
    send(name, wrong)
    send(name, values[30:])
    query = sketches(name)
    batches = query.batch(ReadMaxRows(40))
    while (result := query.batch(ReadMaxRows(40))) is not None:
        batches = result
    assert batches is not None
    expected = {"read": 602, "counted": 601, "filtered": 0, "late": 0, "dead_lettered": 1}
    assert account(batches) == expected
