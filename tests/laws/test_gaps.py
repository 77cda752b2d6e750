"""A batch of gaps alone, as pandas writes them: floats that are all NaN. No family refuses it, whatever it
holds, and texts before or after it are what they would be without it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from streamgauge.operators.families import FAMILIES as REGISTRY
from streamgauge.sketches.core.columns.gaps import gaps_alone
from streamgauge.sketches.core.protocol import SketchError
from streamgauge.sketches.frequent_items import FrequentItems
from streamgauge.sketches.hll import HLL

from .families import FAMILIES, Family

NAN = float("nan")
GAPS: dict[str, Callable[[], Any]] = {
    "pandas": lambda: pd.Series([None, None], dtype=float),
    "pandas Float32": lambda: pd.Series([np.nan, np.nan], dtype="float32"),
    "NumPy": lambda: np.full(2, np.nan),
    "list": lambda: [NAN, None],
    "Arrow": lambda: pa.array([NAN, None]),
    "Arrow chunks": lambda: pa.chunked_array([pa.array([NAN]), pa.array([NAN])]),
    "Polars": lambda: pl.Series([NAN, None]),
}
VALUES = {"long": [7, 8, 9], "double": [7.5, 8.5, 9.5], "string": ["a", "b", "c"]}


def feed(family: Family, sketch: Any, values: Any, start: int) -> None:
    rows = np.arange(start, start + len(values))
    if isinstance(sketch, family.groups):
        sketch.update(rows % len(sketch), values, **family.inputs(rows))
    else:
        sketch.update(values, **family.inputs(rows))


def image(sketch: Any) -> Any:
    return sketch.to_arrow().to_pylist() if hasattr(sketch, "to_arrow") else sketch.to_bytes()


@pytest.mark.parametrize("family", FAMILIES, ids=str)
def test_gaps_alone_are_gaps_to_what_holds_no_floats(family: Family) -> None:
    wrong = []
    for kind in family.kinds:
        values = VALUES.get(kind, VALUES["long"])
        for name, gaps in GAPS.items():
            for many in (False, True):
                new = (lambda: family.many(2, kind)) if many else (lambda: family.new(kind))  # noqa: B023
                plain, before, after = new(), new(), new()
                feed(family, plain, values, 0)
                try:
                    feed(family, before, gaps(), 50)
                    feed(family, before, gaps(), 60)
                    if many:
                        before.resize(2)
                    feed(family, before, values, 0)
                    feed(family, after, values, 0)
                    feed(family, after, gaps(), 50)
                except (TypeError, ValueError) as error:
                    wrong.append(f"{kind}, {name}, groups={many}: {error}")
                    continue
                # What counts rows of any type counts NaN, as SQL does.
                if kind == "string" and family.name != "DecayedCount":
                    same = image(plain) == image(before) == image(after)
                    wrong += [] if same else [f"{kind}, {name}, groups={many}: another sketch"]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", ["sum", "min", "max", "first", "last"])
def test_exact_aggregates_take_gaps_alone(name: str) -> None:
    timed = {"time": [5, 6]} if name in ("first", "last") else {}
    for values, right in (([7, 9], (16, 7, 9, 7, 9)), (["a", "c"], (None, "a", "c", "a", "c"))):
        if name == "sum" and isinstance(values[0], str):
            continue
        for order in ((GAPS["pandas"](), values), (values, GAPS["pandas"]())):
            groups: Any = REGISTRY[name].groups_class()(1)
            for batch in order:
                groups.update([0, 0], batch, **timed)
            assert groups[0] == right[["sum", "min", "max", "first", "last"].index(name)]


def test_among_floats_nan_stays_a_value() -> None:
    apart, whole = HLL().update([NAN]).update([1.5, 2.5]), HLL().update([NAN, 1.5, 2.5])
    assert apart.to_bytes() == whole.to_bytes() and round(apart.estimate()) == 3


def test_what_came_after_gaps_is_never_lost() -> None:
    sketch = HLL().update([NAN]).merge(HLL().update([1.5]))
    with pytest.raises(TypeError, match="holds floats"):
        sketch.update(["a"])
    assert round(sketch.estimate()) == 2
    mixed = HLL().update([NAN]).update([2.5])
    before = mixed.to_bytes()
    with pytest.raises(TypeError, match="holds floats"):
        mixed.update(["a"])
    assert mixed.to_bytes() == before


def test_a_refusal_after_gaps_changes_nothing() -> None:
    sketch: Any = REGISTRY["tuple"].sketch_class()(4).update([NAN], value=[2.0])
    before = sketch.to_bytes()
    with pytest.raises(ValueError, match="one number a row"):
        sketch.update(["a", "b"], value=[1.0])
    assert sketch.to_bytes() == before and sketch.update(["a"], value=[1.0]).totals()[0].estimate == 1.0


def test_rows_of_gaps_alone_are_held_to_their_weights() -> None:
    counts = FrequentItems().update(["a", "b"])
    with pytest.raises(ValueError, match="one weight a row, 2 in all, got 3"):
        counts.update(GAPS["pandas"](), weight=[1, 2, 3])
    assert counts.update(GAPS["pandas"](), weight=[1, 2]).weight == 2
    with pytest.raises((TypeError, SketchError)):
        counts.update([NAN, 1.5])


def test_what_a_batch_of_gaps_alone_is() -> None:
    assert all(gaps_alone(make()) for make in GAPS.values()) and gaps_alone(NAN)
    for other in ([], [None], [NAN, 1.0], ["a", NAN], np.array([np.nan, 1.0]), pa.nulls(2), "nan", None, 7):
        assert not gaps_alone(other)
