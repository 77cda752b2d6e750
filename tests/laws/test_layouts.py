"""However a column is laid out, its values are the same: for the conversion, every family and its groups."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import datetime, time, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.operators.families import FAMILIES as REGISTRY
from streamgauge.sampling.core.bottom_k import BottomK
from streamgauge.sampling.core.items import as_rows
from streamgauge.sampling.reservoir import Reservoir
from streamgauge.sketches.core.columns.columns import as_values
from streamgauge.sketches.hll import HLL

from .families import FAMILIES, Family
from .layouts import LAYOUTS, RECORDS, REFUSED, SORTS, Layout

GROUPS = 3
ZEROS = [0.0, -0.0], [0.0, 0.0]
EPOCH = datetime(1970, 1, 1)
FEW = [
    layout
    for layout in LAYOUTS
    if layout.name
    in (
        *("gaps over values", "dictionary sliced", "runs", "ListArray of gaps over values"),
        *("sliced lists of plain", "half of the lists of plain", "lists of lists of plain"),
        *("chunks of lists of gaps over values", "ListViewArray of plain", "sliced fixed lists of plain"),
        *("a table's field of null structs of plain", "Polars when then of lists", "Polars tail of lists"),
        *("NumPy 100ms big-endian backwards", "pandas lists of Arrow filtered", "one null list"),
        *("a slice of null lists of runs", "views of a dictionary", "null lists of an extension"),
        *("list of several gaps", "every second of a view"),
    )
]
"""Of each way in which conversions went wrong one layout; `make soak` takes every family through all."""
OTHER_TYPES = [
    layout
    for layout in LAYOUTS
    if layout.sort in ("duration", "time") or "zone" in layout.name or layout.name.startswith("dates")
]
"""Times that what keeps values keeps as another type than their plain column's."""


def groups_of(rows: Iterable[int]) -> np.ndarray:
    """A group for each row, neighbours in different ones."""
    return np.array([(5 * row + 1) % GROUPS for row in rows], np.int64)


def micros(value: Any) -> Any:
    if isinstance(value, time):
        value = timedelta(hours=value.hour, minutes=value.minute, seconds=value.second)
    span = value - EPOCH if isinstance(value, datetime) else value
    return span // timedelta(microseconds=1) if isinstance(span, timedelta) else span


def kind_for(family: Family, layout: Layout) -> str | None:
    """The kind of sketch that takes a layout's values, None if the family takes none of them."""
    if issubclass(family.single, BottomK) and layout in OTHER_TYPES:
        return None  # a sample keeps the type
    kind = "long" if layout.sort in ("timestamp", "duration") else layout.sort
    return kind if kind in family.kinds else None


def refused(family: Family, layout: Layout) -> str:
    """What differs between a family's sketches of a layout and of its plain values; empty if nothing does."""
    kind = kind_for(family, layout)
    if kind is None:
        return ""
    flat, rows = layout.flat
    plain = pa.array(flat, SORTS[layout.sort][0] if layout.sort in SORTS else pa.duration("us"))
    at = np.array(rows, np.int64)
    single, alone = family.new(kind), family.new(kind)
    single.update(layout.make(), **family.inputs(np.arange(len(layout.values))))
    alone.update(plain, **family.inputs(at))
    many, apart = family.many(GROUPS, kind), family.many(GROUPS, kind)
    every = np.arange(len(layout.values))
    many.update(groups_of(every), layout.make(), **family.inputs(every))
    apart.update(groups_of(rows), plain, **family.inputs(at))
    if single.to_bytes() != alone.to_bytes():
        return "one sketch differs"
    return "" if many.to_arrow() == apart.to_arrow() else "groups differ"


def faults(families: list[Family], layouts: list[Layout]) -> tuple[list[str], int]:
    """What is wrong, and how many layouts families were taken through."""
    wrong, taken = [], 0
    for family in families:
        for layout in layouts:
            taken += kind_for(family, layout) is not None
            try:
                fault = refused(family, layout)
            except Exception as error:
                fault = f"{type(error).__name__}: {error}"
            if fault:
                wrong.append(f"{family}, {layout}: {fault}")
    return wrong, taken


def test_every_layout_converts_to_the_values_it_holds() -> None:
    """As many values as rows of them, each row below the height; and the values are the plain ones."""
    wrong = []
    for layout in LAYOUTS:
        flat, rows = layout.flat
        values = as_values(layout.make())
        came = values.to_arrow().to_pylist() if len(values) else []
        at = [values.row(i) for i in range(len(values))]
        if (came, at, values.length) != ([micros(one) for one in flat], rows, len(layout.values)):
            wrong.append(f"{layout}: {came} of rows {at}")
    assert not wrong, "\n".join(wrong)
    assert len(LAYOUTS) > 700


def test_what_no_entrance_takes_is_refused_by_name() -> None:
    wrong = []
    for make, words in REFUSED:
        for entrance in (as_values, as_rows, HLL().update, Reservoir().update):
            try:
                wrong.append(f"{words}: became {entrance(make())}")
            except TypeError as error:
                if not re.search(words, str(error)) or isinstance(error, pa.ArrowException):
                    wrong.append(f"{words}: {error}")
    assert not wrong, "\n".join(wrong)


def test_zero_has_one_sign_for_all_that_counts_values() -> None:
    wrong = []
    for family in FAMILIES:
        if not family.line.aggregate.hashes or "double" not in family.kinds:
            continue
        one, other = (family.new("double").update(zeros, **family.inputs(np.arange(2))) for zeros in ZEROS)
        if one != other:
            wrong.append(str(family))
    assert not wrong


def test_every_layout_of_records_converts_to_its_items() -> None:
    wrong = []
    for layout in [*LAYOUTS, *RECORDS]:
        flat, rows = layout.flat
        items, came, length = as_rows(layout.make())
        at = list(range(len(items))) if came is None else came.tolist()
        if layout in OTHER_TYPES:
            continue
        if (items.to_pylist(), at, length) != (flat, rows, len(layout.values)):
            wrong.append(f"{layout}: {items.to_pylist()} of rows {at}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("family", FAMILIES, ids=str)
def test_a_layout_changes_no_sketch(family: Family) -> None:
    wrong, taken = faults([family], FEW)
    assert not wrong, "\n".join(wrong)
    assert taken >= 13


@pytest.mark.soak
@pytest.mark.parametrize("family", FAMILIES, ids=str)
def test_no_layout_changes_any_sketch(family: Family) -> None:
    wrong, taken = faults([family], LAYOUTS)
    assert not wrong, "\n".join(wrong)
    assert taken > 100


def test_samples_keep_records_of_every_layout() -> None:
    wrong = []
    for family in FAMILIES:
        if not issubclass(family.single, BottomK):
            continue
        for layout in RECORDS:
            flat, rows = layout.flat
            every = np.arange(len(layout.values))
            given = {name: 1.0 for name in ("p",) if name in family.line.params}
            single, many = family.single(**given), family.groups(GROUPS, **given)
            single.update(layout.make(), **family.inputs(every))
            many.update(groups_of(every), layout.make(), **family.inputs(every))
            for group, sample in ((None, single), *enumerate(many[group] for group in range(GROUPS))):
                kept = sample.values()
                kept = kept.column("item") if isinstance(kept, pa.Table) else kept
                right = [item for item, row in zip(flat, groups_of(rows)) if group is None or row == group]
                if Counter(map(repr, kept.to_pylist())) != Counter(map(repr, right)):
                    wrong.append(f"{family}, {layout}, group {group}: {kept.to_pylist()}")
    assert not wrong, "\n".join(wrong)


def exact(layout: Layout) -> dict[str, list[Any]]:
    """What exact aggregates answer for each group, in plain Python."""
    of_group: dict[int, list[Any]] = defaultdict(list)
    for item, row in zip(*layout.flat):
        of_group[int(groups_of([row])[0])].append((row, item))
    columns: dict[str, list[Any]] = defaultdict(list)
    for group in range(GROUPS):
        pairs = of_group[group]
        items = [item for _, item in pairs]
        columns["count"].append(len(items))
        columns["min"].append(min(items, default=None))
        columns["max"].append(max(items, default=None))
        first, last = (rows(row for row, _ in pairs) if pairs else None for rows in (min, max))
        columns["first"].append(next((item for row, item in pairs if row == first), None))
        columns["last"].append(next((item for row, item in reversed(pairs) if row == last), None))
        if layout.sort == "long":
            columns["sum"].append(sum(items) if items else None)
            columns["mean"].append(sum(items) / len(items) if items else None)
    return columns


def test_exact_aggregates_answer_what_python_does() -> None:
    wrong, taken = [], 0
    for layout in LAYOUTS:
        rows = np.arange(len(layout.values))
        for name, right in exact(layout).items():
            groups: Any = REGISTRY[name].groups_class()(GROUPS)
            timed = {"time": rows, "offset": rows} if name in ("first", "last") else {}
            groups.update(groups_of(rows), layout.make(), **timed)
            came = groups.answers().to_pylist()
            if layout in OTHER_TYPES:
                came, right = [one is None for one in came], [one is None for one in right]
            taken += 1
            if came != right and list(map(micros_of_any, came)) != list(map(micros, right)):
                wrong.append(f"{name}, {layout}: {came}, not {right}")
    assert not wrong, "\n".join(wrong)
    assert taken > 2500


def micros_of_any(value: Any) -> Any:
    return micros(value.to_pydatetime() if hasattr(value, "to_pydatetime") else value)
