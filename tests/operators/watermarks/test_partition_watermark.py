"""Event time of one partition, row by row against the rule in plain words."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from streamgauge.operators.watermarks.partition_watermark import (
    CONFIRMED,
    YEAR_10000,
    PartitionTime,
    broken_clocks,
)
from streamgauge.operators.windows.tumbling import Tumbling
from streamgauge.operators.windows.window import EARLIEST

from ...cases import each

SECOND = 1_000_000
HOUR = 3_600 * SECOND
MINUTE = Tumbling.every("1m")
DELAY = 10 * SECOND


def judged(times: list[int], cuts: list[int] | None = None, time: PartitionTime | None = None):
    """Which rows are late, and the time after them, cut into batches."""
    time = time or PartitionTime()
    late: list[bool] = []
    edges = [0, *(cuts or []), len(times)]
    for low, high in itertools.pairwise(edges):
        part = np.array(times[low:high], np.int64)
        result = time.advance(part, MINUTE, DELAY, HOUR)
        late += [False] * len(part) if result is None else (MINUTE.last_ends(part) <= result).tolist()
    return late, time


def streams() -> list[tuple[str, list[int]]]:
    random = np.random.default_rng(5)
    steady = (np.sort(random.integers(0, 5_000, 400)) - random.exponential(20, 400).astype(int)) * SECOND
    ahead = np.where(random.random(400) < 0.1, steady + 30 * HOUR, steady)
    nights = np.concatenate([steady + night * 24 * HOUR for night in range(4)])
    sparse = np.arange(100) * 2 * HOUR
    burst = np.concatenate([steady[:100], steady[:50] + 24 * HOUR, steady[100:]])
    return [
        (name, result.tolist())
        for name, result in {
            "steady": steady,
            "a tenth ahead": ahead,
            "nights": nights,
            "sparse": sparse,
            "burst": burst,
            "first ahead": np.concatenate([[30 * HOUR], steady]),
            "first of 1970": np.concatenate([[0], steady + 10**15]),
        }.items()
    ]


@pytest.mark.parametrize("name,times", streams(), ids=[name for name, _ in streams()])
def test_any_cut_into_batches_judges_alike(name: str, times: list[int]) -> None:
    whole, time = judged(times)
    random = np.random.default_rng(9)
    for pieces in (1, 7, 100, len(times)):
        cuts = sorted(random.integers(0, len(times), pieces).tolist())
        assert judged(times, cuts) == (whole, time)
    assert judged(times, list(range(1, len(times)))) == (whole, time)


def test_rows_ahead_move_nothing_and_condemn_nothing() -> None:
    times = dict(streams())
    assert judged(times["a tenth ahead"])[1].seen_us == judged(times["steady"])[1].seen_us
    right = [late for late, time in zip(judged(times["a tenth ahead"])[0], times["a tenth ahead"]) if late]
    assert len(right) <= sum(judged(times["steady"])[0])


def test_a_jump_is_believed_once_enough_rows_lie_behind_it() -> None:
    start = [n * SECOND for n in range(CONFIRMED)]
    there = [24 * HOUR + n * SECOND for n in range(CONFIRMED)]
    _, almost = judged(start + there[:-1])
    assert (almost.seen_us, almost.latest_us) == (start[-1], there[-2])
    _, arrived = judged(start + there)
    assert (arrived.seen_us, arrived.latest_us) == (there[-1], there[-1])
    _, interrupted = judged([*start, *there[:-1], start[-1], there[-1]])
    assert interrupted.seen_us == start[-1]


def test_of_rows_far_apart_the_earliest_is_believed() -> None:
    start = [n * SECOND for n in range(CONFIRMED)]
    apart = [(n + 1) * 24 * HOUR for n in range(CONFIRMED)]
    assert judged(start + apart)[1].seen_us == apart[0]


def test_without_a_limit_every_row_moves_time() -> None:
    time = PartitionTime()
    times = np.array([0, 24 * HOUR, SECOND])
    reached = time.advance(times, MINUTE, DELAY, -1)
    assert (MINUTE.last_ends(times) <= reached).tolist() == [False, False, True]
    assert time.seen_us == 24 * HOUR


def test_windows_that_were_given_out_take_no_more_rows() -> None:
    late, time = judged([30 * SECOND, 90 * SECOND], time=PartitionTime(closed_us=60 * SECOND))
    assert late == [True, False]
    assert time.watermark(DELAY) == 80 * SECOND


def test_what_is_kept_of_a_partition_comes_back() -> None:
    _, time = judged([0, 24 * HOUR, SECOND, 48 * HOUR])
    assert PartitionTime(*time.to_list()) == time


NOW = 1_767_225_600 * SECOND


@each(
    ("time", "stamp", "wrong"),
    [
        (NOW, NOW, False),
        (NOW + HOUR, NOW, False),
        (NOW + HOUR + 1, NOW, True),
        (NOW + 24 * HOUR, NOW + 24 * HOUR, True),  # the timestamp is of the same wrong clock
        (NOW - 8_760 * HOUR, NOW, False),  # a recording that is replayed now
        (NOW - 8_760 * HOUR, NOW - 8_760 * HOUR, False),  # one whose messages are as old as its events
        (NOW - 8_000 * HOUR, NOW - 8_760 * HOUR, True),
        (NOW + 2 * HOUR, 0, True),  # no timestamp: the clock on the wall alone
        (NOW - 8_760 * HOUR, -1, False),
        (YEAR_10000, YEAR_10000, True),
    ],
)
def test_broken_clocks_are_recognised_by_the_wall_and_by_the_message(
    time: int, stamp: int, wrong: bool
) -> None:
    times, stamps = np.array([NOW - HOUR, time]), np.array([NOW, stamp]) // 1000
    result = broken_clocks(times, stamps, HOUR, NOW)
    assert (result is not None and result.tolist() == [False, True]) == wrong
    assert (broken_clocks(times, stamps, -1, NOW) is None) == (time < YEAR_10000)


def test_nothing_read_nothing_reported() -> None:
    none = np.array([], np.int64)
    assert broken_clocks(none, none, HOUR, NOW) is None
    assert PartitionTime().advance(none, MINUTE, DELAY, HOUR) is None
    assert PartitionTime().latest_us == PartitionTime().watermark(DELAY) == EARLIEST
