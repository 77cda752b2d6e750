"""Shares of rows: each row on its own, or the same keys in every stream."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.sampling.bernoulli import BernoulliSample, BernoulliSampleGroups
from streamgauge.sampling.hash_sample import HashSample, HashSampleGroups
from streamgauge.sampling.hash_sample.groups import keys_in_share
from streamgauge.sketches.core.protocol import SketchError
from streamgauge.sketches.hll import HLL

from ..chance import repeat


@pytest.mark.parametrize("p", [0.5, 0.05, 0.9, 0.001])
def test_each_row_is_taken_with_probability_p_on_its_own(p: float) -> None:
    runs, n = 3000, 200
    parts = repeat(BernoulliSampleGroups(runs, p, seed=1), np.arange(n))._pool.parts(np.arange(runs))
    accepted = np.zeros((runs, n), bool)
    accepted[np.repeat(np.arange(runs), parts.samples["size"]), parts.items.to_numpy()] = True
    spread = (p * (1 - p) / runs) ** 0.5
    assert abs(accepted.mean(0) - p).max() < 4.5 * spread
    assert abs(accepted.mean() - p) < 4 * spread / n**0.5
    pairs = (accepted[:, :-1] & accepted[:, 1:]).mean()
    assert abs(pairs - p * p) < 5 * p / (runs * n) ** 0.5
    assert accepted.sum(1).var() == pytest.approx(n * p * (1 - p), rel=0.15)


def test_all_rows_with_probability_one() -> None:
    sample = BernoulliSample(1.0).update(["a", None, "b"])
    assert sorted(sample.values().to_pylist()) == ["a", "b"] and sample.n == 2


def test_merging_and_cutting_are_exact() -> None:
    rows = np.arange(5000)
    whole = BernoulliSample(0.03, seed=1).update(rows)
    for cuts in ([5, 12, 13, 900], range(0, 5000, 7)):
        parts = BernoulliSample(0.03, seed=1)
        for batch in np.split(rows, list(cuts)):
            parts.update(batch)
        assert parts == whole
    groups = BernoulliSampleGroups(2, p=0.03, seed=1)
    groups.update(np.zeros(5000, int), rows)
    assert groups[0] == whole and groups[1].n == 0
    spread = BernoulliSampleGroups(7, p=0.5, seed=1)
    spread.update(rows % 7, rows)
    assert all((spread[g].values().to_numpy() % 7 == g).all() and spread[g].n > 700 for g in range(7))
    samples = [BernoulliSample(0.1, seed=i).update(rows[i::3]) for i in range(3)]
    images = {
        (samples[a] | samples[b] | samples[c]).to_bytes() for a, b, c in itertools.permutations(range(3))
    }
    assert len(images) == 1
    assert len(BernoulliSample.from_bytes(images.pop())) == sum(map(len, samples))


def test_the_same_keys_are_sampled_in_every_stream() -> None:
    users = np.arange(40_000)
    chosen = keys_in_share(users, 0.1)
    assert abs(chosen.mean() - 0.1) < 4 * (0.09 / 40_000) ** 0.5
    assert (keys_in_share(pa.array(users).cast(pa.int32()), 0.1) == chosen).all()
    assert (keys_in_share(users, 0.3) >= chosen).all()
    order = np.random.default_rng(1).permutation(np.repeat(users, 2))
    sample = HashSample(0.1).update(order, key=order)
    assert sorted(sample.values().to_pylist()) == sorted(np.repeat(users[chosen], 2).tolist())


def test_sampled_keys_can_still_be_counted() -> None:
    users = np.arange(300_000)
    chosen = users[keys_in_share(users, 0.2)]
    assert HLL(14).update(chosen).estimate() == pytest.approx(len(chosen), rel=0.03)


def test_the_sample_of_keys_is_pinned() -> None:
    words = ["ann", "bob", "", "é", "carol", "dave", "eve"]
    assert keys_in_share(words, 0.5).tolist() == [True, True, False, True, True, False, False]
    assert np.flatnonzero(keys_in_share(np.arange(40), 0.25)).tolist() == [4, 7, 11, 34, 36]


def test_keys_of_records_and_nulls() -> None:
    keys = pa.array([{"a": 1, "b": "x"}, {"a": 1, "b": "y"}, None, {"a": None, "b": "x"}])
    assert keys_in_share(keys, 1.0).tolist() == [True, True, False, True]
    sample = HashSample(1.0).update(["p", "q", "r", None], keys)
    assert sorted(sample.values().to_pylist()) == ["p", "q"] and sample.n == 3


def test_hash_samples_merge_in_any_order() -> None:
    rows = np.arange(3000)
    samples = [HashSample(0.2).update(rows[i::3], key=rows[i::3] % 50) for i in range(3)]
    images = {
        (samples[a] | samples[b] | samples[c]).to_bytes() for a, b, c in itertools.permutations(range(3))
    }
    assert len(images) == 1
    merged = HashSample.from_bytes(images.pop())
    assert sorted(merged.values().to_pylist()) == rows[keys_in_share(rows % 50, 0.2)].tolist()
    groups = HashSampleGroups(3, p=0.2)
    groups.update(rows % 3, rows, key=rows % 50)
    assert [len(groups[i]) for i in range(3)] == [len(sample) for sample in samples]


@pytest.mark.parametrize("p", [0.0, -0.1, 1.1, float("nan"), "x"])
def test_a_share_out_of_range_is_refused(p: float) -> None:
    for family in (BernoulliSample, HashSample):
        with pytest.raises(SketchError, match="p must be"):
            family(p)
    with pytest.raises(SketchError, match="parameters differ"):
        BernoulliSample(0.5).merge(BernoulliSample(0.25))
    with pytest.raises(TypeError, match="key="):
        HashSample(0.5).update([1])


def test_a_hash_does_not_depend_on_nulls_beside_it() -> None:
    users = pa.array(["u" + str(i) for i in range(200)])
    with_null = pa.concat_arrays([users, pa.array([None], pa.string())])
    assert keys_in_share(with_null, 0.5)[:-1].tolist() == keys_in_share(users, 0.5).tolist()


def test_a_share_read_off_the_sample_lies_inside_its_error() -> None:
    inside = 0
    for seed in range(200):
        sample = BernoulliSample(0.02, seed=seed).update(np.arange(10_000) < 3000)
        share = np.mean(sample.values().to_numpy(zero_copy_only=False))
        inside += abs(share - 0.3) <= sample.error(0.9)
        assert sample.answer()["error"] == sample.error(0.95) < 0.12
    assert inside >= 180 - 3.5 * np.sqrt(20)
    assert BernoulliSample(1.0).update([1, 2]).error() == 0.0


def test_sizes_are_within_the_promised_range_of_their_mean() -> None:
    wrong, runs = [], 3000
    for n, p in ((1, 0.8), (8, 0.02), (8, 0.05), (30, 0.2), (500, 0.01)):
        of_rows, of_keys = BernoulliSampleGroups(runs, p, seed=1), HashSampleGroups(runs, p, seed=1)
        numbers, rows = np.repeat(np.arange(runs), n), np.arange(runs * n)
        of_rows.update(numbers, rows)
        of_keys.update(numbers, rows, key=rows)
        for groups in (of_rows, of_keys):
            sizes = groups._pool.parts(np.arange(runs)).samples["size"]
            held = np.mean(np.abs(sizes - n * p) <= 2 * np.sqrt(n * p * (1 - p)) + 1)
            if held < 0.942:  # three deviations below 95 %
                wrong.append((n, p, held))
    assert not wrong
