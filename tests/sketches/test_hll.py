"""HLL against the reference's bytes, estimates and bounds, and against itself in every order."""

from __future__ import annotations

import itertools
import pickle

import datasketches
import numpy as np
import pytest

from streamgauge.sketches.hll import HLL, HLLGroups
from streamgauge.sketches.protocol import SketchError

HLL_8 = datasketches.tgt_hll_type.HLL_8


def reference(lg_k: int, values: list, kind: object = HLL_8) -> datasketches.hll_sketch:
    sketch = datasketches.hll_sketch(lg_k, kind)
    for value in values:
        sketch.update(value)
    return sketch


@pytest.mark.parametrize("lg_k", [4, 7, 8, 11, 12, 14])
@pytest.mark.parametrize("n", [0, 1, 7, 8, 20, 24, 25, 100, 384, 385, 1000, 30_000])
def test_bytes_estimates_and_bounds_are_the_references(lg_k: int, n: int) -> None:
    ours = HLL(lg_k).update(np.arange(n))
    theirs = reference(lg_k, list(range(n)))
    assert ours.to_bytes() == theirs.serialize_updatable()
    assert ours.estimate() == pytest.approx(theirs.get_estimate(), rel=1e-12)
    for std_devs in (1, 2, 3):
        bounds = theirs.get_lower_bound(std_devs), theirs.get_upper_bound(std_devs)
        assert ours.bounds(std_devs) == pytest.approx(bounds, rel=1e-7)


@pytest.mark.parametrize("n", [0, 5, 30, 5_000])
def test_bytes_come_back(n: int) -> None:
    sketch = HLL(10).update(np.arange(n))
    for back in (HLL.from_bytes(sketch.to_bytes()), pickle.loads(pickle.dumps(sketch)), sketch.copy()):
        assert back.to_bytes() == sketch.to_bytes()
    assert contents(HLL.from_bytes(sketch.to_bytes("hll_4"))) == contents(sketch)


@pytest.mark.parametrize("lg_ks", [(12, 10, 12), (8, 12, 5), (11, 11, 11)])
@pytest.mark.parametrize("sizes", [(30_000, 30_000, 30_000), (5, 5_000, 90), (3, 40, 300)])
def test_merging_gives_the_same_registers_in_every_order(lg_ks: tuple, sizes: tuple) -> None:
    starts = np.cumsum([0, *sizes])
    parts = [HLL(lg).update(np.arange(a, a + n)) for lg, a, n in zip(lg_ks, starts, sizes)]
    merged = [a.copy().merge(b).merge(c) for a, b, c in itertools.permutations(parts)]
    whole = HLL(min(lg_ks)).update(np.arange(sum(sizes)))
    for sketch in [*merged, parts[0] | (parts[1] | parts[2])]:
        assert sketch.lg_k == min(lg_ks)
        assert contents(sketch) == contents(whole)
        lower, upper = sketch.bounds(3)
        assert lower <= sum(sizes) <= upper


def contents(sketch: HLL) -> list[int]:
    """Registers in order, or coupons sorted, whatever the image says of the way there."""
    image = np.frombuffer(sketch.to_bytes(), np.uint8)
    if image[0] == 10:
        return image[40:].tolist()
    return sorted(image[8 if image[0] == 2 else 12 :].view(np.uint32).tolist())


def test_groups_are_single_sketches_side_by_side() -> None:
    rng = np.random.default_rng(5)
    values = rng.integers(0, 1 << 60, 50_000)
    numbers = rng.integers(0, 40, len(values)) ** 3 // 1500
    groups = HLLGroups(60, lg_k=9)
    groups.update(numbers, values)
    singles = [HLL(9).update(values[numbers == g]) for g in range(60)]
    assert groups.to_arrow().to_pylist() == [single.to_bytes() for single in singles]
    assert groups.estimates() == pytest.approx([single.estimate() for single in singles])
    again = HLLGroups(60, lg_k=9)
    again.merge(np.arange(60), groups.to_arrow())
    assert again.to_arrow() == groups.to_arrow()


def test_bytes_that_are_none_are_refused() -> None:
    image = HLL(4).update(np.arange(50)).to_bytes()
    for end in range(len(image)):
        with pytest.raises(SketchError, match="HLL"):
            HLL.from_bytes(image[:end])
