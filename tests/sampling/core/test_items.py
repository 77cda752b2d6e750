"""Items of any depth: however lists and structs lie within each other, the items, their hashes and the bytes
of samples are those of the plain column."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from streamgauge.sampling.core.items import as_rows, hash_items
from streamgauge.sampling.reservoir import Reservoir
from streamgauge.sampling.stratified import StratifiedReservoir
from streamgauge.sketches.core.columns.arrays import as_array

LEAVES: list[tuple[pa.DataType, list[Any]]] = [
    (pa.int64(), [-5, 0, 1, 7]),
    (pa.string(), ["", "a", "ü", "a text longer than twelve bytes"]),
    (pa.float64(), [0.5, -2.0, 1e300]),
]


class Layouts:
    """Types, values and layouts drawn at random."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)

    def type(self, depth: int = 0) -> pa.DataType:
        sort = self.draw.choice(("leaf", "list", "struct")) if depth < 3 else "leaf"
        if sort == "list":
            return pa.list_(self.type(depth + 1))
        if sort == "struct":
            fields = range(self.draw.randint(1, 3))
            return pa.struct([(f"f{at}", self.type(depth + 1)) for at in fields])
        return self.draw.choice(LEAVES)[0]

    def value(self, kind: pa.DataType, gaps: float = 0.3) -> Any:
        if self.draw.random() < gaps:
            return None
        if pa.types.is_list(kind):
            return [self.value(kind.value_type, gaps) for _ in range(self.draw.randint(0, 3))]
        if pa.types.is_struct(kind):
            return {field.name: self.value(field.type, gaps) for field in kind}
        return self.draw.choice(next(values for leaf, values in LEAVES if leaf == kind))

    def laid_out(self, kind: pa.DataType, values: list[Any]) -> pa.Array:
        """The values as a slice, with others before, behind and beneath their gaps."""
        before, behind = ([self.value(kind, 0)] * self.draw.randint(0, 2) for _ in range(2))
        whole = self._whole(kind, [*before, *values, *behind])
        return whole.slice(len(before), len(values))

    def _whole(self, kind: pa.DataType, values: list[Any]) -> pa.Array:
        gaps = pa.array([value is None for value in values], pa.bool_())
        full = [self.value(kind, 0) if value is None else value for value in values]
        if pa.types.is_list(kind):
            items = self.laid_out(kind.value_type, [item for one in full for item in one])
            ends = np.cumsum([0, *map(len, full)])
            made = self.draw.choice((pa.ListArray, pa.LargeListArray, pa.ListViewArray))
            index = pa.int64() if made is pa.LargeListArray else pa.int32()
            cuts = [pa.array(ends, index)]
            if made is pa.ListViewArray:
                cuts = [pa.array(ends[:-1], index), pa.array(np.diff(ends), index)]
            return made.from_arrays(*cuts, items, mask=gaps)
        if pa.types.is_struct(kind):
            fields = [self.laid_out(field.type, [one[field.name] for one in full]) for field in kind]
            return pa.StructArray.from_arrays(fields, [field.name for field in kind], mask=gaps)
        how = self.draw.choice(("over", "dictionary", "runs", "plain"))
        plain = pa.array(values, kind)
        if how == "over" and values:
            there = pa.array([value is not None for value in values]).buffers()[1]
            return pa.Array.from_buffers(kind, len(values), [there, *pa.array(full, kind).buffers()[1:]])
        if how == "runs" and values:
            return pc.run_end_encode(plain)
        return plain.dictionary_encode() if how == "dictionary" else plain


def items_of(kind: pa.DataType, value: Any) -> Iterator[Any]:
    if value is not None and pa.types.is_list(kind):
        for item in value:
            yield from items_of(kind.value_type, item)
    elif value is not None:
        yield value


def check(seed: int) -> None:
    layouts = Layouts(seed)
    kind = layouts.type()
    values = [layouts.value(kind) for _ in range(layouts.draw.randint(0, 7))]
    column, plain = layouts.laid_out(kind, values), pa.array(values, kind)
    column.validate(full=True)
    assert as_array(column).to_pylist() == values
    rows = as_rows(column)
    pairs = [(item, row) for row, value in enumerate(values) for item in items_of(kind, value)]
    numbers = range(len(rows.items)) if rows.rows is None else rows.rows.tolist()
    assert list(zip(rows.items.to_pylist(), numbers)) == pairs
    assert hash_items(as_array(column)).tolist() == hash_items(plain).tolist()
    samples = [Reservoir(50, seed=1).update(one) for one in (column, plain)]
    strata = [StratifiedReservoir(50, seed=1).update(range(len(values)), key=one) for one in (column, plain)]
    assert samples[0].to_bytes() == samples[1].to_bytes() and strata[0].to_bytes() == strata[1].to_bytes()


def test_items_of_any_depth() -> None:
    for seed in range(100):
        check(seed)


@pytest.mark.soak
def test_many_items_of_any_depth() -> None:
    for seed in range(100, 10_000):
        check(seed)
