"""SlidingBloom: every value of a span is found, others at the promised rate, in all phases of forgetting."""

from __future__ import annotations

import math
import struct
import zlib
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.sketches.core.protocol import SketchError
from streamgauge.sketches.sliding_bloom import SlidingBloom, SlidingBloomGroups

SECOND = 1_000_000
WINDOW = 128 * SECOND
"""Cells tell a second from the next."""


def rows(seed: int, n: int = 3_000, names: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Values and times of ten windows, before and after 1970: out of order, with pauses and leaps."""
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.exponential(0.3, n) * SECOND).astype(np.int64) - 200 * SECOND
    times += (np.arange(n) > n // 3) * 40 * SECOND + (np.arange(n) > n // 2) * 100 * WINDOW
    times -= (rng.random(n) < 0.2) * rng.integers(0, 150 * SECOND, n)
    return rng.integers(0, names, n), times


def naive(values: np.ndarray, times: np.ndarray, begin: int) -> set[int]:
    """The values of rows in the second of `begin` or later."""
    return set(values[times // SECOND >= begin // SECOND].tolist())


@pytest.mark.parametrize("seed", range(3))
def test_what_is_found_is_what_the_rows_of_the_span_say_wherever_time_is(seed: int) -> None:
    values, times = rows(seed)
    seen = SlidingBloom(capacity=40_000, fpp=1e-6, window=128.0)
    requested, rng, low, wrong = np.arange(420), np.random.default_rng(seed), 0, list[Any]()
    while low < len(values):
        high = low + int(rng.integers(1, 200))
        seen.update(values[low:high], time=times[low:high])
        latest = int(times[:high].max())
        for span, now in ((128.0, None), (10.0, None), (0.5, None), (64.0, latest + 70 * SECOND)):
            begin = (latest if now is None else now) - round(span * SECOND) + 1
            hits = set(requested[seen.contains(requested, window=span, now=now)].tolist())
            if hits != naive(values[:high], times[:high], begin):
                wrong.append((high, span, now))
        low = high
    assert not wrong


def test_the_last_time_is_in_the_second_of_the_last_row() -> None:
    values, times = rows(7)
    seen = SlidingBloom(capacity=40_000, fpp=1e-6, window=128.0).update(values, time=times)
    latest = int(times.max())
    for value, last in zip(range(420), seen.last_seen(np.arange(420)).cast(pa.int64()).to_pylist()):
        own = times[values == value]
        inside = len(own) and own.max() // SECOND >= (latest - WINDOW + 1) // SECOND
        assert last == (min(own.max() // SECOND * SECOND + SECOND - 1, latest) if inside else None)
    assert SlidingBloom().last_seen(["a", None]).to_pylist() == [None]


def arriving(pattern: str, capacity: int, at: int) -> tuple[np.ndarray, np.ndarray]:
    """`capacity` different values in each window up to a time: values and times of four windows."""
    windows, each = np.arange(-4, 0), np.arange(capacity)
    values = (windows[:, None] * capacity + each).reshape(-1)
    if pattern == "evenly":
        times = at + windows[:, None] * WINDOW + (each + 1) * WINDOW // capacity
    elif pattern == "in a burst":  # the last second has all that the window may have
        times = at + (windows[:, None] + 1) * (WINDOW + 2 * SECOND) - each % SECOND
    else:  # the same values in each eighth of each window
        times = (at + np.arange(-31, 1)[:, None] * (WINDOW // 8) - each % SECOND).reshape(-1)
        return np.tile(each, 32), times
    return values, times.reshape(-1)


@pytest.mark.parametrize("pattern", ["evenly", "in a burst", "again and again"])
@pytest.mark.parametrize("fpp", [0.01, 0.001])
def test_others_are_found_at_the_promised_rate_in_every_phase(pattern: str, fpp: float) -> None:
    """At capacity, wherever a window ends within a second and within what a cell can count to."""
    capacity, strangers = 5_000, np.arange(40_000) + (1 << 40)
    rates, excess = [], list[Any]()
    for phase in range(16):
        seen = SlidingBloom(capacity, fpp, window=128.0, seed=phase)
        seen.update([-1], time=0)
        for step in range(2):  # cells go on counting from where they were, then from a later step
            at = (phase + 17 * step) * WINDOW // 16 * 9 + phase * SECOND // 16
            values, times = arriving(pattern, capacity, at)
            seen.update(values, time=times)
            assert seen.contains(values[times > at - WINDOW]).all()
            rate = float(seen.contains(strangers).mean())
            chance = 3.5 * math.sqrt(fpp / len(strangers)) + 3.5 * seen.rate / math.sqrt(capacity)
            rates.append(rate)
            if not rate <= 1.08 * fpp + chance or abs(rate - seen.rate) > chance:
                excess.append((phase, step, rate, seen.rate))
    assert not excess
    assert 0.75 * fpp < np.mean(rates) < 1.08 * fpp


def test_more_values_than_it_was_made_for_are_counted_and_said() -> None:
    seen = SlidingBloom(1_000, 0.01, window=128.0)
    assert seen.rate == seen.count() == 0 and seen.bounds() == (0, 0)
    seen.update(range(3_000), time=0)
    lower, upper = seen.bounds(3)
    assert 2_700 < lower < 3_000 < upper < 3_300 and 0.2 < seen.rate < 0.6
    assert "about 3,0" in repr(seen) or "about 2,9" in repr(seen)
    assert seen.answer()["rate"] == seen.rate and seen.answer()["lower"] < 3_000 < seen.answer()["upper"]
    seen.update(range(200), time=WINDOW + SECOND)  # and forgotten
    assert seen.rate < 1e-4 and 190 < seen.count() < 210
    assert seen.count(now=10 * WINDOW) == 0
    full = SlidingBloom(1, 0.5, window=128.0).update(range(100_000), time=0)
    assert full.rate == 1 and full.bounds() == (math.inf, math.inf)
    assert full.answer() == {"count": None, "lower": None, "upper": None, "rate": 1.0}


def test_the_bounds_hold_as_often_as_they_say() -> None:
    """Over 200 filters; those of linear counting in one lane are wider than needed."""
    missed = [0, 0, 0]
    for seed in range(200):
        n = [3, 50, 1_000, 2_000][seed % 4]
        seen = SlidingBloom(1_000, 0.01, window=128.0, seed=seed).update(range(n), time=0)
        for wide in (1, 2, 3):
            lower, upper = seen.bounds(wide)
            missed[wide - 1] += not lower <= n <= upper
    assert missed[0] < 0.317 * 200 and missed[1] < 0.046 * 200 and missed[2] == 0


def test_no_order_and_no_cut_changes_a_byte_while_it_forgets() -> None:
    values, times = rows(3)
    whole = SlidingBloom(2_000, window=128.0).update(values, time=times)
    rng = np.random.default_rng(3)
    for _ in range(4):
        order = rng.permutation(len(values))
        parts = np.array_split(order, np.sort(rng.integers(0, len(values), 6)))
        one, *others = (SlidingBloom(2_000, window=128.0).update(values[p], time=times[p]) for p in parts)
        for other in others:
            if rng.random() < 0.5:
                one = SlidingBloom.from_bytes(one.to_bytes())
            one = one | other if rng.random() < 0.5 else other.copy().merge(one)
        assert one.to_bytes() == whole.to_bytes() and one == whole


def test_groups_are_what_their_single_filters_are_in_cells_and_in_the_log() -> None:
    values, times = rows(5, 4_000)
    numbers = np.random.default_rng(5).choice([0, 1, 1, 1, 1, 2], len(values)) + 2 * (
        np.arange(4_000) > 3_990
    )
    groups = SlidingBloomGroups(3, capacity=300, window=128.0)
    for part in np.array_split(np.arange(len(values)), 7):
        if part[-1] > 3_000:
            groups.resize(5)
        groups.update(numbers[part], values[part], time=times[part])
    expected = []
    for group in range(5):
        mine = numbers == group
        expected.append(SlidingBloom(300, window=128.0).update(values[mine], time=times[mine]))
    written = groups.to_arrow()
    assert [image.as_py() for image in written] == [one.to_bytes() for one in expected]
    assert all(groups[group] == one for group, one in enumerate(expected))
    merged = SlidingBloomGroups(2, capacity=300, window=128.0)
    merged.merge(np.array([0, 1, 0, 1, 0]), written)
    assert merged[1] == expected[1] | expected[3]
    assert merged[0] == expected[0] | expected[2] | expected[4]
    many = SlidingBloomGroups(2, capacity=300, window=128.0)  # enough rows that cells are given on the way
    for _ in range(20):
        many.update(numbers % 2, values, time=times)
    assert many._lazy.used == 2
    assert [many[group] for group in (0, 1)] == [
        SlidingBloom(300, window=128.0).update(values[numbers % 2 == group], time=times[numbers % 2 == group])
        for group in (0, 1)
    ]


def test_a_sketch_of_few_values_has_few_bytes() -> None:
    few = SlidingBloom().update(range(100), time=0)
    assert len(few.to_bytes()) < 5_000 < 1_000_000 < len(few.update(range(90_000), time=0).to_bytes())


def test_times_and_spans_that_can_not_be_answered_are_refused() -> None:
    day = datetime(2026, 1, 1, tzinfo=UTC)
    seen = SlidingBloom(100, window=timedelta(minutes=1)).update(["a"], time=[day])
    later = day + timedelta(seconds=20)
    assert seen.contains("a", window=timedelta(seconds=30), now=later).tolist() == [True]
    for ask, reported in (
        (lambda: seen.contains("a", window=61.0), "60 s are kept, a span of 61 s is too long"),
        (lambda: seen.contains("a", now=day - timedelta(seconds=1)), "can't be now"),
        (lambda: seen.count(window=-1.0), "window must be a timedelta or seconds"),
        (lambda: seen.bounds(4), "1, 2 or 3 standard deviations"),
        (lambda: seen.contains(5), "holds texts"),
        (lambda: seen.update(["b"]), "needs the rows' event times"),
        (lambda: seen.update(["b", "c"], time=[day, None]), "a row without a time"),
        (lambda: ["a", "b"] in seen, "`in` needs one value, got 2"),
        (
            lambda: seen.merge(SlidingBloom(100, window=61.0)),
            "can't merge .*window=60 .*window=61",
        ),
        (lambda: SlidingBloom(1 << 28), "takes .* bytes, at most"),
    ):
        with pytest.raises((TypeError, ValueError), match=reported):
            ask()
    assert "b" not in seen and None not in seen and "a" in seen


def checked(image: bytearray) -> bytes:
    """The same with the check sum that its bytes should have."""
    image[52:56] = struct.pack("<I", zlib.crc32(image[56:], zlib.crc32(image[:52])))
    return bytes(image)


def test_bytes_that_no_filter_has_are_refused_though_their_check_sum_is_right() -> None:
    image = bytearray(SlidingBloom(10, window=128.0).update([1, 2], time=5 * SECOND).to_bytes())
    n = int.from_bytes(image[48:52], "little")
    assert len(image) == 56 + 5 * n and image[6] == 1 and SlidingBloom.from_bytes(checked(image))
    swapped = image[60:64] + image[56:60] + image[64:]
    for at, new in (
        (4, b"\2"),  # another version
        (5, b"?"),
        (6, b"\0"),
        (6, b"\2"),
        (7, b"\1"),
        (8, bytes(8)),
        (16, bytes(8)),
        (24, struct.pack("<d", math.nan)),
        (36, struct.pack("<I", 9)),
        (40, struct.pack("<q", -(1 << 63))),
        (40, struct.pack("<q", (1 << 62) + 1)),
        (48, struct.pack("<I", n - 1)),
        (56, swapped),
        (56 + 4 * n - 4, struct.pack("<I", 1 << 20)),
        (56 + 4 * n, bytes(1)),
        (56 + 4 * n, b"\xff"),
    ):
        other = bytearray(image)
        other[at : at + len(new)] = new
        with pytest.raises(SketchError, match="SlidingBloom"):
            SlidingBloom.from_bytes(checked(other))
    with pytest.raises(SketchError, match="the check sum is wrong"):
        SlidingBloom.from_bytes(bytes(image[:-1]) + b"\x01")
