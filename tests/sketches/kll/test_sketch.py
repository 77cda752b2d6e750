"""KLL against naive ranks, against Apache DataSketches in C++, and against broken bytes."""

from __future__ import annotations

import copy
import functools
import pickle
from decimal import Decimal
from fractions import Fraction
from itertools import permutations
from typing import Any

import datasketches
import numba
import numpy as np
import pyarrow as pa
import pytest

from streamgauge.sketches.core.answers import USUAL_QUANTILES
from streamgauge.sketches.core.protocol import SketchError
from streamgauge.sketches.core.sorting import sort as item_sort
from streamgauge.sketches.kll import KLL, KLLGroups
from streamgauge.sketches.kll import block_thinning as kll_blocks
from streamgauge.sketches.kll import estimate as kll_estimate
from streamgauge.sketches.kll import update as kll_update
from streamgauge.sketches.kll.levels import normalized_rank_error

from ...cases import each

KINDS: list[Any] = ["double", "float", "long"]
PEERS = {
    "double": datasketches.kll_doubles_sketch,
    "float": datasketches.kll_floats_sketch,
}


def largest_rank_error(sketch: KLL, values: np.ndarray) -> float:
    """The largest rank error over every distinct value, naively.

    Between two of its items a sketch's rank stays the same and the true one grows: the error is largest at an
    item or right before the next, so that no other values need be tried.
    """
    ordered = np.sort(values)
    items = np.unique(sketch._sorted()[0])
    before = np.searchsorted(ordered, items) - 1
    points = np.unique(np.concatenate([items, ordered[np.maximum(before, 0)], ordered[-1:]]))
    true = np.searchsorted(ordered, points, side="right") / len(ordered)
    return float(np.abs(sketch.cdf(points)[:-1] - true).max())


@functools.cache
def _caller(kernel: Any) -> Any:
    @numba.njit
    def call(*given):
        return kernel(*given)

    return call


def called(kernel: Any, *given: Any) -> Any:
    """What a kernel gives that only kernels call."""
    return _caller(kernel)(*given)


@pytest.mark.parametrize("merged", [False, True])
@pytest.mark.parametrize("k", [20, 200])
def test_ranks_stay_within_the_bound_at_its_confidence(k: int, merged: bool) -> None:
    trials, broken, errors = 200, 0, []
    values = np.random.default_rng(k).normal(size=20_000)
    for seed in range(trials):
        if merged:
            sketch = KLL(k, seed=seed)
            for part, piece in enumerate(np.array_split(values, 7)):
                sketch.merge(KLL(k, seed=seed * 100 + part).update(piece))
        else:
            sketch = KLL(k, seed=seed).update(values)
        error = largest_rank_error(sketch, values)
        broken += error > normalized_rank_error(k)
        errors.append(error)
    assert broken <= 8  # 1 % promised: 2 of 200 expected
    assert np.median(errors) > normalized_rank_error(k) / 4  # nor hugely loose


def test_a_sketch_of_few_values_is_exact() -> None:
    values = np.random.default_rng(3).permutation(200).astype(float)
    sketch = KLL(200).update(values)
    assert sketch.exact and sketch.quantiles([0, 0.005, 0.5, 0.995, 1]) == [0, 0, 99, 198, 199]
    assert sketch.rank(99) == 0.5 and sketch.rank_bounds(99) == (0.5, 0.5)
    assert sketch.quantile_bounds(0.5) == (99, 99)


@pytest.mark.parametrize(("kind", "k"), [("double", 8), ("double", 50), ("float", 50), ("long", 50)])
def test_any_cut_into_batches_gives_the_same_bytes(kind: Any, k: int) -> None:
    values = np.random.default_rng(5).normal(size=5000) * 1000
    values = values.astype(int) if kind == "long" else np.where(values > 900, np.nan, values)
    whole = KLL(k, kind, seed=9).update(values)
    for cuts in ([1, 2, 3], [2500], list(range(0, 5000, 37)), list(range(5000))):
        pieces = KLL(k, kind, seed=9)
        for piece in np.split(values, cuts):
            pieces.update(piece)
        assert pieces.to_bytes() == whole.to_bytes()


@pytest.mark.parametrize("kind", KINDS)
def test_a_sketch_that_goes_up_by_blocks_is_cut_and_stored_at_any_place(kind: Any) -> None:
    values = (np.random.default_rng(6).normal(size=60_000) * 1e6).astype(int)
    whole, pieces, depths = KLL(200, kind, seed=9).update(values), KLL(200, kind, seed=9), set()
    for piece in np.split(values, np.sort(np.random.default_rng(2).integers(0, 60_000, 150))):
        state = pieces.update(piece)._store.state
        items, weights = pieces._store.weighted(0)
        image = pieces.to_bytes()
        again = KLL.from_bytes(image, kind)
        assert again.to_bytes() == image and weights.sum() == pieces.n
        assert again.quantiles([0, 0.2, 0.9, 1]) == pieces.quantiles([0, 0.2, 0.9, 1])
        assert len(items) == again.retained == pieces.retained <= 600
        depths.add((int(state.depth[0]), int(state.room[0] - state.levels[0, 0]) > len(items)))
    assert pieces == whole and {(7, True), (7, False), (8, True), (8, False)} <= depths


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_are_thinned_to_every_second_of_sorted_runs(kind: Any) -> None:
    dtype, rng = {"double": float, "float": np.float32, "long": int}[kind], np.random.default_rng(3)
    for coins in rng.integers(0, 1 << 62, 20, dtype=np.uint64):
        block, out, spare = rng.permutation(256).astype(dtype), np.empty(128, dtype), np.empty(400, dtype)
        for leap in (1, 2, 3, 4):
            kept = out[: 256 >> leap]
            called(kll_blocks.thin, block, leap, coins, kept, dtype(255), spare)
            assert (np.diff(kept) > 0).all() and np.isin(kept, block).all()
            ranks = (np.arange(len(kept)) + 0.5) * (1 << leap)
            assert np.abs(kept - ranks).max() < 30  # no item is far from the rank it stands for


@pytest.mark.parametrize("sizes", [(0, 5), (64, 0), (1, 1), (63, 2), (100, 200), (500, 3)])
def test_runs_are_merged_like_sorted(sizes: tuple[int, int]) -> None:
    rng = np.random.default_rng(sizes)
    runs = [np.sort(rng.integers(0, 50, size).astype(float)) for size in sizes]
    scratch, out = np.full(sum(sizes) + 192, np.nan), np.empty(sum(sizes))
    called(item_sort.merge_apart, *runs, out, 50.0, scratch)
    assert out.tolist() == sorted([*runs[0], *runs[1]])


@pytest.mark.parametrize("k", [8, 20])
def test_a_deep_sketch_samples_and_its_weights_add_up(k: int) -> None:
    rng = np.random.default_rng(k)
    sketch, seen = KLL(k, seed=3), 0
    for size in [*rng.integers(0, 40, 200), 3000, *rng.integers(0, 400, 40)]:
        sketch.update(np.arange(seen, seen + size))
        seen += int(size)
        grain = int(sketch._store.state.grain[0])
        items, weights = sketch._store.weighted(0)
        assert sketch.n == weights.sum() == seen and len(items) <= 3 * k + 8 * 8 + grain
        assert len(np.unique(items)) == len(items) and (items >= 0).all() and (items < seen).all()
        again = KLL.from_bytes(sketch.to_bytes(), sketch.kind)
        assert sorted(zip(*again._store.weighted(0), strict=True)) == sorted(zip(items, weights, strict=True))
    assert grain >= 4
    again.update(np.arange(1000.0))  # a stored deep sketch goes on sampling
    assert again._store.state.grain[0] >= grain and again.n == seen + 1000


def test_the_sampler_draws_every_place_alike() -> None:
    drawn = np.zeros(32, int)
    for seed in range(3000):
        region, levels, n = np.full(40, np.nan), np.array([40, 40], np.int32), 0
        coin = np.array([seed * 7919], np.uint64)
        for piece in np.split(np.arange(32.0), [seed % 31, seed % 31 + 1]):
            n += called(kll_update._sample, region, levels, 5, 5, coin, n, piece)
        assert n == 32 and levels.tolist() == [39, 40]  # one of 32 values, in level 0
        drawn[int(region[39])] += 1
    expected = 3000 / 32
    assert ((drawn - expected) ** 2 / expected).sum() < 61  # chi-square, 31 degrees, 0.1 %


def test_the_same_seed_gives_the_same_bytes_and_another_does_not() -> None:
    values = np.arange(10_000.0)
    assert KLL(seed=4).update(values) == KLL(seed=4).update(values)
    assert KLL(seed=4).update(values) != KLL(seed=5).update(values)


@each("kind", KINDS)
@each("n", [0, 1, 2, 7, 200, 201, 20_000])
def test_bytes_round_trip(kind: Any, n: int) -> None:
    sketch = KLL(200, kind, seed=1).update(np.random.default_rng(n).normal(size=n).astype(int))
    again = KLL.from_bytes(sketch.to_bytes(), kind)
    assert again.to_bytes() == sketch.to_bytes() == bytes(copy.copy(sketch))
    assert pickle.loads(pickle.dumps(sketch)) == sketch
    assert (again.n, again.k, again.min_k, again.kind) == (sketch.n, 200, sketch.min_k, kind)
    if n:
        assert again.quantiles([0, 0.3, 1]) == sketch.quantiles([0, 0.3, 1])


@each("kind", list(PEERS))
@each("n", [0, 1, 2, 200, 1000, 50_000])
def test_cpp_reads_what_we_write(kind: Any, n: int) -> None:
    values = np.random.default_rng(n).normal(size=n)
    sketch = KLL(200, kind, seed=1).update(values)
    peer = PEERS[kind].deserialize(sketch.to_bytes())
    assert (peer.n, peer.k, peer.num_retained) == (n, 200, sketch.retained)
    if n:
        points = np.linspace(-2, 2, 9).astype(np.float32)
        assert [peer.get_rank(float(x), True) for x in points] == pytest.approx(
            [sketch.rank(x) for x in points]
        )
        assert (peer.get_min_value(), peer.get_max_value()) == (sketch.low, sketch.high)


@each("kind", list(PEERS))
@each("n", [0, 1, 2, 200, 1000, 50_000])
def test_we_read_what_cpp_writes(kind: Any, n: int) -> None:
    peer = PEERS[kind](200)
    peer.update(np.random.default_rng(n).normal(size=n))
    sketch = KLL.from_bytes(peer.serialize(), kind)
    assert (sketch.n, sketch.k, sketch.retained) == (n, 200, peer.num_retained)
    assert sketch.to_bytes() == peer.serialize() or peer.serialize()[3] & 2  # but for the sorted flag
    for x in np.linspace(-2, 2, 9).astype(np.float32) if n else ():
        assert sketch.rank(x) == pytest.approx(peer.get_rank(float(x), True))


def test_cpp_merges_what_we_write() -> None:
    values = np.random.default_rng(0).normal(size=100_000)
    peer = datasketches.kll_doubles_sketch(200)
    for part, piece in enumerate(np.array_split(values, 5)):
        peer.merge(datasketches.kll_doubles_sketch.deserialize(KLL(seed=part).update(piece).to_bytes()))
    assert peer.n == 100_000
    merged = KLL.from_bytes(peer.serialize(), "double")
    assert largest_rank_error(merged, values) < 2 * normalized_rank_error(200)


def test_merging_takes_the_smaller_k_s_error_and_any_order_counts_the_same() -> None:
    values = np.random.default_rng(8).normal(size=60_000)
    parts = [
        KLL(k, seed=k).update(piece)
        for k, piece in zip((20, 100, 800), np.array_split(values, 3), strict=True)
    ]
    for order in permutations(parts):
        merged = order[0].copy()
        for part in order[1:]:
            merged.merge(part)
        assert merged.n == 60_000 and merged.min_k == 20 and merged.k == order[0].k
        assert (merged.low, merged.high) == (values.min(), values.max())
        assert largest_rank_error(merged, values) < 1.5 * normalized_rank_error(20)
    small = KLL(8, seed=1).update([1.0, 2.0])
    assert parts[2].copy().merge(small).min_k == 800  # an exact sketch costs no accuracy


def test_nan_and_nulls_are_skipped_and_infinities_are_not() -> None:
    sketch = KLL().update([1.0, None, float("nan"), float("inf"), -float("inf"), -0.0])
    assert sketch.n == 4 and sketch.quantiles([0, 0.5, 1]) == [-np.inf, 0, np.inf]
    assert KLL().update([float("nan")]).n == 0
    assert KLL().update(pa.chunked_array([[[1, 2], None], [[3]]])).n == 3


def test_kinds_keep_their_numbers() -> None:
    extremes = [-(2**63), 2**63 - 1, 0]
    assert KLL(kind="long").update(extremes).quantiles([0, 0.5, 1]) == sorted(extremes)
    assert KLL(kind="double").update(np.array([2**64 - 1], np.uint64)).quantile(0) == 2.0**64
    assert KLL(kind="float").update(0.1).quantile(0) == np.float32(0.1)
    with pytest.raises(TypeError, match="whole numbers"):
        KLL(kind="long").update([1.5])
    with pytest.raises(TypeError, match="numbers"):
        KLL().update(["a"])
    with pytest.raises(SketchError, match="int64"):
        KLL(kind="long").update(np.array([2**63], np.uint64))


def test_cdf_and_pmf_agree_with_ranks() -> None:
    sketch = KLL(seed=1).update(np.random.default_rng(0).normal(size=5000))
    points = [-1.0, 0.0, 1.0]
    assert sketch.cdf(points).tolist() == [*(sketch.rank(x) for x in points), 1.0]
    assert sketch.pmf(points).sum() == pytest.approx(1) and len(sketch.pmf(points)) == 4
    with pytest.raises(SketchError, match="ascending"):
        sketch.cdf([1, 0])


def test_wrong_questions_name_what_was_wrong() -> None:
    for wrong in (7, 65_536, 200.0, True):
        with pytest.raises(SketchError, match="k must be"):
            KLL(wrong)
    with pytest.raises(SketchError, match="empty"):
        KLL().quantile(0.5)
    with pytest.raises(SketchError, match="from 0 to 1"):
        KLL().update(1.0).quantile(1.5)
    with pytest.raises(SketchError, match="longs"):
        KLL(kind="long").merge(KLL())
    with pytest.raises(SketchError, match="kind must be"):
        KLL(kind="int")


def test_answer_and_repr() -> None:
    sketch = KLL(seed=2).update(np.arange(10_000.0))
    answer = sketch.answer()
    assert answer["n"] == 10_000 and [row["q"] for row in answer["quantiles"]] == list(USUAL_QUANTILES)
    assert all(row["lower"] <= row["value"] <= row["upper"] for row in answer["quantiles"])
    assert "n=10000" in repr(sketch) and "1.33%" in repr(sketch) and "empty" in repr(KLL())
    assert KLL().answer() == {"n": 0, "quantiles": []}


@pytest.mark.parametrize("n", [0, 1, 3, 60])
def test_broken_bytes_are_refused_or_read_as_a_valid_sketch(n: int) -> None:
    image = KLL(8, seed=1).update(np.arange(float(n))).to_bytes()
    for length in range(len(image)):
        with pytest.raises(SketchError):
            KLL.from_bytes(image[:length], "double")
    with pytest.raises(SketchError):
        KLL.from_bytes(image + b"\0", "double")
    kept = 0
    for place in range(len(image)):
        for bit in range(8):
            broken = bytearray(image)
            broken[place] ^= 1 << bit
            try:
                sketch = KLL.from_bytes(bytes(broken), "double")
            except SketchError:
                continue
            kept += 1
            assert KLL.from_bytes(sketch.to_bytes(), sketch.kind) == sketch
            sketch.update(np.arange(100.0)).merge(sketch)
            assert sketch.n >= 200 and sketch.low <= sketch.quantile(0.5) <= sketch.high
    assert kept < len(image) * 8


def test_bytes_of_another_kind_are_refused_where_the_length_shows_it() -> None:
    image = KLL(seed=1).update(np.arange(500.0)).to_bytes()
    with pytest.raises(SketchError, match="another kind"):
        KLL.from_bytes(image, kind="float")


@pytest.mark.parametrize("kind", KINDS)
def test_groups_are_as_single_sketches(kind: Any) -> None:
    rng = np.random.default_rng(11)
    groups, values = rng.zipf(1.3, 30_000) % 50, rng.integers(-500, 500, 30_000)
    many = KLLGroups(20, 40, kind, seed=7)
    many.resize(51)
    for at in np.array_split(np.arange(len(values)), 13):
        many.update(groups[at], values[at])
    column = many.to_arrow()
    assert column.type == pa.binary() and len(column) == len(many) == 51
    for g in range(51):
        alone = KLLGroups(51, 40, kind, seed=7)[g].update(values[groups == g])
        assert many[g].to_bytes() == column[g].as_py() == alone.to_bytes()


def test_groups_skip_nulls_and_spread_lists() -> None:
    groups = KLLGroups(2)
    groups.update([0, 1], pa.array([[1.0, 2.0, None], [3.0]]))
    groups.update([0, 1], pa.array([None, 4], pa.uint64()))
    assert [groups[0].n, groups[1].n] == [2, 2]
    with pytest.raises(IndexError):
        groups.update([2], [1.0])


def test_groups_merge_images_of_any_k() -> None:
    values = np.random.default_rng(4).normal(size=40_000)
    images = [
        KLL(k, seed=i).update(piece).to_bytes()
        for i, (k, piece) in enumerate(zip([200, 20, 400, 200] * 10, np.array_split(values, 40), strict=True))
    ]
    groups = KLLGroups(3, seed=1)
    column = pa.array([*images, None, KLL().to_bytes()], pa.binary())
    groups.merge([*([0, 1] * 20), 2, 2], column)
    assert [groups[g].n for g in range(3)] == [20_000, 20_000, 0]
    evens = np.concatenate(np.array_split(values, 40)[::2])
    assert largest_rank_error(groups[0], evens) < normalized_rank_error(200)
    with pytest.raises(SketchError, match="not a sketch of doubles"):
        groups.merge([0], pa.array([b"12345678"], pa.binary()))


def test_an_image_is_read_only_as_what_its_reader_says_it_is() -> None:
    image = KLL(kind="long").update([1, 2, 3]).to_bytes()
    assert KLL.from_bytes(image, kind="long").quantile(0.5) == 2
    with pytest.raises(SketchError, match=r'an image doesn.t say .* give kind="double" or "float" or "long"'):
        KLL.from_bytes(image)


def test_quantiles_and_their_bounds_found_in_one_go() -> None:
    shares = [0.0, 0.25, 0.5, 0.999, 1.0]
    for kind in ("double", "long", "float"):
        sketch = KLL(kind=kind, seed=4).update(np.arange(30_000))
        values, lower, upper = sketch.quantiles_within(shares)
        assert values == sketch.quantiles(shares)
        assert list(zip(lower, upper)) == [sketch.quantile_bounds(q) for q in shares]
    with pytest.raises(SketchError, match="from 0 to 1"):
        sketch.quantiles_within([1.01])


def test_ranks_beyond_the_whole_doubles_are_exact() -> None:
    rng, wrong = np.random.default_rng(2), []
    kinds: Any = (
        ("long", 2**60 + 1, 1),
        ("long", -(2**61) - 9, 1),
        ("double", 2**53, 2),
        ("float", 2**24, 2),
    )
    for kind, first, step in kinds:
        values = [first + step * int(i) for i in rng.integers(0, 60, 150)]
        sketch = KLL(kind=kind).update(np.array(values, np.int64 if kind == "long" else np.float64))
        for x in range(first - 2, first + 60 * step + 2):
            true = sum(value <= x for value in values) / len(values)
            for point in (x, np.int64(x), Decimal(x), Fraction(x)):
                if sketch.rank(point) != true or sketch.rank_bounds(point) != (true, true):
                    wrong.append((kind, point, true, sketch.rank(point)))
            if sketch.cdf([x, x + 1])[0] != true:
                wrong.append((kind, x, "cdf"))
    assert not wrong


def test_ranks_of_whole_numbers_are_exact() -> None:
    """Beyond 2^53 neighbours are one double."""
    first = 2**53
    sketch = KLL(kind="long").update(np.array([first + i for i in range(4)]))
    points: Any
    for points in ([first, first + 1, first + 2], np.array([first, first + 1, first + 2])):
        assert sketch.cdf(points).tolist() == [0.25, 0.5, 0.75, 1.0]
        assert sketch.pmf(points).tolist() == [0.25] * 4
    assert [sketch.rank(first + i) for i in range(-1, 4)] == [0.0, 0.25, 0.5, 0.75, 1.0]
    least = KLL(kind="long").update(np.array([-(2**63), 0, 2**63 - 1]))
    assert least.cdf([-(2**70), -(2**63), 0.5, 2**63 - 1, 2**70]).tolist() == pytest.approx(
        [0, 1 / 3, 2 / 3, 1, 1, 1]
    )
    assert least.cdf(np.array([0, 2**63], np.uint64)).tolist() == pytest.approx([2 / 3, 1, 1])


def test_small_sketches_merged_one_after_another_are_read_back() -> None:
    # What leapt made the top level so full that halving those below it left too much: of these, four times.
    for seed in range(150):
        random = np.random.default_rng(seed)
        sketch, seen = KLL(kind="double", seed=seed), np.empty(0)
        for _ in range(15):
            values = random.normal(size=int(500 * random.random()) + 1)
            sketch.merge(KLL(kind="double", seed=seed + 7).update(values))
            seen = np.append(seen, values)
            assert KLL.from_bytes(sketch.to_bytes(), kind="double").n == sketch.n == len(seen)
        shares = np.linspace(0.05, 0.95, 19)
        ranks = np.searchsorted(np.sort(seen), sketch.quantiles(shares)) / len(seen)
        assert np.abs(ranks - shares).max() < 2 * 0.0133


def test_an_image_is_refused_if_two_items_of_a_level_are_out_of_order_and_read_if_they_are_of_two() -> None:
    image = KLL(seed=1).update(np.random.default_rng(9).permutation(30_000)).to_bytes()
    depth = image[18]
    bounds = np.frombuffer(image, np.int32, depth, 20)
    begin = 20 + 4 * depth + 16
    items = np.frombuffer(image, np.float64, offset=begin)
    starts = set((bounds - bounds[0]).tolist())
    groups, falls = KLLGroups(1), 0
    for at in range(int(bounds[1] - bounds[0]) + 1, len(items)):
        swapped = items.copy()
        swapped[[at - 1, at]] = items[[at, at - 1]]
        falls += items[at] < items[at - 1]
        if at not in starts:
            with pytest.raises(SketchError, match="out of order within its level"):
                groups.merge([0], pa.array([image[:begin] + swapped.tobytes()], pa.binary()))
    assert falls >= 2  # items of two levels have no order
    groups.merge([0], pa.array([image], pa.binary()))
    assert groups[0].n == 30_000


@pytest.mark.parametrize("sizes", [[1, 3, 2], [3, 0, 1], [3, 20_000, 0, 1, 500], []])
def test_groups_answer_as_each_does_alone_whether_exact_or_not(
    sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kll_estimate, "_AT_ONCE", 16)
    groups = KLLGroups(len(sizes), seed=1)
    groups.update(np.repeat(np.arange(len(sizes)), sizes), np.random.default_rng(1).normal(size=sum(sizes)))
    assert groups.answers().to_pylist() == [groups[at].answer() for at in range(len(sizes))]
