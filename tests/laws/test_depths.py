"""Sketches of every depth merged with every other: one by one, by ``|`` and as groups, all through bytes.

A sketch changes its form as it fills: lists to tables, tables to registers, samplers under levels. What one
form leaves behind, another must be able to take in, in either order and of either size parameter. Pairs
are merged in one order here, and in both by `make soak`.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from .families import CASES, FAMILIES, IDS, WHOLE, Family
from .family import each_family
from .streams import fresh


def apart(family: Family) -> list[str]:
    """Of its kinds of column those that change its parameters, or the first."""
    return list({str(family.typed.get(kind)): kind for kind in reversed(family.kinds)}.values())


APART = [(family, kind) for family in FAMILIES for kind in (family.kinds if WHOLE else apart(family))]


def filled(family: Family, kind: str, depth: int, other: int | None) -> tuple[Any, list[Any]]:
    """A sketch of that many values, the `other`-th parameters if given, and its values."""
    column = fresh(kind, 2 * depth + 1, depth)
    sketch = family.feed(family.new(kind, 1 + depth, other), column)
    return sketch, column.to_pylist()


def whole(family: Family, kind: str, sketch: Any) -> None:
    """Its bytes are those of an equal sketch, which answers and goes on."""
    image = sketch.to_bytes()
    read = family.read(image, kind)
    assert read.to_bytes() == image
    assert str(read.answer()) == str(sketch.answer())
    family.feed(read, fresh(kind, 1, 50))
    family.read(read.to_bytes(), kind)


def keeps_promise(family: Family, sketch: Any, values: list[Any], mixed: bool) -> bool:
    promise = family.mixed if mixed and family.mixed else family.promise
    return promise(sketch, values) <= (1.0 if family.confidence == 1.0 else 2.0)


def each_once(pair: tuple[int, int]) -> bool:
    """Of a pair in both orders one: of every second pair the first with the second, else the other way."""
    first, second = pair
    return first == second or (first < second) == bool((first + second) % 2)


def every_pair(family: Family, kind: str, depths: tuple[int, ...], others: tuple[int | None, ...]) -> None:
    made = [filled(family, kind, depth, other) for other in others for depth in depths]
    numbers = itertools.product(range(len(made)), repeat=2)
    pairs = [(made[one], made[two]) for one, two in numbers if WHOLE or each_once((one, two))]
    images = [sketch.to_bytes() for sketch, _ in made]
    for (one, its), (two, theirs) in pairs:
        merged = one | two
        whole(family, kind, merged)
        assert keeps_promise(family, merged, its + theirs, len(others) > 1)
        if family.order and its + theirs:
            assert family.view(two | one) == family.view(merged)
        if its and not theirs:
            changed = one.copy().merge(two)
            assert [getattr(changed, name, 0) for name in ("k", "lg_k")] == [
                getattr(one, name, 0) for name in ("k", "lg_k")
            ]
            assert family.view(changed) == family.view(one)
    assert [sketch.to_bytes() for sketch, _ in made] == images, "merging changed what was merged"
    groups = family.many(len(pairs), kind)
    for which in (0, 1):
        column = pa.array([pair[which][0].to_bytes() for pair in pairs], pa.binary())
        groups.merge(np.arange(len(pairs)), column)
    written = groups.to_arrow()
    for i, ((one, its), (two, theirs)) in enumerate(pairs):
        whole(family, kind, groups[i])
        assert written[i].as_py() == groups[i].to_bytes()
        if family.order and not (family.seeded and not its + theirs):  # a random state of its own
            assert family.view(groups[i]) == family.view(family.new(kind, 1).merge(one).merge(two))
        else:
            assert keeps_promise(family, groups[i], its + theirs, len(others) > 1)


@each_family(("family", "kind"), APART, ids=str)
def test_every_depth_merges_with_every_other(family: Family, kind: str) -> None:
    every_pair(family, kind, family.depths, (None,))


MIXED = [pytest.param(family, family.kinds[0], id=str(family)) for family in FAMILIES if family.others]


@each_family(("family", "kind"), MIXED)
def test_so_do_sketches_of_other_sizes(family: Family, kind: str) -> None:
    ends = family.depths[0], family.depths[1], family.depths[-1]
    every_pair(family, kind, ends, (None, *range(len(family.others))))


@pytest.mark.soak
@each_family(("family", "kind"), CASES, ids=IDS)
def test_every_depth_of_every_size(family: Family, kind: str) -> None:
    between = sorted({*family.depths, *(depth * 3 for depth in family.depths), 30_000})
    every_pair(family, kind, tuple(between), (None, *range(len(family.others))))
