"""Any cut of a stream into batches gives what item by item gives."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from .families import CASES, FAMILIES, IDS, Family, sized
from .family import each_family
from .streams import fresh, values_of

CUTS = {
    "one by one": lambda n: list(range(n)),
    "sevens": lambda n: list(range(0, n, 7)),
    "halves": lambda n: [n // 2],
    "uneven": lambda n: [1, 2, 3, 7, 8, 40, n // 3, n // 3, n - 1],
}
LAID_OUT = [
    pytest.param(family, kind, column, id=f"{family}-{kind}-{name}")
    for family in FAMILIES
    for name, kind, column in family.columns()
    if name in ("nulls", "chunked", "dictionary", "lists", "NaN", "unicode")
]


def in_batches(family: Family, kind: str, column: Any, cuts: list[int]) -> Any:
    sketch = family.new(kind)
    for start, end in pairwise([0, *cuts, len(column)]):
        family.feed(sketch, column.slice(start, end - start), start)
    return sketch


@each_family(("family", "kind", "name"), sized(CUTS), ids=str)
def test_any_cut_equals_the_whole(family: Family, kind: str, name: str) -> None:
    column = fresh(kind, 7, 700 if name == "one by one" else 3000)
    result = in_batches(family, kind, column, CUTS[name](len(column)))
    if family.cut:
        assert result.to_bytes() == family.feed(family.new(kind), column).to_bytes()
    assert family.promise(result, column.to_pylist()) <= (1.0 if family.confidence == 1.0 else 2.0)


@each_family(("family", "kind", "column"), LAID_OUT)
def test_cuts_of_awkward_columns(family: Family, kind: str, column: Any) -> None:
    result = in_batches(family, kind, column, [1, 2, 699, 700, 701, 1500])
    if family.cut:
        assert result.to_bytes() == family.feed(family.new(kind), column).to_bytes()
    assert family.promise(result, values_of(column)) <= (1.0 if family.confidence == 1.0 else 2.0)


@each_family(
    ("family", "kind"), [pytest.param(*case, id=i) for case, i in zip(CASES, IDS) if "unsigned" not in case]
)
def test_scalars_equal_batches(family: Family, kind: str) -> None:
    column = fresh(kind, 4, 60)
    sketch = family.new(kind)
    for row, value in enumerate(column.to_pylist()):
        inputs = {name: array[0] for name, array in family.inputs(np.array([row])).items()}
        sketch.update(value, **inputs)
    if family.cut:
        assert sketch.to_bytes() == family.feed(family.new(kind), column).to_bytes()
    assert family.promise(sketch, column.to_pylist()) <= (1.0 if family.confidence == 1.0 else 2.0)
