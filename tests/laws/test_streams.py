"""On every adversarial stream: the promise is kept, and how a column is laid out changes nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.sketches.core.protocol import SketchError

from .families import FAMILIES, KINDS, Family
from .family import each_family
from .streams import STREAMS, fresh, values_of

STREAM_CASES = [
    pytest.param(family, kind, column, id=f"{family}-{kind}-{name}")
    for family in FAMILIES
    for name, kind, column in family.columns()
]


def test_there_are_enough_of_them() -> None:
    assert len(STREAMS) >= 15


@each_family(("family", "kind", "column"), STREAM_CASES)
def test_the_promise_is_kept_and_nothing_changes_nothing(family: Family, kind: str, column: Any) -> None:
    sketch = family.feed(family.new(kind), column)
    image = sketch.to_bytes()
    family.feed(sketch, column.slice(0, 0))
    family.feed(sketch, pa.nulls(3))
    assert sketch.to_bytes() == image
    # One stream, one run: what is promised of most runs may be missed here, but not by much.
    assert family.promise(sketch, values_of(column)) <= (1.0 if family.confidence == 1.0 else 2.0)
    sketch.answer()
    assert family.read(image, kind).to_bytes() == image == sketch.to_bytes()
    assert repr(sketch)


@each_family(("family", "kind", "column"), STREAM_CASES)
def test_only_the_values_count_not_how_a_column_is_laid_out(family: Family, kind: str, column: Any) -> None:
    sketch = family.feed(family.new(kind), column)
    flat = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_dictionary(flat.type):
        flat = flat.dictionary_decode()
    plain = pa.array(flat.to_pylist(), pa.string() if pa.types.is_string_view(flat.type) else flat.type)
    expected = family.outcome(sketch)
    assert family.outcome(family.feed(family.new(kind), plain)) == expected
    if values_of(column):
        assert family.outcome(family.feed(family.new(kind), plain.to_pylist())) == expected
    if (pa.types.is_floating(plain.type) or pa.types.is_integer(plain.type)) and plain.null_count == 0:
        numpy = np.asarray(plain)
        assert family.outcome(family.feed(family.new(kind), numpy)) == expected
        assert family.outcome(family.feed(family.new(kind), np.repeat(numpy, 2)[::2])) == expected


STRANGE = [
    pytest.param(family, kind, id=f"{family}-{kind}")
    for family in FAMILIES
    for kind in KINDS
    if kind not in family.kinds
]


@each_family(("family", "kind"), STRANGE)
def test_what_a_family_cannot_take_is_refused_or_taken_right(family: Family, kind: str) -> None:
    mine = family.kinds[0]
    sketch = family.feed(family.new(mine), fresh(mine, 1, 10))
    image = sketch.to_bytes()
    strange = (
        pa.array([2**64 - 1 - i for i in range(200)], pa.uint64())
        if kind == "unsigned"
        else fresh(kind, 2, 200)
    )
    try:
        family.feed(family.new(mine), strange)
    except (TypeError, SketchError) as error:
        assert len(str(error)) > 15
        with pytest.raises(type(error)):
            family.feed(sketch, strange)
        assert sketch.to_bytes() == image, "refused, and yet changed"
        with pytest.raises(type(error)):
            family.feed_groups(family.many(1, mine), np.zeros(200, int), strange)
    else:
        # Numbers of one sort into a sketch of another, whose answers name no values or name them right.
        assert kind != "string"
        assert family.promise(family.feed(family.new(mine), strange), strange.to_pylist()) <= 2.0
