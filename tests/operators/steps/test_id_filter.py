"""Ids in fixed memory: every duplicate is found, others at the promised rate, wherever reading begins."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.operators.definition.deduplication import TooManyIds
from streamgauge.operators.steps.id_filter import IdFilter

STEP = 10
WITHIN = 128 * STEP
STRETCH = 255 * STEP


def arrivals(seed: int, n: int = 6_000, ids: int = 400) -> tuple[pa.Array, np.ndarray]:
    """Ids and times: out of order, some far behind, a few of a clock that is ahead, before and after 1970."""
    rng = np.random.default_rng(seed)
    times = np.arange(n) * 3 - 7_000 + (np.arange(n) > n // 2) * 40_000
    times = times - (rng.random(n) < 0.2) * rng.integers(0, 600, n) + (rng.random(n) < 0.01) * 5_000_000
    return pa.array(rng.integers(0, ids, n), mask=rng.random(n) < 0.05), times


def naive(ids: list[Any], times: np.ndarray) -> list[bool]:
    """The rule, row by row: ids count from the first step in reach to the end of the last step's stretch."""
    before, result = dict[Any, list[int]](), list[bool]()
    for name, time in zip(ids, times.tolist()):
        known = before.setdefault(name, [])
        low, end = (time - WITHIN + 1) // STEP * STEP, ((time + WITHIN - 1) // STRETCH + 1) * STRETCH
        result.append(name is not None and any(low <= one < end for one in known))
        known.append(time)
    return result


@pytest.mark.parametrize("seed", range(4))
def test_duplicates_are_those_of_the_rule_wherever_batches_are_cut_and_reading_begins_again(
    seed: int,
) -> None:
    names, times = arrivals(seed)
    expected, offsets = naive(names.to_pylist(), times), np.arange(len(times))
    latest = np.maximum.accumulate(np.where(times > 1_000_000, -(1 << 40), times))
    behind, rng, low, again = 700, np.random.default_rng(seed), 0, 0
    seen = IdFilter(WITHIN, 40_000, 1e-7, behind)
    while low < len(times):
        high = min(len(times), low + int(rng.integers(1, 300)))
        result = seen.mark([names[low:high]], times[low:high], offsets[low:high])
        assert result.tolist() == expected[low:high]
        seen.forget_before(int(latest[high - 1]) - behind)
        if rng.random() < 0.3:  # another worker
            first = seen.replay_from(high)
            again += high - first
            seen = IdFilter(WITHIN, 40_000, 1e-7, behind)
            seen.mark([names[first:high]], times[first:high], offsets[first:high])
            seen.forget_before(int(latest[high - 1]) - behind)
        low = high
    assert 1_000 < sum(expected) < 5_500 and again > 1_000


@pytest.mark.parametrize("last", [4, 400])
def test_a_row_taken_for_a_duplicate_is_taken_for_one_after_any_restart(last: int) -> None:
    """With a rate of a tenth, mistakes are frequent: they are the same ones, whatever was read before."""
    rng, n = np.random.default_rng(last), 20_000
    names, times = pa.array(np.arange(n)), np.arange(n) * 4 - rng.integers(0, last, n)
    whole = IdFilter(WITHIN, 300, 0.1, last)
    marked = whole.mark([names], times, np.arange(n))
    assert 0.05 < marked.mean() < 0.13
    different, seen, low = 0, IdFilter(WITHIN, 300, 0.1, last), 0
    while low < n:
        high = low + int(rng.integers(1, 700))
        rows = slice(low, high)
        different += int((seen.mark([names[rows]], times[rows], np.arange(n)[rows]) != marked[rows]).sum())
        seen.forget_before(int(times[:high].max()) - last)
        first = seen.replay_from(high)
        assert high - first < 1_500
        seen = IdFilter(WITHIN, 300, 0.1, last)
        seen.mark([names[first:high]], times[first:high], np.arange(n)[first:high])
        low = high
    assert different == 0


@pytest.mark.parametrize("fpp", [0.01, 0.001])
def test_others_are_dropped_at_the_promised_rate_in_every_phase(fpp: float) -> None:
    """Each id comes once, 2,000 within reach, over 24 stretches: by sixteenths of a stretch."""
    capacity, n = 2_000, 96_000
    times = np.arange(n) * WITHIN // capacity
    seen, parts = IdFilter(WITHIN, capacity, fpp), list[np.ndarray]()
    for low in range(0, n, 1_000):
        rows = np.arange(low, low + 1_000)
        parts.append(seen.mark([pa.array(rows + 1_000_000)], times[rows], rows))
        seen.forget_before(int(times[rows[-1]]))
    dropped = np.concatenate(parts)[capacity:]
    phases = times[capacity:] % STRETCH * 16 // STRETCH
    rates = np.array([dropped[phases == phase].mean() for phase in range(16)])
    chance = 4 * math.sqrt(fpp / (len(dropped) / 16))
    assert (rates < 1.08 * fpp + chance).all(), rates
    assert 0.6 * fpp < dropped.mean() < 1.08 * fpp + chance / 4


@pytest.mark.parametrize(("behind", "stretches"), [(0, 2), (5 * WITHIN, 5)])
def test_memory_is_that_of_the_stretches_in_reach_however_long_the_stream_is(
    behind: int, stretches: int
) -> None:
    seen, sizes = IdFilter(WITHIN, 5_000, 0.01, behind), list[int]()
    for low in range(0, 400_000, 2_500):
        times = np.arange(low, low + 2_500) * WITHIN // 5_000
        seen.mark([pa.array(np.arange(low, low + 2_500))], times, times)
        seen.forget_before(int(times[-1]) - behind)
        sizes.append(seen.size)
    assert 0.8 < max(sizes) / (stretches * 5_000 * 12) < 1.1


@pytest.mark.parametrize("apart", [1, 5_000])
def test_more_ids_than_it_was_made_for_are_an_error_that_says_how_many(apart: int) -> None:
    seen = IdFilter(WITHIN, 1_000, 0.01)
    names, at = np.arange(1_000), np.arange(1_000) // 10
    for low in range(0, 10 * apart, apart):  # as many as there may be, again and again: over a border as well
        seen.mark([pa.array(names)], low * STEP + at, names)
        seen.forget_before(low * STEP + 100)
    start = 10 * apart * STEP
    seen.mark([pa.array(np.arange(1_600) + 5_000)], start + np.arange(1_600) // 4, np.arange(1_600))
    reported = r"about (1,[5-7]|2,[4-7])\d\d ids within reach, the capacity is 1,000: \d+\.\d\d% of rows"
    with pytest.raises(TooManyIds, match=reported):
        seen.forget_before(start + 400)


def test_rows_of_all_times_are_an_error_before_they_are_gigabytes() -> None:
    seen, n = IdFilter(WITHIN, 100, 0.01), 10_000
    times = np.arange(n) * STRETCH
    seen.mark([pa.array(np.arange(4_000))], times[:4_000], np.arange(4_000))
    with pytest.raises(TooManyIds, match=r"lie so far apart in time that .* set max_ahead="):
        seen.mark([pa.array(np.arange(n))], times, np.arange(n))
    orderly = IdFilter(WITHIN, 100, 0.01)
    for low in range(0, n, 100):
        orderly.mark([pa.array(np.arange(100))], times[low : low + 100], np.arange(100))
        orderly.forget_before(int(times[low + 99]))
    assert orderly.size < 200_000


def test_rows_of_an_unbelievable_time_are_neither_judged_nor_noted() -> None:
    seen = IdFilter(WITHIN, 1_000, 1e-6)
    believed = np.array([False, True, False])
    times = np.array([5, 6, 1 << 60])
    assert seen.mark([pa.array(["a", "a", "b"])], times, np.arange(3), believed).tolist() == [False] * 3
    assert seen.replay_from(3) == 1
