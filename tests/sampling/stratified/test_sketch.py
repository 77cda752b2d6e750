"""Stratified samples: uniform within each key, bounded over all, exact however rows are split."""

from __future__ import annotations

import datetime
import itertools
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from streamgauge.sampling.stratified import StratifiedReservoir, StratifiedReservoirGroups
from streamgauge.sketches.core.protocol import SketchError

from ..chance import deviation, repeat

RUNS = 1500
KEYS = np.array([0] * 5 + [1] * 30 + [2] * 2 + [3] * 83)


def counted(groups: StratifiedReservoirGroups) -> np.ndarray:
    """How often each item is in the samples of 120 rows shuffled."""
    rows = np.random.default_rng(0).permutation(120)
    table = repeat(groups, rows, key=KEYS[rows])._pool.table()
    return np.bincount(table["items"].combine_chunks().flatten().to_numpy(), minlength=120)


def test_every_row_of_a_key_is_equally_likely() -> None:
    counts = counted(StratifiedReservoirGroups(RUNS, 4, seed=1))
    for key, size in enumerate(np.bincount(KEYS)):
        expected = RUNS * min(4 / size, 1)
        own = counts[key == KEYS]
        assert (own == RUNS).all() if size <= 4 else abs(deviation(own, expected, RUNS)) < 4


def test_k_falls_to_what_fits_and_stays_uniform() -> None:
    groups = StratifiedReservoirGroups(RUNS, 50, capacity=17, seed=1)
    counts = counted(groups)
    assert groups[0].k == 5 and (groups._pool.sizes == 17).all()
    for key, size in enumerate(np.bincount(KEYS)):
        own = counts[key == KEYS]
        assert (own == RUNS).all() if size <= 5 else abs(deviation(own, RUNS * 5 / size, RUNS)) < 4


def test_too_many_keys_leave_the_same_keys_of_any_order() -> None:
    keys = np.repeat(np.arange(500), 3)
    order = np.random.default_rng(5).permutation(1500)
    samples = [
        StratifiedReservoir(4, capacity=40, seed=1).update(np.arange(1500), keys),
        StratifiedReservoir(4, capacity=40, seed=2).update(order, keys[order]),
        StratifiedReservoir(4, capacity=40, seed=3).update(order[:700], keys[order[:700]])
        | StratifiedReservoir(4, capacity=40, seed=4).update(order[700:], keys[order[700:]]),
    ]
    for sample in samples:
        table = sample.strata()
        assert table["key"].to_pylist() == samples[0].strata()["key"].to_pylist()
        assert table["n"].to_pylist() == [3] * 40 and (sample.k, len(sample), sample.n) == (1, 40, 1500)
        values = sample.values()
        assert (keys[values["item"].to_numpy()] == values["key"].to_numpy()).all()


@pytest.mark.slow
@pytest.mark.parametrize("capacity", [10_000, 300, 40])
def test_merging_and_cutting_are_exact(capacity: int) -> None:
    rng = np.random.default_rng(capacity)
    rows, keys = np.arange(4000), rng.zipf(1.3, 4000) % 200
    whole = StratifiedReservoir(8, capacity, seed=1).update(rows, keys)
    for cuts in ([5, 12, 13, 900], range(0, 4000, 100)):
        parts = StratifiedReservoir(8, capacity, seed=1)
        for batch in np.split(rows, list(cuts)):
            parts.update(batch, keys[batch])
        assert parts == whole
    samples = [
        StratifiedReservoir(k, capacity, seed=i).update(rows[i::4], keys[i::4])
        for i, k in enumerate([8, 9, 8, 12])
    ]
    images = {
        ((samples[a] | samples[b]) | (samples[c] | samples[d])).to_bytes()
        for a, b, c, d in itertools.permutations(range(4))
    } | {(samples[0] | (samples[1] | (samples[2] | samples[3]))).to_bytes()}
    assert len(images) == 1
    merged = StratifiedReservoir.from_bytes(images.pop())
    table = dict(zip(merged.strata()["key"].to_pylist(), merged.strata()["n"].to_pylist()))
    counts = np.bincount(keys)
    assert all(counts[key] == n for key, n in table.items()) and merged.n == 4000
    assert len(merged) <= capacity and (capacity < 200 or set(table) == set(keys.tolist()))


def test_memory_stays_bounded_while_keys_keep_coming() -> None:
    sample = StratifiedReservoir(3, capacity=1000, seed=1)
    for start in range(0, 400_000, 100_000):
        sample.update(np.arange(start, start + 100_000), np.arange(start, start + 100_000))
    store = sample._groups._pool
    assert len(sample) == 1000 and len(store._ids) == 1000 and len(store._keys) == 1000
    assert len(store._pool.items) < 5000 and len(store._pool.slots[0]) < 300_000


def test_groups_keep_their_own_keys() -> None:
    rng = np.random.default_rng(6)
    rows, groups, keys = np.arange(3000), rng.integers(0, 4, 3000), rng.integers(0, 20, 3000)
    many = StratifiedReservoirGroups(4, k=3, capacity=50, seed=1)
    for cut in np.array_split(rows, 5):
        many.update(groups[cut], cut, key=keys[cut])
    again = StratifiedReservoirGroups(4, k=3, capacity=50)
    again.merge([0, 1, 2, 3], many.to_arrow())
    for group in range(4):
        values = many[group].values()
        items = values["item"].to_numpy()
        assert (groups[items] == group).all() and (keys[items] == values["key"].to_numpy()).all()
        assert many[group].k == 2 and len(many[group]) == 40 and again[group] == many[group]


@pytest.mark.parametrize(
    "keys",
    [
        pa.array(["a", "b", None, "a"]),
        pa.array([1.5, float("nan"), None, 1.5]),
        pa.array([{"x": 1, "y": "a"}, {"x": 2, "y": None}, None, {"x": 1, "y": "a"}]),
        pa.array(["a", "b", None, "a"]).dictionary_encode(),
        pa.array([[1, 2], [], None, [1, 2]]),
        pa.array([True, False, None, True]),
    ],
    ids=["string", "double", "struct", "dictionary", "list", "boolean"],
)
def test_keys_of_any_type(keys: pa.Array) -> None:
    sample = StratifiedReservoir(5, seed=1).update(pa.array(["w", "x", "y", "z"]), keys)
    again = StratifiedReservoir.from_bytes(sample.to_bytes())
    assert again == sample
    result = {tuple(sorted(row["items"])): row["n"] for row in again.strata().to_pylist()}
    assert result == {("w", "z"): 2, ("x",): 1, ("y",): 1}


DAY = datetime.date(2026, 3, 1)
MIDNIGHT = datetime.datetime(2026, 3, 1)
EQUAL_KEYS = {
    "numbers": [
        pa.array([17]),
        pa.array([17.0]),
        pa.array([17], pa.uint64()),
        pa.array([Decimal("17.00")]),
        pa.array([17], pa.decimal256(40, 2)),
        pa.array([17.0], pa.float16()),
    ],
    "truth": [pa.array([True]), pa.array([1]), pa.array([1.0])],
    "days": [
        pa.array([DAY]),
        pa.array([DAY], pa.date64()),
        pa.array([MIDNIGHT], pa.timestamp("s")),
        pa.array([MIDNIGHT], pa.timestamp("ns", "UTC")),
        pd.Series([pd.Timestamp("2026-03-01", tz="Europe/Berlin") + pd.Timedelta(hours=1)]),
    ],
    "spans": [pa.array([3], pa.duration("s")), pa.array([3_000_000], pa.duration("us"))],
    "hours": [pa.array([datetime.time(3, 4)]), pa.array([datetime.time(3, 4)], pa.time32("s"))],
    "texts": [pa.array(["é"]), pa.array(["é".encode()]), pa.array(["é"], pa.large_string())],
}


@pytest.mark.parametrize("sort", EQUAL_KEYS)
def test_equal_keys_are_one_whatever_their_type(sort: str) -> None:
    for one, other in itertools.permutations(EQUAL_KEYS[sort], 2):
        sample = StratifiedReservoir(5, seed=1).update(["v"], key=one).update(["w"], key=other)
        assert sample.strata()["n"].to_pylist() == [2], (one, other)
        merged = StratifiedReservoir(5, seed=1).update(["v"], key=one)
        merged.merge(StratifiedReservoir(5, seed=2).update(["w"], key=other))
        assert merged.strata()["n"].to_pylist() == [2], (one, other)


@pytest.mark.parametrize(
    ("held", "other"),
    [
        ([1], ["1"]),
        ([1], [DAY]),
        ([True], [5]),
        ([17], [Decimal("17.5")]),
        ([DAY], [datetime.datetime(2026, 3, 1, 12)]),
        ([1], pa.array([2**64 - 1], pa.uint64())),
        (["a"], [b"\xff"]),
        ([datetime.time(3)], [datetime.timedelta(hours=3)]),
    ],
)
def test_a_key_that_none_of_the_kept_type_equals_is_refused(held: Any, other: Any) -> None:
    sample = StratifiedReservoir(5, seed=1).update(["v"], key=held)
    before = sample.to_bytes()
    with pytest.raises(SketchError, match="cast them"):
        sample.update(["w"], key=other)
    assert sample.to_bytes() == before


def test_nulls_nothing_and_answers() -> None:
    sample = StratifiedReservoir(2, seed=1)
    assert sample.answer() == {"n": 0, "strata": []} and len(sample.values()) == 0
    assert StratifiedReservoir.from_bytes(sample.to_bytes()) == sample
    sample.update([1, None, 3], key="only").update(None, key="none").update([], key=[])
    assert sample.answer()["strata"][0] | {"values": 0} == {"key": "only", "n": 2, "values": 0, "error": 0.0}
    nothing = StratifiedReservoir(2).update([1], key=pa.nulls(1)).update([2], key=["a"])
    assert sorted(map(str, nothing.strata()["key"].to_pylist())) == ["None", "a"]


def test_what_does_not_fit_is_refused_and_changes_nothing() -> None:
    sample = StratifiedReservoir(2, seed=1).update([1, 2], ["a", "b"])
    before = sample.to_bytes()
    with pytest.raises(TypeError, match="key="):
        sample.update([1])
    with pytest.raises(ValueError, match="one key a row"):
        sample.update([1, 2, 3], ["a", "b"])
    with pytest.raises(SketchError, match="cast them"):
        sample.update([1], [7])
    with pytest.raises(SketchError, match="cast them"):
        sample.update(["x"], ["a"])
    with pytest.raises(SketchError, match="parameters differ"):
        sample.merge(StratifiedReservoir(2, capacity=5))
    assert sample.to_bytes() == before
    for k, capacity in [(0, 5), (5, 0), (5, 2**31)]:
        with pytest.raises(SketchError):
            StratifiedReservoir(k, capacity)
