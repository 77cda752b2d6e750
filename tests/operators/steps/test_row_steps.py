"""Rows and messages on which a step or a decoder fails are refused one by one, and the others count."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np
import polars as pl
import pytest

from streamgauge.operators.definition.aggregates import count
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.decode import Decoded
from streamgauge.operators.formats.messages import Messages, from_objects
from streamgauge.operators.sketching.account import Account
from streamgauge.operators.sketching.message_warnings import Remarks
from streamgauge.operators.sketching.partition_buffer import PartitionBuffer
from streamgauge.operators.sketching.partition_state import PartitionState
from streamgauge.operators.sketching.sketcher import Sketcher
from streamgauge.operators.steps.row_steps import RowSteps
from streamgauge.operators.testing import StreamTester
from streamgauge.operators.watermarks.partition_watermark import PartitionTime


def fail_on_odd(number: int) -> int:
    if number % 2:
        raise ValueError(f"no place for {number}")
    return number


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (pl.col("x").map_elements(fail_on_odd, return_dtype=pl.Int64), "ValueError: no place for 1"),
        (pl.col("text").cast(pl.Int64), "conversion from `str` to `i64` failed"),
    ],
    ids=["a function", "a cast"],
)
def test_rows_on_which_a_step_fails_are_refused_in_about_as_many_tries(
    step: pl.Expr, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    n, tries = 1_000, 0
    frame = pl.DataFrame(
        {
            "at": [datetime(2026, 1, 1)] * n,
            "x": range(n),
            "text": [str(number) if number % 2 == 0 else "odd" for number in range(n)],
        }
    )
    stream = Stream.from_schema(frame.schema, time="at").with_columns(y=step).tumbling("1m")
    transformed = RowSteps._transformed

    def counted(self: RowSteps, rows: Any) -> pl.DataFrame:
        nonlocal tries
        tries += 1
        return transformed(self, rows)

    monkeypatch.setattr(RowSteps, "_transformed", counted)
    refused: dict[int, str] = {}

    def refuse(rows: np.ndarray, why: str) -> None:
        refused.update(dict.fromkeys(rows.tolist(), why))

    account = Sketcher(stream.agg(posts=count("y"))).add(frame, PartitionTime(), None, refuse)
    assert account == Account(n, counted=n // 2, dead_lettered=n // 2)
    assert sorted(refused) == list(range(1, n, 2)) and refused[1].startswith(reason)
    assert tries < 1.3 * n


class Fragile:
    """A decoder of a user's, which fails where it should refuse."""

    schema = pl.Schema({"x": pl.Int64})

    def decode(self, messages: Messages) -> Decoded:
        numbers = [int(messages.value_at(i) or b"") for i in range(len(messages))]
        return Decoded(pl.DataFrame({"x": numbers}), None, np.empty(0, np.int64), [])


def source_of(value: Any) -> Stream:
    return Stream.from_kafka("posts", value=value)


def processed(values: list[bytes], alive: Any = None, value: Any = None) -> tuple[PartitionBuffer, Account]:
    stream = source_of(value or Fragile()).tumbling("1m").agg(posts=count())
    intake = PartitionBuffer(Remarks("posts", {}), alive=alive)
    intake.add_partition(PartitionState(stream, "posts", 0, 0), [])
    n = len(values)
    numbers, stamps = np.arange(n), np.full(n, 1_767_225_600_000)
    zeros = np.zeros(n, np.int32)
    intake.sketch(
        stream.reading.kafka_source,
        from_objects(("posts",), zeros, zeros, numbers, stamps, values, [None] * n, None),
    )
    return intake, intake.progress["posts", 0].account


def test_messages_on_which_a_decoder_fails_are_refused() -> None:
    intake, account = processed([b"1", b"two", b"3", b"", b"5"])
    assert account == Account(5, counted=3, dead_lettered=2)
    assert [(letter.offset, letter.value) for letter in intake.dead_letters] == [(1, b"two"), (3, b"")]
    assert intake.dead_letters[0].reason.startswith("the decoder failed: ValueError: invalid literal")


class Untold(Exception):
    def __str__(self) -> str:
        raise RuntimeError("it can't be printed")


@pytest.mark.parametrize(
    "error",
    [SystemExit(3), GeneratorExit(), MemoryError(), pl.exceptions.PanicException("p"), Untold()],
    ids=repr,
)
def test_whatever_is_raised_on_a_message_refuses_it_alone(error: BaseException) -> None:
    def fail_on_two(number: int) -> int:
        if number == 2:
            raise error
        return number

    class Raising(Fragile):
        def decode(self, messages: Messages) -> Decoded:
            decoded = super().decode(messages)
            decoded.frame["x"].map_elements(fail_on_two, return_dtype=pl.Int64)
            return decoded

    values = [b"1", b"2", b"3"]
    intake, account = processed(values, value=Raising())
    assert account == Account(3, counted=2, dead_lettered=1)
    assert intake.dead_letters[0].value == b"2" and intake.dead_letters[0].reason.startswith(
        "the decoder failed: "
    )
    steps = {"y": pl.col("x").map_elements(fail_on_two, return_dtype=pl.Int64)}
    rows = RowSteps(source_of(Fragile()).with_columns(**steps).tumbling("1m").agg(posts=count("y")))
    refused: list[int] = []
    result = rows.apply(pl.DataFrame({"x": [1, 2, 3]}), lambda numbers, why: refused.extend(numbers.tolist()))
    assert result.numbers.tolist() == [0, 2] and refused == [1]


X = pl.DataFrame({"x": [1, 2, 3]})


@pytest.mark.parametrize(
    "result",
    [
        Decoded(X[:0]),
        Decoded(X, np.array([0, 1, 3])),
        Decoded(X, np.array([2, 1, 0])),
        Decoded(X, None, np.array([0]), ["and a row, too"]),
        Decoded(X[1:], np.array([1, 2]), np.array([0]), []),
        Decoded(X[1:], np.array([1, 2]), np.array([0]), [ValueError("no text")]),
        Decoded(X.cast(pl.String)),
        Decoded(X.rename({"x": "y"})),
        None,
    ],
)
def test_messages_that_a_decoder_says_nothing_true_of_are_refused_and_not_lost(result: Any) -> None:
    class Wrong(Fragile):
        def decode(self, messages: Messages) -> Decoded:
            return result

    intake, account = processed([b"1", b"2", b"3"], value=Wrong())
    assert account == Account(3, dead_lettered=3)
    assert [letter.offset for letter in intake.dead_letters] == [0, 1, 2]


def test_who_looks_for_failing_rows_says_that_it_lives() -> None:
    calls = 0

    def alive() -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise TimeoutError("the group moved on")

    with pytest.raises(TimeoutError, match="moved on"):
        processed([b"x"] * 5, alive)


def test_a_time_may_be_made_of_one_column_in_several_ways() -> None:
    at = pl.when(pl.col("at") > 0).then(pl.from_epoch("at"))
    posts = Stream.from_schema({"at": pl.Int64}, time=at).tumbling("1m").agg(posts=count())
    tester = StreamTester(posts)
    assert tester.feed([{"at": 1_767_225_600}, {"at": -1}]).dead_lettered == 1
