"""Filling forward: the same rows however messages are cut into batches, and after a worker has taken over."""

from __future__ import annotations

import random

import numpy as np
import polars as pl
import pytest

from streamgauge import Stream, StreamTester, count
from streamgauge.operators.steps.forward_filler import ForwardFiller, look_back_of
from streamgauge.operators.steps.row_steps import Stepped

LAST = 7
LINES = Stream.from_schema({"pid": pl.Int64, "ip": pl.String, "at": pl.Int64}, time=pl.from_epoch("at"))
STREAM = LINES.fill_forward("ip", by="pid", last=LAST).group_by("ip").tumbling("1m").agg(n=count())


def rows(n: int = 200) -> list[tuple[int | None, str | None]]:
    dice = random.Random(3)
    return [
        (dice.choice([None, 1, 2, 3, 4, 5, 6]), dice.choice([None, None, "a", "b", "c"])) for _ in range(n)
    ]


def plain(given: list[tuple[int | None, str | None]]) -> list[str | None]:
    """By a look back from each row."""
    result: list[str | None] = []
    for at, (pid, ip) in enumerate(given):
        before = (known for key, known in reversed(given[max(0, at - LAST + 1) : at]) if key == pid and known)
        result.append(ip if ip is not None or pid is None else next(before, None))
    return result


def filler() -> ForwardFiller:
    result = look_back_of(STREAM)
    assert isinstance(result, ForwardFiller)
    return result


def pushed(by: ForwardFiller, given: list[tuple[int | None, str | None]], first: int) -> list[str | None]:
    frame = pl.DataFrame(given, schema={"pid": pl.Int64, "ip": pl.String}, orient="row")
    left = Stepped(frame.with_columns(at=pl.lit(0)), np.arange(len(given)), 0)
    times = np.zeros(len(given), np.int64)
    return by.mark(left, times, None, first + np.arange(len(given))).frame["ip"].to_list()


@pytest.mark.parametrize("size", [1, 3, 64, 200])
def test_batches_make_no_difference(size: int) -> None:
    given, one, filled = rows(), filler(), list[str | None]()
    for low in range(0, len(given), size):
        filled += pushed(one, given[low : low + size], low)
    assert filled == plain(given)
    assert one.size < 2_000


def test_a_successor_reads_again_from_the_replay_offset() -> None:
    given, first = rows(), filler()
    pushed(first, given[:120], 0)
    start = first.replay_from(120)
    assert 120 - LAST <= start <= 120
    second = filler()
    pushed(second, given[start:120], start)
    assert pushed(second, given[120:], 120) == plain(given)[120:]


def test_in_a_stream() -> None:
    given = rows()
    tester = StreamTester(STREAM)
    for low in range(0, len(given), 11):
        tester.feed([{"pid": pid, "ip": ip, "at": 1_767_225_600} for pid, ip in given[low : low + 11]])
    expected = pl.Series(plain(given)).value_counts().rows()
    assert sorted(tester.finish().windows().select("ip", "n").rows(), key=str) == sorted(expected, key=str)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: LINES.fill_forward("ip", by="host"), "no column 'host'"),
        (lambda: LINES.fill_forward("ip", by=()), "by must name the columns whose values group"),
        (lambda: LINES.fill_forward("ip", by="ip"), "by must name the columns whose values group"),
        (lambda: LINES.fill_forward("ip", by="pid", last=0), "last must be a number of messages from 1"),
        (
            lambda: LINES.deduplicate("pid", last=9).fill_forward("ip", by="pid"),
            r"has deduplicate\(\) already",
        ),
        (
            lambda: LINES.fill_forward("ip", by="pid").deduplicate("pid", last=9),
            r"has fill_forward\(\) already",
        ),
        (lambda: LINES.fill_forward("ip", by="pid").count_window(3), r"has fill_forward\(\), which depends"),
    ],
)
def test_what_cannot_be_filled_is_named(wrong: object, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        wrong()  # type: ignore[operator]
