"""Decayed samples: chances halve with age, times of any kind, no clock."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.sampling.core.decay import HalfLife
from streamgauge.sampling.decayed import DecayedReservoir, DecayedReservoirGroups
from streamgauge.sketches.core.protocol import SketchError

from ..chance import deviation, included, poisson_chances, repeat, successive

RUNS = 4000
NOW = 1_785_000_000_000_000
SECOND = 1_000_000


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("start", [0, NOW, -NOW])
def test_inclusion_is_that_of_decayed_weights(k: int, start: int) -> None:
    times = start + np.array([0, 10, 20, 20, 5, 35, 40, 1]) * SECOND
    chances = successive(np.exp2((times - start) / (10 * SECOND)), k)
    groups = repeat(DecayedReservoirGroups(RUNS, k, 10.0, seed=1), np.arange(8), time=times)
    assert abs(deviation(included(groups, 8), RUNS * chances, RUNS)) < 4


@pytest.mark.parametrize("step", [1, -1, 0])
def test_a_long_stream_in_any_order_of_time(step: int) -> None:
    n, k = 600, 15
    times = NOW + step * np.arange(n) * SECOND
    weights = np.exp2((times - NOW) / (100.0 * SECOND))
    counts = included(repeat(DecayedReservoirGroups(1500, k, 100.0, seed=1), np.arange(n), time=times), n)
    seen = 1500 * poisson_chances(weights, k)
    often = seen > 5
    assert abs(deviation(counts[often], seen[often], 1500)) < 4
    assert counts[~often].sum() < 2 * seen[~often].sum() + 20


def test_merging_and_cutting_are_exact() -> None:
    rng = np.random.default_rng(1)
    times = NOW + rng.integers(-100, 100, 3000) * SECOND
    rows = np.arange(3000)
    whole = DecayedReservoir(12, 30.0, seed=1).update(rows, times)
    for cuts in ([5, 12, 13, 900], range(0, 3000, 3)):
        parts = DecayedReservoir(12, 30.0, seed=1)
        for batch in np.split(rows, list(cuts)):
            parts.update(batch, times[batch])
        assert parts == whole
    samples = [
        DecayedReservoir(k, 30.0, seed=k).update(rows[i::4], times[i::4])
        for i, k in enumerate([9, 10, 11, 12])
    ]
    images = {
        ((samples[a] | samples[b]) | (samples[c] | samples[d])).to_bytes()
        for a, b, c, d in itertools.permutations(range(4))
    }
    assert len(images) == 1
    groups = DecayedReservoirGroups(2, k=12, half_life=30.0, seed=1)
    groups.update(np.zeros(3000, int), rows, time=times)
    assert groups[0] == whole and len(groups[1]) == 0


def test_times_may_be_timestamps_datetimes_or_microseconds() -> None:
    at = datetime(2026, 7, 1, 12, tzinfo=UTC)
    micros = int(at.timestamp()) * SECOND
    kinds = [
        [micros, micros + 5 * SECOND],
        np.array([micros, micros + 5 * SECOND]).astype("datetime64[us]"),
        [at, at + timedelta(seconds=5)],
        pa.array([at, at + timedelta(seconds=5)]).cast(pa.timestamp("ns", "Europe/Rome")),
        pa.array([at, at + timedelta(seconds=5)]).cast(pa.timestamp("s", "UTC")),
    ]
    images = {DecayedReservoir(5, 60.0, seed=1).update(["a", "b"], kind).to_bytes() for kind in kinds}
    assert len(images) == 1
    one = DecayedReservoir(5, timedelta(minutes=1), seed=1).update(["a", "b"], at)
    assert one == DecayedReservoir(5, 60, seed=1).update(["a", "b"], [micros, micros])


def test_the_same_weights_decay_counts() -> None:
    decay = HalfLife(60.0)
    times = NOW - np.arange(0, 600) * SECOND
    count = decay.weights(times, NOW).sum()
    assert count == pytest.approx((1 - 2.0**-10) / (1 - 2 ** (-1 / 60)))
    later = decay.weights(times, NOW + 60 * SECOND).sum()
    assert later == pytest.approx(count / 2)
    logs = decay.log_weights(times)
    assert np.exp(logs - logs[0]).sum() == pytest.approx(count, rel=1e-6)


def test_what_does_not_fit_is_refused() -> None:
    for wrong in (0, -1.0, float("nan"), float("inf"), "1m", timedelta(0)):
        with pytest.raises(SketchError, match="half_life must be"):
            DecayedReservoir(3, wrong)
    sample = DecayedReservoir(3, 60.0)
    with pytest.raises(TypeError, match="event times"):
        sample.update([1])
    with pytest.raises(TypeError, match="timestamps or int64 microseconds"):
        sample.update([1], [1.5])
    with pytest.raises(ValueError, match="without a time"):
        sample.update([1, 2], [1, None])
    with pytest.raises(ValueError, match="one time a row, 3 in all"):
        sample.update([1, 2, 3], [1, 2])
    with pytest.raises(SketchError, match="parameters differ"):
        sample.merge(DecayedReservoir(3, 61.0))
    groups = DecayedReservoirGroups(1, half_life=60.0)
    with pytest.raises(SketchError, match="parameter other than"):
        groups.merge([0], pa.array([DecayedReservoir(3, 61.0).to_bytes()]))
    assert sample.n == 0
