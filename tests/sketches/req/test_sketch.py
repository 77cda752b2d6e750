"""REQ beside DataSketches': the same levels, bytes and bounds; its promise in any tree of merges."""

from __future__ import annotations

import pickle
from typing import Any

import datasketches
import numpy as np
import pyarrow as pa
import pytest

from streamgauge.sketches.core.protocol import SketchError
from streamgauge.sketches.req import REQ, REQGroups

VALUES = np.random.default_rng(5).lognormal(0, 2, 50_000)
FLOATS = VALUES.astype(np.float32)
LEVEL = np.dtype(
    [("schedule", "<u8"), ("size", "<f4"), ("lg", "u1"), ("sections", "u1"), ("", "<u2"), ("items", "<u4")]
)


def theirs(n: int, k: int = 12, high_ranks: bool = True) -> Any:
    """The package's sketch of the first `n` values, its level 0 in order."""
    peer = datasketches.req_floats_sketch(k, high_ranks)
    peer.update(FLOATS[:n])
    if n:
        peer.get_rank(0.0)
    return peer


def levels(image: bytes) -> list[tuple[Any, ...]]:
    """What an image says of each of its levels but for their items."""
    at, described = 24, []
    for _ in range(image[6]):
        (level,) = np.frombuffer(image, LEVEL, 1, at)
        described.append(level.item())
        at += LEVEL.itemsize + 4 * int(level["items"])
    assert at == len(image)
    return described


@pytest.mark.parametrize("high_ranks", [True, False])
@pytest.mark.parametrize("k", [4, 12, 50])
def test_levels_and_bytes_are_the_packages(k: int, high_ranks: bool) -> None:
    for n in (0, 1, 4, 5, 6 * k - 1, 6 * k, 1000, 7001, 50_000):
        peer, ours = theirs(n, k, high_ranks), REQ(k, high_ranks, seed=n).update(VALUES[:n])
        image, written = peer.serialize(), ours.to_bytes()
        if n < 6 * k:  # no coin has fallen; the package leaves room behind raw items
            assert image[: len(written)] == written and not any(image[len(written) :])
        elif ours._store.state.depth[0] < 8:
            assert levels(image) == levels(written), n
        else:  # compacted less often, with more at a time
            assert abs(len(levels(image)) - len(levels(written))) <= 1
            assert [level[:4] for level in levels(written)[:3]] <= [level[:4] for level in levels(image)[:3]]
            assert back_to_work(written, n)
        read = REQ.from_bytes(image)
        assert read.n == n and (n < 6 * k or read.to_bytes() == image)
        back = datasketches.req_floats_sketch.deserialize(written)
        assert back.n == n and pickle.loads(pickle.dumps(ours)) == ours
        for x in (0.1, 1.0, 30.0) if n else ():
            at_end = np.mean(FLOATS[:n] <= x) in (0, 1)  # else one value at least lies on either side
            edges = (0, 1) if at_end else (1 / n, 1 - 1 / n)
            assert ours.rank(x) == np.clip(back.get_rank(x, True), *edges)
            for std_devs in (1, 2, 3):
                lower, upper = ours.rank_bounds(x, std_devs)
                rank = ours.rank(x)
                if rank < 1:
                    assert lower == pytest.approx(
                        max(0, back.get_rank_lower_bound(rank, std_devs)), abs=1e-12
                    )
                    assert upper == pytest.approx(
                        min(1, back.get_rank_upper_bound(rank, std_devs)), abs=1e-12
                    )
        if n:
            shares = [0.1, 0.5, 0.9, 0.999]
            wanted = [back.get_quantile(q, True) for q in shares]
            assert [a == b or np.ceil(q * n) == 1 for a, b, q in zip(ours.quantiles(shares), wanted, shares)]
            assert ours.quantiles([0, 1]) == [FLOATS[:n].min(), FLOATS[:n].max()] == [ours.low, ours.high]


def back_to_work(image: bytes, n: int) -> bool:
    """Whether the package continues with a sketch as with its own: it compacts when a level is full."""
    peer = datasketches.req_floats_sketch.deserialize(image)
    held = peer.num_retained
    peer.update(FLOATS)
    return bool(peer.n == n + len(FLOATS) and peer.num_retained < 2 * held)


def inside(sketch: REQ, ordered: np.ndarray, q: float, std_devs: int) -> bool:
    """Whether the true rank of the value at a share lies within the sketch's bounds."""
    x = float(ordered[int(q * (len(ordered) - 1))])
    lower, upper = sketch.rank_bounds(x, std_devs)
    return bool(lower <= np.searchsorted(ordered, x, "right") / len(ordered) <= upper)


@pytest.mark.parametrize("high_ranks", [True, False])
def test_bounds_hold_as_often_as_promised(high_ranks: bool) -> None:
    """Over seeds, at ranks ever nearer to the accurate end: 68.3, 95.4 and 99.7 % of the time."""
    rng = np.random.default_rng(11)
    kept: dict[int, list[bool]] = {1: [], 2: [], 3: []}
    to_end = np.array([0.5, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001])
    for seed in range(150):
        values = rng.permutation(40_000).astype(np.float32)
        sketch = REQ(12, high_ranks, seed=seed).update(values)
        for q in (1 - to_end if high_ranks else to_end).tolist():
            for std_devs, held in kept.items():
                held.append(inside(sketch, np.arange(40_000, dtype=np.float32), q, std_devs))
    shares = [np.mean(held) for held in kept.values()]
    # Three standard deviations of 1,050 tries that hang together by sevens.
    assert all(share > promised - 3 * np.sqrt(promised * (1 - promised) / 150)
               for share, promised in zip(shares, (0.683, 0.954, 0.997))), shares  # fmt: skip
    assert shares[0] < 0.95, "the bounds are hugely loose"


def merged(parts: list[REQ], rng: np.random.Generator, shape: str) -> REQ:
    """The parts merged from the left, from the right, or any two neighbours at a time."""
    while len(parts) > 1:
        at = {"left": 0, "right": len(parts) - 2}.get(shape, int(rng.integers(len(parts) - 1)))
        parts[at : at + 2] = [parts[at].merge(parts[at + 1])]
    return parts[0]


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["left", "right", "any"])
def test_bounds_hold_in_any_tree_of_merges(shape: str) -> None:
    rng = np.random.default_rng(8)
    values = rng.standard_normal(8000).astype(np.float32)
    ordered, held = np.sort(values), []
    for seed in range(40):
        cuts = np.sort(rng.integers(0, len(values), 40))
        parts = [REQ(seed=100 * seed + at).update(part) for at, part in enumerate(np.split(values, cuts))]
        sketch = merged(parts, rng, shape)
        assert sketch.n == len(values)
        held += [inside(sketch, ordered, q, 2) for q in (0.1, 0.5, 0.9, 0.99)]
    assert np.mean(held) > 0.93


@pytest.mark.slow
def test_a_large_sketch_merged_into_small_ones_time_and_again_keeps_its_bounds() -> None:
    """The package takes the second coin of a pair for one whose first it never threw: its error adds up."""
    values = np.random.default_rng(3).permutation(30_000).astype(np.float32)
    held = []
    for seed in range(30):
        sketch = REQ(seed=seed)
        for at, part in enumerate(np.split(values, 100)):
            sketch = REQ(seed=1000 * seed + at).update(part).merge(sketch)
        held += [inside(sketch, np.arange(30_000, dtype=np.float32), q, 2) for q in (0.5, 0.9, 0.99, 0.999)]
    assert np.mean(held) > 0.93


def test_a_smaller_k_widens_the_bounds_unless_it_is_exact() -> None:
    coarse = REQ(4, seed=1).update(VALUES)
    for both in (REQ(50) | coarse, coarse | REQ(50), REQ(50, seed=1).update([1.0, 2.0]) | coarse):
        assert both.k == 4
        assert both.rank_bounds(1.0, 2) == pytest.approx(coarse.rank_bounds(1.0, 2), abs=0.02)
    fine = REQ(50, seed=2).update(VALUES) | REQ(4, seed=1).update([1.0, 2.0])
    assert fine.k == 50 and fine.n == len(VALUES) + 2


def test_values_are_4_byte_floats_and_say_so_at_the_ends() -> None:
    sketch = REQ(seed=1).update([1.1, 2**24 + 1, -1e39, 1e39, 3e-46])
    assert sketch.n == 5 and sketch.high == np.inf and sketch.low == -np.inf
    assert sketch.quantiles([0.4, 0.6, 0.8]) == [0.0, float(np.float32(1.1)), 2.0**24]
    assert sketch.rank(1.1) == 0.6 and sketch.rank(1e38) == 0.8  # a value's rank is that of its float
    assert sketch.answer()["quantiles"][-1]["value"] is None
    groups = REQGroups(1)
    groups.update([0] * 5, [1.1, 2**24 + 1, -1e39, 1e39, 3e-46])
    assert groups.answers().to_pylist() == [sketch.answer()]


def test_the_same_seed_gives_the_same_bytes_by_groups_as_well() -> None:
    numbers = np.random.default_rng(1).integers(0, 50, len(VALUES))
    one, other = REQGroups(50, seed=7), REQGroups(50, seed=7)
    one.update(numbers, VALUES)
    for rows in np.array_split(np.arange(len(VALUES)), 37):
        other.update(numbers[rows], VALUES[rows])
    assert one.to_arrow() == other.to_arrow()
    assert one.to_arrow() != (different := REQGroups(50, seed=8)).to_arrow() and len(different) == 50


def test_wrong_use_is_named() -> None:
    for attempt, words in (
        (lambda: REQ().quantile(0.5), "empty"),
        (lambda: REQ().update([1.0]).quantile(2), "from 0 to 1"),
        (lambda: REQ(5), "k must be even"),
        (lambda: REQ(2), "k must"),
        (lambda: REQ().merge(REQ(high_ranks=False).update([1])), "high_ranks=True"),
        (lambda: REQ(high_ranks=False).merge(REQ()), "high_ranks=False"),
        (lambda: REQ().update([1]).rank_bounds(1, 4), "std_devs"),
    ):
        with pytest.raises(SketchError, match=words):
            attempt()
    with pytest.raises(TypeError, match="kll_quantiles"):
        REQGroups.aggregate.of_column(pa.timestamp("us"))
    assert REQ().update([1.0, None, float("nan")]).n == 1 and "empty" in repr(REQ())


def test_images_that_contradict_themselves_are_refused() -> None:
    deep, few = (
        bytearray(REQ(4, seed=1).update(np.arange(5000.0)).to_bytes()),
        REQ().update([3.0, 1.0, 2.0]).to_bytes(),
    )
    uncompacted, more_sections = deep.copy(), deep.copy()
    uncompacted[24:32] = bytes(8)
    more_sections[37] = 96
    swapped = few[:8] + few[12:16] + few[8:12] + few[16:]
    for image, words in (
        (uncompacted, "was compacted, or not"),
        (more_sections, "number of sections"),
        (swapped, "out of order"),
        (deep[:-4], "ends within a level"),
        (deep + b"\0", "more bytes follow"),
    ):
        with pytest.raises(SketchError, match=words):
            REQ.from_bytes(bytes(image))


def test_more_values_than_are_counted_are_refused() -> None:
    sketch = REQ(4, seed=1).update(np.arange(100.0))
    for _ in range(55):
        sketch.merge(sketch)
    before = sketch.to_bytes()
    with pytest.raises(SketchError, match="more than"):
        for _ in range(3):
            sketch.merge(sketch)
            before = sketch.to_bytes()
    assert sketch.to_bytes() == before and sketch.n < 1 << 62
    assert 0.4 < sketch.rank(50.0) < 0.6
