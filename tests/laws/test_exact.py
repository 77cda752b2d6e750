"""Exact aggregates under the laws: any cut, order of merging and layout of a column, the naive answer."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.operators.families import FAMILIES, Family

from ..cases import each
from . import promises
from .families import FAMILIES as UNDER_LAW
from .families import WHOLE
from .family import each_family
from .streams import columns, values_of

ADDED = ("sum", "mean", "variance")
EXACT = [family for family in FAMILIES.values() if family.exact]
CASES = [
    pytest.param(family, column, id=f"{family.name}-{kind}-{name}")
    for family in EXACT
    for name, kind, column in columns("long", "double", "string", "unsigned")
    if not (kind == "string" and family.name in ADDED)
]


def leaf(column: Any) -> pa.DataType:
    kind = column.type
    while hasattr(kind, "value_type"):
        kind = kind.value_type
    return kind


def fed(family: Family, column: Any, numbers: np.ndarray, n: int, start: int = 0) -> Any:
    """Groups that saw those rows, the first being number `start` of the stream."""
    groups = family.groups_class()(n, **{**family.params, **family.of_column(leaf(column))})
    inputs = {name: (start + np.arange(len(column))) * 7 % 1009 for name in family.inputs}
    groups.update(numbers, column, **inputs)
    return groups


def alike(one: Any, other: Any) -> bool:
    """Equal, but for the last digits of floating sums, whose order is the cut's."""
    if isinstance(one, dict):
        if "m2" in one and one["n"]:
            near = 1e-9 * math.sqrt(one["m2"] / one["n"])
            one = {**one, "mean": other["mean"] if abs(one["mean"] - other["mean"]) <= near else one["mean"]}
        return all(alike(one[name], other[name]) for name in one)
    if isinstance(one, float) and isinstance(other, float):
        both = math.isnan(one) and math.isnan(other)
        return both or one == other or math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    return bool(one == other)


def all_alike(one: Any, other: Any) -> bool:
    return all(map(alike, values_in(one), values_in(other)))


def values_in(groups: Any) -> list[Any]:
    return list(groups.to_arrow().to_pylist())


@each_family(("family", "column"), CASES)
def test_parts_in_any_order_equal_the_whole(family: Family, column: Any) -> None:
    numbers = np.arange(len(column)) % 3
    whole = fed(family, column, numbers, 3)
    cuts = [0, 1, 700, 701, len(column)] if len(column) else [0, 0, 0, 0, 0]
    parts = [
        fed(family, column.slice(a, b - a), numbers[a:b], 3, a).to_arrow()
        for a, b in itertools.pairwise(cuts)
    ]
    wanted = values_in(whole)
    finite = all(map(math.isfinite, leaves(wanted)))
    turns = [parts[at:] + parts[:at] for at in range(len(parts))]
    for order in itertools.permutations(parts) if WHOLE else [*turns, parts[::-1]]:
        merged = fed(family, column.slice(0, 0), numbers[:0], 3)
        for part in order:
            merged.merge(np.arange(3), part)
        # Sums that overflow on the way are infinite or no number, as their order has it.
        assert not finite or all(map(alike, values_in(merged), wanted))


def leaves(values: list[Any]) -> list[float]:
    """All floats there are among the groups' values."""
    collected = []
    for value in values:
        for inner in value.values() if isinstance(value, dict) else [value]:
            collected.append(inner if isinstance(inner, float) else 0.0)
    return collected


@each_family(("family", "column"), CASES)
def test_only_the_values_count_not_how_a_column_is_laid_out(family: Family, column: Any) -> None:
    numbers = np.arange(len(column)) % 3
    flat = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_dictionary(flat.type):
        flat = flat.dictionary_decode()
    plain = pa.array(flat.to_pylist(), pa.string() if pa.types.is_string_view(flat.type) else flat.type)
    assert all_alike(fed(family, plain, numbers, 3), fed(family, column, numbers, 3))


NAIVE = {
    "count": len,
    "sum": lambda values: math.fsum(values) if isinstance(values[0], float) else sum(values),
    "mean": lambda values: math.fsum(values) / len(values),
    "min": min,
    "max": max,
}


@each("name", NAIVE)
@each("kind", ["long", "double", "unsigned"])
def test_the_naive_answer(name: str, kind: str) -> None:
    for stream, _, column in columns(kind):
        values = values_of(column)
        if not values or (kind == "double" and stream in ("alternating extremes", "NaN", "infinities")):
            continue
        groups = fed(FAMILIES[name], column, np.zeros(len(column), int), 1)
        assert alike(groups[0], NAIVE[name](values)), stream


def test_every_sketch_of_the_registry_says_what_it_promises() -> None:
    assert [family.name for family in UNDER_LAW if family.promise is promises.nothing] == []
