"""Every answer is plain JSON, whatever the values were."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from .families import FAMILIES, Family
from .family import each_family

ODD = (
    "NaN",
    "infinities",
    "alternating extremes",
    "smallest doubles",
    "int64 limits",
    "zero-length",
    "unicode",
)
CASES = [
    pytest.param(family, kind, column, id=f"{family}-{kind}-{name}")
    for family in FAMILIES
    for name, kind, column in family.columns()
    if name in ODD
]


@each_family(("family", "kind", "column"), CASES)
def test_answers_are_json(family: Family, kind: str, column: pa.Array) -> None:
    sketch = family.feed(family.new(kind), column)
    answers = json.dumps(sketch.answer(), allow_nan=False)
    assert json.loads(answers) == sketch.answer()
