"""Decayed counts and quantiles against the weights themselves, summed the obvious way."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.sampling.core.decay import HalfLife
from streamgauge.sampling.decayed_count import DecayedCount, DecayedCountGroups
from streamgauge.sampling.decayed_quantiles import DecayedQuantiles
from streamgauge.sketches.core.protocol import SketchError

NOW = 1_785_000_000_000_000
HOUR = 3_600_000_000


def stream(seed: int, rows: int = 5000) -> tuple[np.ndarray, np.ndarray]:
    """Values that change with time, and their times over ten hours, out of order."""
    rng = np.random.default_rng(seed)
    times = NOW - rng.integers(0, 10 * HOUR, rows)
    return rng.lognormal(0, 1, rows) * np.where(times > NOW - HOUR, 10, -1), times


@pytest.mark.parametrize("half_life", [0.5, 60.0, 3600.0, 1e7])
def test_counts_are_the_sum_of_weights(half_life: float) -> None:
    values, times = stream(1)
    count = DecayedCount(half_life).update(values, time=times)
    for now in (int(times.max()), NOW, NOW + 3 * HOUR):
        true = HalfLife(half_life).weights(times, now).sum()
        assert count.estimate(now) == pytest.approx(true, rel=1e-9)
        lower, upper = count.bounds(now)
        assert lower <= count.estimate(now) <= upper


@pytest.mark.parametrize("half_life", [60.0, 3600.0])
def test_quantiles_are_those_of_weighted_values(half_life: float) -> None:
    values, times = stream(2)
    whole = DecayedQuantiles(half_life).update(values, time=times)
    parts = DecayedQuantiles(half_life)
    for part in np.array_split(np.arange(len(values)), 5):
        parts = DecayedQuantiles(half_life).update(values[part], time=times[part]).merge(parts)
    order = np.argsort(values)
    weights = HalfLife(half_life).weights(times, NOW)[order]
    sums = np.cumsum(weights)
    for q in (0.001, 0.05, 0.3, 0.5, 0.9, 0.999):
        true = values[order][np.searchsorted(sums, q * sums[-1])]
        for sketch in (whole, parts):
            lower, upper = sketch.quantile_bounds(q)
            assert lower <= true <= upper and abs(sketch.quantile(q) - true) <= 0.01 * abs(true)
        below, upto = whole.rank_bounds(true)
        share = sums[np.searchsorted(values[order], true)] / sums[-1]
        assert below * (1 - 1e-9) <= share <= upto * (1 + 1e-9)
    assert whole.quantile(0.6) > 0 > DecayedQuantiles(1e7).update(values, time=times).quantile(0.6)


def test_bounds_hold_where_little_is_left() -> None:
    count, rows = DecayedCount(1.0).update(["a"] * 3, time=0), 3
    for age in (0, 900, 1_022, 1_060, 1_073, 1_074, 1_080, 5_000):
        lower, upper = count.bounds(age * 1_000_000)
        true = rows * Fraction(1, 2**age)
        assert lower <= true <= upper, age
    assert DecayedCount().bounds() == (0.0, 0.0)


def test_values_at_the_edges_of_buckets_lie_within_their_bounds() -> None:
    for accuracy in (0.003, 0.01, 0.3):
        keys = np.random.default_rng(3).integers(-20_000, 20_000, 300) * accuracy
        edges = np.exp(np.round(keys) * np.log1p(2 * accuracy / (1 - accuracy)))
        near = (edges[:, None] * (1 + np.arange(-1, 2) * 2.0**-52)).ravel()
        values = np.concatenate([near, -near])
        sketch = DecayedQuantiles(60.0, accuracy).update(values, time=0)
        ordered = np.sort(values)
        # The share at which as many values as this one are counted.
        for i in range(0, len(values), 7):
            lower, upper = sketch.quantile_bounds((i + 0.5) / len(values))
            assert lower <= ordered[i] <= upper


def test_parts_of_any_age_add_up() -> None:
    late = DecayedCount(1.0).update(["old"] * 8, time=NOW - 10_000_000_000)
    new = DecayedCount(1.0).update(["new"] * 2, time=NOW)
    assert (late | new).estimate() == (new | late).estimate() == 2.0
    assert (late | new).n == 10
    near = DecayedCount(1.0).update(["old"] * 8, time=NOW - 3_000_000)
    assert (near | new).to_bytes() == (new | near).to_bytes()
    assert (near | new).estimate() == 3.0
    years = [datetime(1, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)]
    both = DecayedCount(timedelta(days=365)).update([1, 2], time=pa.array(years))
    assert both.estimate() == pytest.approx(1.0) and both.estimate(years[1]) == pytest.approx(1.0)


def test_a_time_before_the_latest_row_is_refused() -> None:
    # Ten half-lives before its latest row, each row would count for 1,024.
    count = DecayedCount(60.0).update(["a", "b"], time=[NOW - 600_000_000, NOW])
    groups = DecayedCountGroups(3, 60.0)
    groups.update([0, 1], ["a", "b"], time=[NOW - 600_000_000, NOW])
    for early in (NOW - 1, NOW - 600_000_000, NOW - 10**9 * 600):
        for estimates in (count.estimate, count.bounds, groups.counts):
            with pytest.raises(ValueError, match="now must not be before the latest row"):
                estimates(early)
    assert count.estimate(NOW) == count.estimate() == 1 + 2**-10
    assert groups.counts(NOW).tolist() == [2**-10, 1.0, 0.0]
    assert DecayedCount(60.0).estimate(NOW) == 0.0


def test_many_groups_of_different_ages() -> None:
    values, times = stream(3)
    numbers = np.arange(len(values)) % 7
    groups = DecayedCountGroups(3, 600.0)
    groups.resize(8)
    for part in np.array_split(np.arange(len(values)), 4):
        groups.update(numbers[part], values[part], time=times[part])
    weights = HalfLife(600.0).weights(times, NOW)
    assert groups.counts(NOW) == pytest.approx(np.bincount(numbers, weights, 8))
    assert groups[7].n == 0 and groups.counts()[7] == 0.0


def test_no_count_is_below_zero_however_many_rows_it_saw() -> None:
    image = bytearray(DecayedCount(60.0).update(7, time=NOW).to_bytes())
    image[32:40] = (1 << 54).to_bytes(8, "little")
    count = DecayedCount.from_bytes(bytes(image))
    assert count.n == 1 << 54
    assert count.bounds()[0] == count.answer()["lower"] == 0.0


def test_wrong_use_is_named() -> None:
    for family in (DecayedCount, DecayedQuantiles):
        with pytest.raises(SketchError, match="half_life"):
            family(0.0)
        with pytest.raises(TypeError, match="time"):
            family(1.0).update([1.0])
        with pytest.raises(SketchError, match="alf-li"):
            family(1.0).update([1.0], time=0).merge(family(2.0).update([1.0], time=0))
        other: Any = family(2.0)
        with pytest.raises(SketchError, match="can't take in"):
            family(1.0).merge(
                DecayedCount(1.0) if isinstance(other, DecayedQuantiles) else DecayedQuantiles(1.0)
            )
    with pytest.raises(SketchError, match="relative_accuracy"):
        DecayedQuantiles(1.0, 0.7)
    with pytest.raises(SketchError, match="empty"):
        DecayedQuantiles(1.0).quantile(0.5)
