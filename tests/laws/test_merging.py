"""Merging: in any order, of any sizes and parameters, sparse and dense; parts against the whole."""

from __future__ import annotations

import itertools
import operator
from typing import Any

import pytest

from streamgauge.sketches.core.protocol import SketchError

from .families import CASES, FAMILIES, IDS, WHOLE, Family, sized
from .family import each_family
from .streams import fresh
from .test_equality import ANOTHER

SIZES = (0, 3, 120, 2500)


def parts_of(family: Family, kind: str, mixed: bool) -> tuple[list[Any], list[Any]]:
    """Sketches of different sizes, and parameters if `mixed`; and all the values in them."""
    parts, values, start = [], [], 0
    for i, size in enumerate(SIZES):
        other = (None, *range(len(family.others)))[i % (len(family.others) + 1)] if mixed else None
        column = fresh(kind, i, size)
        parts.append(family.feed(family.new(kind, 100 + i, other), column, start))
        values.extend(column.to_pylist())
        start += size
    return parts, values


def in_all_orders(parts: list[Any]) -> list[Any]:
    """Merged one by one, in every order or, before `make soak`, in five; and in other shapes of brackets."""
    collected, numbers = [], [*range(len(parts))]
    turns = [numbers[at:] + numbers[:at] for at in numbers]
    for order in itertools.permutations(numbers) if WHOLE else [*turns, numbers[::-1]]:
        merged = parts[order[0]].copy()
        for i in order[1:]:
            merged.merge(parts[i])
        collected.append(merged)
    a, b, c, d = parts
    collected.append((a | b) | (c | d))
    collected.append(a | (b | (c | d)))
    collected.append((d | (b | c)) | a)
    return collected


@each_family(("family", "kind", "mixed"), sized([True, False]), ids=str)
def test_any_order_gives_the_same(family: Family, kind: str, mixed: bool) -> None:
    parts, values = parts_of(family, kind, mixed)
    images = [part.to_bytes() for part in parts]
    result = in_all_orders(parts)
    assert [part.to_bytes() for part in parts] == images, "merging changed what was merged"
    if family.order:
        assert len({str(family.view(merged)) for merged in result}) == 1
        result = result[:1]
    slack = 1.0 if family.confidence == 1.0 else 2.0
    if not mixed:
        assert all(family.promise(merged, values) <= slack for merged in result)


@each_family(("family", "kind"), CASES, ids=IDS)
def test_merging_is_commutative(family: Family, kind: str) -> None:
    parts, _ = parts_of(family, kind, False)
    for one, other in itertools.combinations(parts, 2):
        if family.order:
            assert family.view(one | other) == family.view(other | one)
        else:
            assert str(answer_size(one | other)) == str(answer_size(other | one))


def answer_size(sketch: Any) -> Any:
    """What of an answer no order may change, of families whose counters it may."""
    return getattr(sketch, "n", getattr(sketch, "weight", None))


@each_family(("family", "kind"), CASES, ids=IDS)
def test_merged_parts_equal_the_whole(family: Family, kind: str) -> None:
    column = fresh(kind, 5, 4000)
    whole = family.feed(family.new(kind, 1), column)
    merged, start = family.new(kind, 2), 0
    for i, length in enumerate((1, 30, 969, 3000)):
        merged.merge(family.feed(family.new(kind, 3 + i), column.slice(start, length), start))
        start += length
    if family.parts:
        assert merged.to_bytes() == whole.to_bytes()
    assert family.promise(merged, column.to_pylist()) <= (1.0 if family.confidence == 1.0 else 2.0)


@each_family(("family", "kind", "size"), sized(SIZES), ids=str)
def test_an_empty_one_adds_nothing(family: Family, kind: str, size: int) -> None:
    sketch = family.feed(family.new(kind), fresh(kind, 3, size))
    # HLL's estimator changes once a sketch is a merged one: merge before comparing.
    first = sketch | family.new(kind, 2)
    assert answer_size(first) == answer_size(sketch)
    if size or not family.seeded:
        assert family.outcome(first | family.new(kind, 3)) == family.outcome(first)
        if family.order:
            assert (family.new(kind, 2) | sketch).to_bytes() == first.to_bytes()


def same(one: Any, other: Any) -> bool:
    return one.to_bytes() == other.to_bytes() and one._compared() == other._compared()


@pytest.mark.parametrize("family", FAMILIES, ids=str)
def test_empty_ones_give_the_same_either_way_round(family: Family) -> None:
    kind, wrong = family.kinds[0], []
    sizes = [*range(len(family.others))] or [None]
    made = [family.new(kind, 1, size) for size in sizes]
    made += [family.feed(family.new(kind, 1, size), fresh(kind, 1, 90)) for size in sizes]
    for name in ("lg_k", "k", "max_size"):
        if name in family.line.params:
            made.append(family.single(**{**family._params(kind, 1, None), name: ANOTHER[name]}))
    for one, other in itertools.product(made, repeat=2):
        if one._saw_nothing() or other._saw_nothing():
            operators = [operator.or_] + [operator.and_] * hasattr(family.single, "__and__")
            wrong += [(one, other) for both in operators if not same(both(one, other), both(other, one))]
    assert not wrong


@pytest.mark.parametrize("family", FAMILIES, ids=str)
def test_another_family_is_refused(family: Family) -> None:
    sketch = family.new(family.kinds[0])
    stranger = next(other for other in FAMILIES if other.single is not family.single)
    with pytest.raises((SketchError, TypeError)):
        sketch.merge(stranger.new(stranger.kinds[0]))
    with pytest.raises(TypeError):
        sketch | 3


@each_family(("family", "kind"), CASES, ids=IDS)
def test_one_may_be_merged_with_itself(family: Family, kind: str) -> None:
    sketch = family.feed(family.new(kind), fresh(kind, 1, 500))
    twice = sketch | sketch.copy()
    sketch.merge(sketch)
    if family.order:
        assert sketch.to_bytes() == twice.to_bytes()
    assert answer_size(sketch) == answer_size(twice)
