"""SlidingHLL: what it says of a span is what a sketch that saw this span alone says."""

from __future__ import annotations

import itertools
import json
import math
import pickle
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.sketches.core.columns.columns import as_values
from streamgauge.sketches.core.protocol import SketchError
from streamgauge.sketches.hll.coupons import coupon_chunks
from streamgauge.sketches.sliding_hll import SlidingHLL, SlidingHLLGroups
from streamgauge.sketches.sliding_hll.images import read_image
from streamgauge.sketches.sliding_hll.store import NEVER, most_coupons

from ...cases import each

SECOND = 1_000_000
OLD_IMAGE = (
    "53484c4c01040000fdc5644b7df017ee00e1f505000000000800000000000000c0c62d00000000004054890000"
    "000000404b4c0000000000c0cf6a000000000000127a000000000040420f000000000000000000000000008084"
    "1e000000000081000000c2000000c201000042020000830200000103000002030000c1030000"
)


def stream(n: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Values, half of them repeated, and times of ten minutes, about a tenth of them out of order."""
    rng = np.random.default_rng(seed)
    times = np.sort(rng.integers(0, 600 * SECOND, n)) - (rng.random(n) < 0.1) * rng.integers(
        0, 90 * SECOND, n
    )
    return rng.integers(0, n // 2, n), times


def what_counts(lg_k: int, window: int, coupons: np.ndarray, times: np.ndarray) -> tuple[set, int]:
    """The (key, time) pairs and the cutoff that an image of these rows holds, found the plain way."""
    latest: dict[int, int] = {}
    for coupon, time in zip(coupons.tolist(), times.tolist()):
        key = (coupon & (1 << 26) - 1) << 6 | coupon >> 26
        if time > times.max() - window:
            latest[key] = max(latest.get(key, NEVER), time)
    by_time = sorted(latest.values(), reverse=True)
    cutoff = by_time[most_coupons(lg_k) - 1] if len(by_time) >= most_coupons(lg_k) else NEVER
    registers: dict[int, int] = {}
    for key, time in latest.items():
        key &= (64 << lg_k) - 1
        registers[key] = max(registers.get(key, NEVER), time)
    entries = {entry for entry in latest.items() if entry[1] > cutoff}
    for key, time in registers.items():
        outdone = any(registers.get(key & ~63 | value, NEVER) >= time for value in range(key % 64 + 1, 64))
        if time <= cutoff and not outdone:
            entries.add((key, time))
    return entries, cutoff


@each(("lg_k", "distinct"), [(4, 12), (4, 60), (4, 2_000), (5, 40), (6, 300), (8, 5_000)])
@each("late", [0, 30, 10_000])
def test_an_image_holds_what_the_rows_alone_say(lg_k: int, distinct: int, late: int) -> None:
    """One sketch and groups, in one update and in many: values again and again, in order and not."""
    for seed in range(12):
        rng = np.random.default_rng([lg_k, distinct, late, seed])
        n = int(rng.integers(1, 1_500))
        values, times = rng.integers(0, distinct, n), np.arange(n) - rng.integers(0, late + 1, n)
        ((_, coupons),) = coupon_chunks(as_values(values))
        entries, cutoff = what_counts(lg_k, 1_000, coupons, times)
        at_once = SlidingHLL(lg_k, 0.001).update(values, time=times)
        groups, grown = SlidingHLLGroups(2, lg_k, 0.001), SlidingHLL(lg_k, 0.001)
        groups.update(np.ones(n, int), values, time=times)
        for start in range(0, n, 37):
            grown.update(values[start : start + 37], time=times[start : start + 37])
        for sketch in (at_once, grown, groups[1]):
            image = read_image(sketch.to_bytes())
            assert set(zip(image.keys.tolist(), image.times.tolist())) == entries and image.cutoff == cutoff


@each("n", [50, 3_000, 60_000])
@each("span", [600.0, 120.0, 7.0, 0.01])
def test_a_span_is_what_a_sketch_that_saw_it_alone_says(n: int, span: float) -> None:
    values, times = stream(n)
    sliding = SlidingHLL(10, window=600.0).update(values, time=times)
    inside = times > times.max() - round(span * SECOND)
    alone = SlidingHLL(10, window=600.0).update(values[inside], time=times[inside])
    assert sliding.estimate(window=span) == alone.estimate(window=span) == alone.estimate()
    assert sliding.bounds(2, window=span) == alone.bounds(2)
    truth = len(np.unique(values[inside]))
    lower, upper = sliding.bounds(3, window=timedelta(seconds=span))
    assert lower <= truth <= upper


def test_the_window_moves_on_with_the_clock() -> None:
    sketch = SlidingHLL(window=60.0).update(["a", "b"], time=[0, 50 * SECOND])
    assert round(sketch.estimate()) == 2
    assert round(sketch.estimate(now=59 * SECOND)) == 2
    assert round(sketch.estimate(now=60 * SECOND)) == 1
    assert round(sketch.estimate(now=datetime(1970, 1, 1, 0, 1, 49, tzinfo=UTC))) == 1
    assert sketch.estimate(now=110 * SECOND) == 0
    sketch.update("c", time=200 * SECOND).update("late", time=140 * SECOND).update(
        "in time", time=141 * SECOND
    )
    assert round(sketch.estimate()) == 2
    with pytest.raises(ValueError, match="can't be now"):
        sketch.estimate(now=199 * SECOND)
    with pytest.raises(ValueError, match="too long"):
        sketch.estimate(window=61.0)
    with pytest.raises(ValueError, match="standard deviations"):
        sketch.bounds(4)


def test_the_promised_error_is_kept_and_not_hugely_loose() -> None:
    rng = np.random.default_rng(3)
    n, trials = 20_000, 150
    errors, inside = [], np.zeros(4, int)
    for _ in range(trials):
        sketch = SlidingHLL(9, window=100.0).update(
            rng.integers(0, 1 << 62, 2 * n), time=np.arange(2 * n) * 5_000
        )
        errors.append(sketch.estimate() / n - 1)
        for std_devs in (1, 2, 3):
            lower, upper = sketch.bounds(std_devs)
            inside[std_devs] += lower <= n <= upper
    promised = 1.04 / math.sqrt(512)
    assert 0.85 * promised < np.std(errors) < 1.15 * promised
    assert abs(np.mean(errors)) < 3.5 * promised / math.sqrt(trials)
    assert (inside[1:] >= [85, 134, 146]).all() and inside[1] < 125


def test_neither_order_nor_cuts_nor_merges_change_a_byte() -> None:
    values, times = stream(20_000)
    image = SlidingHLL(8, window=120.0).update(values, time=times).to_bytes()
    order = np.random.default_rng(2).permutation(len(values))
    assert SlidingHLL(8, window=120.0).update(values[order], time=times[order]).to_bytes() == image
    for size in (997, 4_096):
        one_by_one, merged = SlidingHLL(8, window=120.0), SlidingHLL(8, window=120.0)
        for start in range(0, len(values), size):
            part = slice(start, start + size)
            one_by_one.update(values[part], time=times[part])
            merged.merge(SlidingHLL(8, window=120.0).update(values[part], time=times[part]))
        assert one_by_one.to_bytes() == merged.to_bytes() == image


@pytest.mark.parametrize("lg_ks", [(8, 8, 8), (8, 6, 10)])
def test_merging_is_associative_and_commutative(lg_ks: tuple) -> None:
    values, times = stream(9_000)
    cuts = [slice(0, 7_000), slice(3_000, 3_050), slice(5_000, 9_000)]
    parts = [SlidingHLL(lg, 60.0).update(values[cut], time=times[cut]) for lg, cut in zip(lg_ks, cuts)]
    whole = SlidingHLL(min(lg_ks), 60.0)
    for cut in cuts:
        whole.update(values[cut], time=times[cut])
    for a, b, c in itertools.permutations(parts):
        assert ((a | b) | c).to_bytes() == (a | (b | c)).to_bytes() == whole.to_bytes()


def test_it_stays_small() -> None:
    values, times = np.arange(300_000), np.arange(300_000) * 1_000
    sketch = SlidingHLL(8, window=100.0).update(values, time=times)
    entries = (len(sketch.to_bytes()) - 40) / 12
    assert entries < 1.5 * 256 * (1 + math.log(100_000 / 256))
    store = sketch._one._store
    places = 1 << int(store.sketches["lg"][0])
    assert places < 4 * entries
    assert len(store.keys) <= 3 * places  # its table, and room for one as large to rebuild it in


def test_times_are_timestamps_dates_or_microseconds() -> None:
    times = [datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=s) for s in (0, 30, 90)]
    micros = [int(t.timestamp() * 1e6) for t in times]
    image = SlidingHLL(window=60.0).update(["a", "b", "c"], time=micros).to_bytes()
    for column in (times, pa.array(times, pa.timestamp("ms", "UTC")), np.array(micros), pa.array(micros)):
        assert SlidingHLL(window=60.0).update(["a", "b", "c"], time=column).to_bytes() == image
    one = SlidingHLL().update(["a", "b", None, ""], time=times[0])
    assert one.to_bytes() == SlidingHLL().update(["b", "a"], time=[micros[0]] * 2).to_bytes()
    for wrong, error in (
        (None, TypeError), ([1.5, 2.0], TypeError), ([1, None], ValueError), ([1, 2, 3], ValueError),
        ([1 << 63, 1], (ValueError, OverflowError)), ([-(1 << 63), 1], ValueError),
    ):  # fmt: skip
        with pytest.raises(error):
            SlidingHLL().update(["a", "b"], time=wrong)


def test_groups_are_single_sketches_side_by_side() -> None:
    values, times = stream(20_000, seed=5)
    numbers = np.random.default_rng(5).integers(0, 30, len(values)) ** 2 // 40
    columns = [pa.array(values), pa.array(values.astype(float)), pa.array(values.astype(str))]
    for column in columns:
        groups = SlidingHLLGroups(25, lg_k=6, window=300.0)
        groups.update(numbers.astype(np.int32), column, time=times)
        singles = [SlidingHLL(6, 300.0) for _ in range(25)]
        for g, single in enumerate(singles):
            single.update(column.filter(pa.array(numbers == g)), time=times[numbers == g])
        assert groups.to_arrow().to_pylist() == [single.to_bytes() for single in singles]
        assert groups.estimates(window=50.0).tolist() == [single.estimate(50.0) for single in singles]
        assert np.stack(groups.bounds(1), axis=1).tolist() == [list(single.bounds(1)) for single in singles]
        assert groups[-1].to_bytes() == singles[-1].to_bytes()
        again = SlidingHLLGroups(25, lg_k=6, window=300.0)
        again.merge(np.arange(25), groups.to_arrow())
        assert again.to_arrow() == groups.to_arrow()


def test_groups_take_lists_and_nulls_and_refuse_what_they_have_not() -> None:
    groups = SlidingHLLGroups()
    assert len(groups) == 0 and len(groups.to_arrow()) == 0
    groups.resize(3)
    groups.update([2, 0, 1], pa.array([["a", "b"], ["a"], None]), time=[1, 2, 3])
    assert groups.estimates().round().tolist() == [1, 0, 2]
    for wrong in ([3], [-1], [2**40]):
        with pytest.raises(IndexError, match="3 groups"):
            groups.update(wrong, ["x"], time=[1])
    with pytest.raises(IndexError):
        groups[3]
    with pytest.raises(TypeError, match="time="):
        groups.update([0], ["x"])
    image = SlidingHLL().update("x", time=5).to_bytes()
    for bad, reported in (
        (SlidingHLL(10).update([1], time=[0]).to_bytes(), "lg_k=10"),
        (SlidingHLL(window=5.0).to_bytes(), "5 s"),
        (b"", "few"),
    ):
        with pytest.raises(SketchError, match=f"row 1.*{reported}"):
            groups.merge([0, 0], pa.array([None, bad], pa.binary()))
    groups.merge([1], pa.array([image]))
    with pytest.raises(SketchError, match="column of binary"):
        groups.merge([0], pa.array([1]))
    assert groups.estimates().round().tolist() == [1, 1, 2]


def test_copies_pickles_and_answers() -> None:
    values, times = stream(5_000)
    sketch = SlidingHLL(9, 300.0).update(values, time=times)
    for back in (sketch.copy(), pickle.loads(pickle.dumps(sketch)), SlidingHLL.from_bytes(bytes(sketch))):
        assert back.to_bytes() == sketch.to_bytes() and back.window == 300.0
    answer = json.loads(json.dumps(sketch.answer()))
    assert answer["lower"] < answer["estimate"] < answer["upper"]
    assert "distinct" in repr(sketch) and "window=300" in repr(sketch)
    empty = SlidingHLL()
    assert empty.answer() == {"estimate": 0, "lower": 0, "upper": 0}
    assert (
        empty.estimate(now=5) == 0 and SlidingHLL.from_bytes(empty.to_bytes()).to_bytes() == empty.to_bytes()
    )


def test_impossible_sketches_are_refused() -> None:
    for lg_k in (3, 22):
        with pytest.raises(SketchError, match="lg_k must be a whole number from 4 to 21"):
            SlidingHLL(lg_k)
    span: Any
    for span in (0, -5.0, float("nan"), "1h", 1e13):
        with pytest.raises(SketchError, match="window must be"):
            SlidingHLL(window=span)
    with pytest.raises(SketchError, match="can't be merged"):
        SlidingHLL(window=5.0).merge(SlidingHLL(window=6.0))
    with pytest.raises(SketchError, match="can't merge"):
        SlidingHLL().merge("sketch")


def test_broken_bytes_are_refused(guarded: Any) -> None:
    image = SlidingHLL(4, 60.0).update(np.arange(30), time=np.arange(30) * SECOND).to_bytes()
    for end in range(len(image)):
        with pytest.raises(SketchError, match="SlidingHLL"):
            SlidingHLL.from_bytes(guarded.at_end(image[:end]))
    flipped = bytearray(image)
    for place in range(len(image)):
        for flip in (1, 2, 4, 8, 16, 32, 64, 128, 255):
            flipped[place] ^= flip
            with pytest.raises(SketchError, match="SlidingHLL"):
                SlidingHLL.from_bytes(guarded.at_end(bytes(flipped)))
            flipped[place] ^= flip
    with pytest.raises(SketchError, match="SlidingHLL"):
        SlidingHLL.from_bytes(image + b"\0")


@pytest.mark.parametrize("lg_k", [4, 6, 8, 10, 12])
def test_bounds_hold_however_few_values_there_are(lg_k: int) -> None:
    """Spans of n values, each in a busy window, at all three confidences: at most 4 deviations too rarely."""
    most, trials = most_coupons(lg_k), 1_500
    for n in sorted({1, 2, 3, 4, 6, 9, 13, 20, 28, 37, most - 1, most, most * 3 // 2, 4 * most}):
        rng = np.random.default_rng([lg_k, n])
        groups = SlidingHLLGroups(trials, lg_k, 60.0)
        groups.update(np.repeat(np.arange(trials), n), rng.integers(0, 1 << 62, trials * n), time=0)
        for std_devs, confidence in ((1, 0.6827), (2, 0.9545), (3, 0.9973)):
            lower, upper = groups.bounds(std_devs)
            inside = ((lower <= n) & (n <= upper)).mean()
            assert inside > confidence - 4 * math.sqrt(confidence * (1 - confidence) / trials), (n, std_devs)
        if n < most:
            assert abs(groups.estimates() - n).max() < 1e-3 + (groups.estimates() < n - 0.5).sum() / 2


def test_few_values_of_a_busy_window_are_counted_exactly() -> None:
    """In any order of rows, cut and merged, and in images: 100 of the last second among 50,000 values."""
    values, times = np.arange(50_000), np.arange(50_000) * SECOND // 100
    order = np.random.default_rng(8).permutation(len(values))
    for rows in (slice(None), slice(None, None, -1), order):
        sketch = SlidingHLL(12, window=3600.0).update(values[rows], time=times[rows])
        parts = [SlidingHLL(12, 3600.0).update(values[rows][i::7], time=times[rows][i::7]) for i in range(7)]
        for part in parts[1:]:
            parts[0].merge(part)
        for same in (
            sketch,
            parts[0],
            SlidingHLL.from_bytes(sketch.to_bytes()),
            pickle.loads(pickle.dumps(sketch)),
        ):
            assert same.bounds(3, window=1.0) == pytest.approx((100, 100), abs=1e-3)
            assert same.to_bytes() == sketch.to_bytes()
        smaller = SlidingHLL(8, window=3600.0).merge(sketch)
        assert smaller.bounds(3, window=0.3) == pytest.approx((30, 30), abs=1e-3)


@pytest.mark.parametrize("times", [np.zeros(200_000, int), -np.arange(200_000), np.arange(200_000) % 1_000])
def test_coupons_are_few_whatever_the_times(times: np.ndarray) -> None:
    sketch = SlidingHLL(6, window=3600.0).update(np.arange(200_000), time=times)
    assert len(sketch._one._store.keys) < 5_000
    lower, upper = sketch.bounds(3)
    assert lower < 200_000 < upper


def test_the_first_version_of_images_is_read() -> None:
    """Ten values, one a second, as they were written before there were coupons: lg_k 4, window 100 s."""
    image = bytes.fromhex(OLD_IMAGE)
    sketch = SlidingHLL.from_bytes(image).update(["cat", "dog"], time=[70 * SECOND, 71 * SECOND])
    assert sketch.bounds(3, window=60.0) == pytest.approx((2, 2), abs=1e-3)
    lower, upper = SlidingHLL.from_bytes(image).bounds(3)
    assert lower < 10 < upper
    again = SlidingHLL.from_bytes(sketch.to_bytes())
    assert again.to_bytes() == sketch.to_bytes()
