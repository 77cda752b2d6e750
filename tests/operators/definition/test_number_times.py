"""Numbers that no date can show are dead letters, in every unit and from every format."""

from __future__ import annotations

import io
import json as plain_json
from collections.abc import Iterator

import fastavro
import numpy as np
import polars as pl

from streamgauge import Stream, StreamTester, avro, count, json
from streamgauge.operators.definition.number_times import NumberLimits, saturated
from streamgauge.operators.sketching.account import Account
from streamgauge.operators.steps.row_steps import RowSteps
from streamgauge.operators.watermarks.partition_watermark import broken_clocks
from streamgauge.operators.windows.window import YEAR_1, YEAR_10000

UNITS = {"s": 10**0, "ms": 10**3, "us": 10**6, "ns": 10**9}
NEW_YEAR = 1_767_225_600
"""The first second of 2026."""
MOST = 2**63 - 1
ENDS = (MOST, -MOST - 1, MOST - 1, -MOST, MOST // 2, -MOST // 2)


def extremes(unit: str) -> Iterator[int]:
    """Numbers that are no time of the years 1 to 9999, and those that wrapping around would make one."""
    factor = 10**6 // UNITS[unit] if unit != "ns" else 1
    near = [MOST // factor + 1, -MOST // factor - 1] if factor > 1 else []
    # Half of int64 in nanoseconds is a date.
    return (number for number in (*ENDS, *near) if unit != "ns" or abs(number) in (MOST, MOST + 1))


def refused_with(time: pl.Expr | str, value: object, numbers: list[int]) -> str:
    """What is wrong with how rows of good numbers, and of these, are counted; empty if nothing is."""
    stream = Stream.from_kafka("readings", value=value, time=time).tumbling("1m").agg(n=count())
    tester = StreamTester(stream)
    tester.feed([{"at": number} for number in numbers])
    account = tester.finish().account
    expected = Account(read=len(numbers), counted=2, dead_lettered=len(numbers) - 2)
    reasons = {row.reason.partition(",")[0] for row in tester.refused}
    counted = tester.windows()["window_start"].dt.year().to_list()
    if account == expected and reasons == {"the event time is out of range"} and set(counted) <= {2025, 2026}:
        return ""
    return f"{account}, {reasons}, {counted}"


def test_every_unit_by_every_expression() -> None:
    wrong = []
    for unit, of_second in UNITS.items():
        numbers = [NEW_YEAR * of_second, *extremes(unit), NEW_YEAR * of_second + 1]
        times = {"from_epoch": pl.from_epoch("at", time_unit=unit)}
        if unit != "ns":
            times["product"] = (pl.col("at") * (10**6 // of_second)).cast(pl.Datetime("us"))
            times["zone"] = pl.from_epoch("at", time_unit=unit).dt.replace_time_zone("Europe/Helsinki")
        for name, time in times.items():
            if result := refused_with(time, json({"at": pl.Int64}), numbers):
                wrong.append(f"{name} in {unit}: {result}")
    assert wrong == []


def test_unsigned_and_short_numbers() -> None:
    for kind, unit, bad in (("UInt64", "ms", 2**64 - 1), ("UInt64", "s", 2**63), ("Int32", "s", None)):
        numbers = [NEW_YEAR * UNITS[unit], NEW_YEAR * UNITS[unit] + 1, *([] if bad is None else [bad])]
        stream = Stream.from_schema({"at": getattr(pl, kind)}, time=pl.from_epoch("at", time_unit=unit))
        tester = StreamTester(stream.tumbling("1m").agg(n=count()))
        tester.feed([{"at": number} for number in numbers])
        assert tester.finish().account == Account(
            read=len(numbers), counted=2, dead_lettered=len(numbers) - 2
        )


def test_limits_are_known_of_a_line_over_one_column_of_integers() -> None:
    schema = pl.Schema({"a": pl.Int64, "b": pl.Int64, "x": pl.Float64})
    later = pl.from_epoch(pl.col("a") + 60, time_unit="s")
    assert NumberLimits.of(later, schema) == NumberLimits("a", -62_135_683_260, 253_402_387_140)
    for other in (pl.from_epoch(pl.col("a") + pl.col("b"), time_unit="s"), pl.from_epoch("x", time_unit="s")):
        assert NumberLimits.of(other, schema) is None
    for other in (-pl.col("a"), pl.col("a") ** 2):
        assert NumberLimits.of(pl.from_epoch(other, time_unit="s"), schema) == NumberLimits(
            "a", 1 - MOST, MOST - 1
        )


def test_columns_of_every_unit_with_and_without_a_zone() -> None:
    wrong = []
    kinds = [pl.Datetime(unit, zone) for unit in ("ms", "us", "ns") for zone in (None, "UTC", "Asia/Kolkata")]
    for kind in (*kinds, pl.Date):
        of_second = UNITS[kind.time_unit] if isinstance(kind, pl.Datetime) else 1
        bad = (
            [MOST, -MOST, -MOST - 1]
            if getattr(kind, "time_unit", "") == "ns"
            else [MOST, 1 - MOST, 2**60, -(2**60), 2**58]
        )
        number, base = (NEW_YEAR * of_second, pl.Int64) if kind != pl.Date else (NEW_YEAR // 86_400, pl.Int32)
        numbers = [number, *(bad if kind != pl.Date else [2**31 - 1, -(2**31)])]
        given = pl.Series(numbers, dtype=base).cast(kind)
        times = saturated(given).to_physical()
        in_range = times.is_between(YEAR_1, YEAR_10000 - 1)
        if in_range.to_list() != [True, *[False] * (len(numbers) - 1)] or times[0] != NEW_YEAR * 10**6:
            wrong.append(f"{kind}: {times.to_list()}")
    assert wrong == []


def test_avro_logical_types() -> None:
    wrong = []
    for unit, word in (("ms", "millis"), ("us", "micros")):
        schema = {
            "type": "record",
            "name": "Reading",
            "fields": [{"name": "at", "type": {"type": "long", "logicalType": f"timestamp-{word}"}}],
        }
        plain = {**schema, "fields": [{"name": "at", "type": "long"}]}
        numbers = [NEW_YEAR * UNITS[unit], *extremes(unit), NEW_YEAR * UNITS[unit] + 1]
        messages = []
        for number in numbers:
            written = io.BytesIO()
            fastavro.schemaless_writer(written, plain, {"at": number})
            messages.append(written.getvalue())
        value = avro(plain_json.dumps(schema))
        tester = StreamTester(
            Stream.from_kafka("readings", value=value, time="at").tumbling("1m").agg(n=count())
        )
        tester.feed_messages(messages)
        account = tester.finish().account
        if account != Account(read=len(numbers), counted=2, dead_lettered=len(numbers) - 2):
            wrong.append(f"{word}: {account}")
    assert wrong == []


def test_the_timestamps_of_messages() -> None:
    stream = Stream.from_kafka("readings", value=json({"v": pl.Int64})).tumbling("1m").agg(n=count())
    steps, frame = RowSteps(stream.complete()), pl.DataFrame({"v": [1, 2, 3]})
    stamps = np.array([NEW_YEAR * 1000, MOST, MOST // 1000 + 1])
    _, times = steps.event_times(frame, stamps, steps.apply(frame, print), print)
    assert (
        times[0] == NEW_YEAR * 1_000_000
        and (broken_clocks(times, stamps, -1, 0) == [False, True, True]).all()
    )


def test_an_expression_that_fails_on_the_numbers_tried_is_asked_about_all_but_the_ends() -> None:
    """Polars panics at days this far away, in any time zone but UTC."""
    days = pl.from_epoch("at", time_unit="d").cast(pl.Datetime("us")).dt.replace_time_zone("Europe/Helsinki")
    limits = NumberLimits.of(days, pl.Schema({"at": pl.Int64}))
    assert limits == NumberLimits("at", 1 - MOST, MOST - 1)
