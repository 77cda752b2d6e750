"""Uniform samples: every row equally likely, merges exact in any order, any type of item, sound bytes."""

from __future__ import annotations

import datetime as dt
import itertools
import pickle
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from streamgauge.sampling.reservoir import Reservoir, ReservoirGroups
from streamgauge.sketches.core.protocol import SketchError

from ...cases import each
from ..chance import deviation, included, merged, repeat

RUNS = 4000


@pytest.mark.parametrize(("k", "n"), [(1, 20), (5, 60), (30, 400), (50, 51)])
def test_every_row_is_equally_likely(k: int, n: int) -> None:
    counts = included(repeat(ReservoirGroups(RUNS, k, seed=1), np.arange(n)), n)
    assert counts.sum() == k * RUNS
    assert abs(deviation(counts, RUNS * k / n, RUNS)) < 4


@pytest.mark.slow
def test_seeds_are_independent() -> None:
    counts = np.zeros(60)
    for seed in range(RUNS):
        counts[Reservoir(5, seed=seed).update(np.arange(60)).values().to_numpy()] += 1
    assert abs(deviation(counts, RUNS / 12, RUNS)) < 4


@pytest.mark.parametrize("seeds", [(1, 2, 3, 4), (5, 5, 5, 5)])
def test_merged_parts_are_distributed_as_the_whole(seeds: tuple[int, ...]) -> None:
    cuts = np.split(np.arange(200), [3, 50, 170])
    parts = [repeat(ReservoirGroups(RUNS, 8, seed=seed), part) for seed, part in zip(seeds, cuts)]
    assert abs(deviation(included(merged(*parts), 200), RUNS * 8 / 200, RUNS)) < 4


def test_pairs_are_equally_likely() -> None:
    n, k, runs = 7, 3, 7000
    table = repeat(ReservoirGroups(runs, k, seed=2), np.arange(n)).to_columns()
    chosen = np.zeros((runs, n), int)
    chosen[table["group"].to_numpy(), table["item"].to_numpy()] = 1
    counts = (chosen.T @ chosen)[np.triu_indices(n, 1)]
    assert abs(counts - runs / 7).max() < 4.5 * (runs / 7) ** 0.5


def test_the_first_of_the_values_is_a_uniform_sample_too() -> None:
    table = repeat(ReservoirGroups(RUNS, 10, seed=3), np.arange(30)).to_columns()
    counts = np.bincount(table["item"].to_numpy()[::10], minlength=30)
    assert abs(deviation(counts, RUNS / 30, RUNS)) < 4


def test_merging_is_exact_in_any_order() -> None:
    parts = [
        Reservoir(k, seed=k).update(np.arange(n) + 1000 * k)
        for k, n in [(9, 50), (12, 0), (10, 9), (11, 400)]
    ]
    images = set()
    for order in itertools.permutations(parts):
        first, second, third, fourth = (part.copy() for part in order)
        images.add((first | second | third | fourth).to_bytes())
        images.add(((first | second) | (third | fourth)).to_bytes())
        images.add((first | (second | (third | fourth))).to_bytes())
    assert len(images) == 1
    whole = Reservoir.from_bytes(images.pop())
    assert (whole.n, whole.k, len(whole)) == (459, 9, 9)


def test_merging_keeps_the_greatest_priorities_of_both() -> None:
    one, other = Reservoir(20, seed=1).update(range(500)), Reservoir(20, seed=2).update(range(500, 900))
    both = pa.concat_tables([one.to_columns(), other.to_columns()]).sort_by([("priority", "descending")])
    assert (one | other).to_columns().equals(both.slice(0, 20).combine_chunks())


def test_any_cut_into_batches_takes_the_same_rows() -> None:
    rows = np.random.default_rng(0).integers(0, 2**62, 3000)
    whole = Reservoir(16, seed=5).update(rows)
    for cuts in ([1, 2, 15, 16, 17, 900], range(0, 3000, 7), range(3000)):
        parts = Reservoir(16, seed=5)
        for batch in np.split(rows, list(cuts)):
            parts.update(batch)
        assert parts == whole


def test_a_seed_repeats_a_run_even_through_bytes_and_no_seed_never_does() -> None:
    first = Reservoir(10, seed=3).update(range(100))
    again = pickle.loads(pickle.dumps(first)).update(range(100, 5000))
    assert again == first.update(range(100, 5000)) == Reservoir(10, seed=3).update(range(5000))
    assert Reservoir(10).update(range(5000)) != Reservoir(10).update(range(5000))
    blank = Reservoir(10).to_bytes()
    assert Reservoir.from_bytes(blank).update(range(99)) != Reservoir.from_bytes(blank).update(range(99))


def test_a_group_is_a_sample_of_its_own_rows() -> None:
    rng = np.random.default_rng(1)
    groups, rows = rng.integers(0, 40, 5000), np.arange(5000)
    many = ReservoirGroups(10, k=7, seed=2)
    many.resize(40)
    for cut in np.array_split(rows, 11):
        many.update(groups[cut], rows[cut])
    assert many.n.tolist() == np.bincount(groups).tolist()
    for group in range(40):
        kept = many[group].values().to_numpy()
        assert len(kept) == 7 and (groups[kept] == group).all()
    again = ReservoirGroups(40, k=7, seed=2)
    again.update(groups, rows)
    assert again.to_arrow().equals(many.to_arrow())


def test_a_million_groups_cost_little() -> None:
    many = ReservoirGroups(1_000_000, k=1000)
    many.update(np.arange(1_000_000), np.arange(1_000_000))
    many.update(np.arange(0, 1_000_000, 2), np.arange(500_000))
    pool = many._pool
    assert pool.heaps.nbytes + sum(array.nbytes for array in pool.slots) < 110e6
    assert len(many[2]) == 2 and len(many[3]) == 1


def test_groups_merge_serialised_samples() -> None:
    rows = np.arange(3000)
    parts = [ReservoirGroups(3, k=5, seed=seed) for seed in range(4)]
    for part, cut in zip(parts, np.array_split(rows, 4)):
        part.update(cut % 3, cut)
    merged = ReservoirGroups(3, k=5, seed=9)
    column = pa.concat_arrays([part.to_arrow() for part in parts] + [pa.array([None], pa.binary())])
    merged.merge(np.append(np.tile(np.arange(3), 4), 0), column)
    for group in range(3):
        assert merged[group] == parts[0][group] | parts[1][group] | parts[2][group] | parts[3][group]


def test_samples_merge_as_exploded_columns() -> None:
    parts = [ReservoirGroups(2, k=5, seed=seed) for seed in range(3)]
    for part in parts:
        part.update(np.arange(90) % 2, [f"{i}" for i in range(90)])
    table = pa.concat_tables([part.to_columns() for part in parts])
    frame = pl.DataFrame(table).with_columns(
        rank=pl.col("priority").rank("ordinal", descending=True).over("group")
    )
    best = frame.filter(pl.col("rank") <= 5).sample(fraction=1.0, shuffle=True, seed=1)
    out = ReservoirGroups(2, k=5)
    out.merge_columns(best["group"], best["priority"], best["item"], sum(part.n for part in parts))
    merged = ReservoirGroups(2, k=5)
    for part in parts:
        merged.merge([0, 1], part.to_arrow())
    for group in range(2):
        assert out[group].to_columns().equals(merged[group].to_columns())
        assert out[group].n == 135
    before = out.to_arrow()
    for n in ([0, 0], None, 2, "2", ["2", "1"], [2, None], [2, 1.5], [2**70, 1], [2], object()):
        with pytest.raises((SketchError, TypeError), match="Reservoir: n"):
            out.merge_columns([0], [-1.0], ["x"], n)
        assert out.to_arrow() == before


ITEMS: dict[str, Any] = {
    "int64": pa.array([1, None, -(2**63), 2**63 - 1]),
    "double": pa.array([0.0, -0.0, float("nan"), float("inf"), None]),
    "uint64": pa.array([2**64 - 1, 0], pa.uint64()),
    "string": pa.array(["", "é", None, "x" * 300]),
    "large binary": pa.array([b"", b"\0\xff", None], pa.large_binary()),
    "boolean": pa.array([True, False, None]),
    "timestamp": pa.array([dt.datetime(2026, 1, 1), None], pa.timestamp("us", "UTC")),
    "dictionary": pa.array(["a", "b", "a", None]).dictionary_encode(),
    "struct": pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": "y"}]),
    "list of structs": pa.array([[{"a": 1}, {"a": 2}], [], None]),
    "decimal": pa.array([None, 1]).cast(pa.decimal128(25, 2)),
    "frame": pl.DataFrame({"user": [1, 2], "text": ["a", None], "tags": [["x"], None]}),
}


@each("items", ITEMS.values(), ids=ITEMS)
def test_items_of_any_type_come_back(items: Any) -> None:
    sample = Reservoir(100, seed=1).update(items)
    back = Reservoir.from_bytes(sample.to_bytes())
    kept = sample.values()
    assert back.values().equals(kept) or "nan" in str(kept)
    wanted = items.to_struct() if isinstance(items, pl.DataFrame) else items
    wanted = pa.array(wanted.to_arrow() if isinstance(wanted, pl.Series) else wanted)
    while pa.types.is_list(wanted.type):
        wanted = wanted.flatten()
    assert sorted(map(repr, kept.to_pylist())) == sorted(map(repr, wanted.drop_null().to_pylist()))
    assert sample.n == len(kept) == len(wanted) - wanted.null_count
    groups = ReservoirGroups(2, k=100)
    groups.update(np.ones(len(items), int), items)
    assert (len(groups[0]), len(groups[1])) == (0, sample.n)


def test_scalars_rows_and_nothing() -> None:
    sample = Reservoir(5).update(7).update(None).update([]).update(pa.array([], pa.string())).update(2.5)
    assert sorted(sample.values().to_pylist()) == [2.5, 7.0]
    row = {"user": 1, "at": dt.datetime(2026, 1, 2), "raw": b"\x01"}
    assert Reservoir(5).update(row).answer() == {
        "n": 1,
        "values": [{"user": 1, "at": "2026-01-02T00:00:00", "raw": "01"}],
        "error": 0.0,
    }


def test_a_full_sample_is_the_stream_until_k() -> None:
    sample = Reservoir(100).update(range(100))
    assert sorted(sample.values().to_pylist()) == list(range(100)) and sample.error() == 0.0
    assert 0.13 < sample.update(range(100)).error(0.95) < 0.14


def test_a_share_read_off_the_sample_lies_inside_its_error() -> None:
    rows = np.arange(10_000) < 3000
    outside = 0
    for seed in range(200):
        sample = Reservoir(200, seed=seed).update(rows)
        outside += abs(sample.values().to_numpy(zero_copy_only=False).mean() - 0.3) > sample.error(0.9)
    assert outside <= 20


@pytest.mark.parametrize("k", [0, -1, 2**31, 1.5, "3"])
def test_a_k_out_of_range_is_refused(k: Any) -> None:
    with pytest.raises(SketchError, match="k must be a whole number from 1"):
        Reservoir(k)


def test_what_does_not_fit_is_refused_and_changes_nothing() -> None:
    sample = Reservoir(5, seed=1).update([1, 2])
    before = sample.to_bytes()
    for wrong in (["a"], pa.array([{"a": 1}]), [b"x"]):
        with pytest.raises(SketchError, match="cast them"):
            sample.update(wrong)
    with pytest.raises(SketchError, match="cast them"):
        sample.merge(Reservoir(5).update(["a"]))
    with pytest.raises(TypeError):
        sample | 3
    groups = ReservoirGroups(2, k=3)
    with pytest.raises(IndexError):
        groups.update([0, 2], [1, 2])
    with pytest.raises(ValueError, match="one group number a row"):
        groups.update([0], [1, 2])
    assert sample.to_bytes() == before and groups.n.sum() == 0


@pytest.mark.parametrize(
    "items", [[1, 2, 3], ["a", "bc", ""], [{"a": 1}], []], ids=["numbers", "texts", "rows", "none"]
)
@pytest.mark.parametrize("seed", [None, 1])
def test_changed_bytes_are_refused(items: Any, seed: int | None) -> None:
    image = Reservoir(3, seed=seed).update(items).to_bytes()
    for end in range(len(image)):
        with pytest.raises(SketchError):
            Reservoir.from_bytes(image[:end])
    for at in range(len(image)):
        for flip in (1, 0x80, 0xFF):
            changed = bytearray(image)
            changed[at] ^= flip
            with pytest.raises(SketchError):
                Reservoir.from_bytes(bytes(changed))
    with pytest.raises(SketchError):
        Reservoir.from_bytes(image + b"\0")
