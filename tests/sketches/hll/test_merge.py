"""Sketches folded in all at once, coupons brought together by group: as one after the other, to the byte."""

from __future__ import annotations

import datasketches
import numpy as np
import pyarrow as pa
import pytest

from streamgauge.sketches.core import parallel
from streamgauge.sketches.core.protocol import SketchError
from streamgauge.sketches.hll import HLL, HLLGroups
from streamgauge.sketches.hll import groups as hll_groups
from streamgauge.sketches.hll.images_read import HLL_FORM, LIST_FORM

KINDS = [getattr(datasketches.tgt_hll_type, name) for name in ("HLL_4", "HLL_6", "HLL_8")]


def drawn(rng: np.random.Generator, lg_ks: tuple[int, ...], most: int) -> bytes:
    """A sketch of a kind, form, size and library of any."""
    lg_k, n = int(rng.choice(lg_ks)), int(rng.choice([0, 1, 2, 7, 8, 20, 24, 25, 90, most]))
    values = rng.integers(20_000, size=min(n, most))
    if rng.random() < 0.2:
        halves = [HLL(lg_k).update(half) for half in np.array_split(values, 2)]
        return (halves[0] | halves[1]).to_bytes("hll_4" if rng.random() < 0.5 else "hll_8")
    sketch = datasketches.hll_sketch(lg_k, KINDS[rng.integers(3)])
    for value in values.tolist():
        sketch.update(value)
    return sketch.serialize_compact() if rng.random() < 0.5 else sketch.serialize_updatable()


def merged(column: pa.Array, groups: np.ndarray, before: HLLGroups | None, n: int, lg_k: int) -> list[bytes]:
    result = HLLGroups(n, lg_k)
    if before is not None:
        result.merge(np.arange(n), before.to_arrow())
    result.merge(groups, column)
    result.merge(groups[:9], column[:9])  # goes on from what the first left
    return result.to_arrow().to_pylist()


@pytest.mark.parametrize("lg_k", [4, 7, 9, 12])
@pytest.mark.parametrize("most", [7, 24, 300])
@pytest.mark.parametrize("equal", [True, False], ids=["one lg_k", "several"])
@pytest.mark.parametrize("begun", [False, True], ids=["empty", "begun"])
def test_all_at_once_is_one_after_the_other(
    lg_k: int, most: int, equal: bool, begun: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(lg_k + most)
    images = [drawn(rng, (lg_k,) if equal else (lg_k, lg_k + 1, 8, 12), most) for _ in range(1_500)]
    column = pa.array([None if rng.random() < 0.02 else image for image in images], pa.binary())
    n = 40
    groups = rng.integers(n - 1, size=len(images))  # one group has none
    before = HLLGroups(n, lg_k) if begun else None
    if before is not None:
        before.update(rng.integers(n, size=400), rng.integers(20_000, size=400))
    monkeypatch.setattr(hll_groups, "ORDERED", 64)  # many goes
    monkeypatch.setattr(hll_groups, "_MANY", int(rng.choice([10, 10_000])))
    at_once = merged(column, groups, before, n, lg_k)
    monkeypatch.setattr(hll_groups, "_IMAGES_A_GROUP", len(images))
    assert merged(column, groups, before, n, lg_k) == at_once
    if most == 300 and equal and lg_k == 9:
        assert {image[7] & 3 for image in images} == {LIST_FORM, 1, HLL_FORM}


def test_sketches_of_a_few_values_are_counted_as_their_values_are() -> None:
    rng = np.random.default_rng(3)
    n = 3
    values, groups = rng.integers(9_000, size=(4_000, 2)), rng.integers(n, size=4_000)
    small = HLLGroups(len(values), 9)
    small.update(np.repeat(np.arange(len(values)), 2), values.ravel())
    merged, counted = HLLGroups(n, 9), HLLGroups(n, 9)
    merged.merge(groups, small.to_arrow())
    counted.update(np.repeat(groups, 2), values.ravel())
    assert merged.to_arrow() == counted.to_arrow()


@pytest.mark.parametrize("faulty", [(700, 40), (40,), (999,)])
def test_of_images_checked_in_slices_the_first_at_fault_is_named(
    faulty: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel, "cores", lambda: 4)
    monkeypatch.setattr(parallel, "_LEAST", 10)
    images = [HLL(9).update(np.arange(3)).to_bytes()] * 1_000
    for at in faulty:
        images[at] = images[at][:-1]
    groups = HLLGroups(2, 9)
    with pytest.raises(SketchError, match=f"row {min(faulty)} "):
        groups.merge(np.arange(1_000) % 2, pa.array(images, pa.binary()))
    assert groups.estimates().tolist() == [0, 0]


@pytest.mark.parametrize("lg_k", [4, 9, 12])
@pytest.mark.parametrize("begun", [False, True], ids=["empty", "begun"])
def test_runs_of_a_groups_registers_are_folded_as_one_after_the_other(
    lg_k: int, begun: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(lg_k)
    images = []
    for kind in KINDS * 20:
        sketch = datasketches.hll_sketch(lg_k, kind)
        for value in rng.integers(2**62, size=int(rng.choice([1, 3, 40])) << lg_k):  # with exceptions, too
            sketch.update(int(value))
        images.append(sketch.serialize_compact() if rng.random() < 0.5 else sketch.serialize_updatable())
    assert {image[7] & 3 for image in images} == {HLL_FORM}
    monkeypatch.setattr(parallel, "cores", lambda: 3)
    monkeypatch.setattr(parallel, "_LEAST", 7)
    column, groups = pa.array(images, pa.binary()), np.repeat([2, 0, 1], 20)
    before = HLLGroups(3, lg_k) if begun else None
    if before is not None:
        before.update(np.array([0, 1, 1]), np.arange(3))
    in_runs = merged(column, groups, before, 3, lg_k)
    monkeypatch.setattr(hll_groups, "_A_RUN", len(images) + 1)
    assert merged(column, groups, before, 3, lg_k) == in_runs
    monkeypatch.undo()
    images[33] = images[33][:40] + bytes([images[33][40] ^ 1]) + images[33][41:]
    with pytest.raises(SketchError, match="row 33 "):
        HLLGroups(3, lg_k).merge(groups, pa.array(images, pa.binary()))
