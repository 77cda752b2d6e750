"""Numbers that are read in the wrong unit are seen, whichever it is; those that are right never are."""

from __future__ import annotations

import logging

import numpy as np
import polars as pl
import pytest

from streamgauge.operators.definition.aggregates import count
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json.decoder import json
from streamgauge.operators.formats.messages import Messages
from streamgauge.operators.sketching.partition_buffer import PartitionBuffer
from streamgauge.operators.sketching.partition_state import PartitionState
from streamgauge.operators.sketching.remarks_by_source import RemarksBySource
from streamgauge.operators.sketching.time_units import unit_read, wrong_unit

from ...cases import each

NOW_US = 1_767_225_600_000_000
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


@each("read", PER_SECOND)
@each("true", PER_SECOND)
def test_the_unit_that_fits_is_named_if_it_is_another(read: str, true: str) -> None:
    for seconds in (700_000_000, 1_372_973_467, 1_767_225_600):
        result = wrong_unit(np.full(3, seconds * PER_SECOND[true]), read, NOW_US)
        assert (result and result[0]) == (None if read == true else true)


MOSTLY_RIGHT = [1_700_000_000_000] * 3 + [1_700_000_000] * 2


@pytest.mark.parametrize("numbers", [[0, 0], [5, 6, 7], [-1] * 3, [1e30], MOSTLY_RIGHT])
def test_what_no_unit_makes_plausible_and_what_is_mostly_right_is_left_alone(numbers: list[float]) -> None:
    assert wrong_unit(np.array(numbers, float), "ms", NOW_US) is None


def test_the_unit_is_that_of_the_expression() -> None:
    for unit in ("s", "ms", "us", "ns"):
        assert unit_read(pl.from_epoch("at", time_unit=unit), pl.Int64()) == unit
    assert unit_read((pl.col("at") * 1000).cast(pl.Datetime("us")), pl.Int64()) == "ms"
    assert unit_read(pl.from_epoch(pl.col("at").cast(pl.Int64), time_unit="s"), pl.String()) == "s"
    assert unit_read(pl.col("at"), pl.String()) is None
    assert unit_read(pl.from_epoch(pl.col("at") + 5, time_unit="s"), pl.Int64()) is None


def said(
    value: bytes, time: pl.Expr | str | None, kind: type[pl.DataType] = pl.Int64, stamp: int = 1
) -> list[str]:
    stream = Stream.from_kafka("posts", value=json({"ts": kind}), time=time).tumbling("1m").agg(n=count())
    remarks = RemarksBySource(stream, lambda _: None)
    intake = PartitionBuffer(remarks)
    intake.add_partition(PartitionState(stream, "posts", 0, 0), [])
    for first in (0, 25):
        messages = Messages.of([value] * 25, topic="posts", first_offset=first, timestamps=[stamp] * 25)
        intake.sketch(stream.reading.kafka_source, messages)
    return [reported for reported in remarks.texts if reported.startswith("time:")]


def test_a_stream_that_reads_seconds_as_milliseconds_is_warned_once_with_what_to_write(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, "streamgauge.kafka"):
        (reported,) = said(b'{"ts": 1700000000}', pl.from_epoch("ts", time_unit="ms"))
    assert reported in caplog.messages and reported == (
        'time: "ts" holds 1700000000; read as milliseconds this is 1970-01-20, as seconds it is 2023-11-14: '
        'write time=pl.from_epoch("ts", time_unit="s")'
    )


def test_and_so_is_one_that_reads_milliseconds_as_seconds_or_text_or_timestamps() -> None:
    (reported,) = said(b'{"ts": 1700000000000}', pl.from_epoch("ts"))
    assert "read as seconds this is the year 55,840, as milliseconds it is 2023-11-14" in reported
    text = pl.from_epoch(pl.col("ts").cast(pl.Int64), time_unit="us")
    (reported,) = said(b'{"ts": "1700000000"}', text, pl.String)
    assert reported.endswith('write time=pl.from_epoch(pl.col("ts").cast(pl.Int64), time_unit="s")')
    (reported,) = said(b'{"ts": 7}', None, stamp=1_700_000_000)
    assert reported.startswith(
        "time: the timestamp of messages of 'posts' holds 1700000000; read as milliseconds"
    )


def test_times_that_are_right_are_not_spoken_of() -> None:
    assert said(b'{"ts": 1700000000}', pl.from_epoch("ts")) == []
    assert said(b'{"ts": "2023-11-14T22:13:20Z"}', "ts", pl.String) == []
    assert said(b'{"ts": 7}', None, stamp=1_700_000_000_000) == []
