"""The aggregate functions: from rows to a sketch, and from sketches to one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from ...operators.definition.aggregate import Aggregate, aggregate
from ...operators.definition.input_cleaning import check_input, update, usable, within_reach
from ...operators.families import MOMENT, family
from ...sketches.core.columns.utf8_repair import readable
from ..frames.aggregate_request import takes
from ..seeds import seed_of_task
from .arguments import constant
from .reading import check_sketches, read_options, reader


def sketch_of(name: str, seeds: TaskSeeds, arguments: dict[str, Any]) -> bytes:
    """Sketch a group's rows: arguments are the column, the family's further inputs, and constant options.

    Raises `TypeError` for columns that the family doesn't accept, `SketchError` for options out of range.
    """
    line, function = family(name), f"sketch_{name}"
    column = arguments["column"]
    inputs = {one: arguments[one] for one in line.inputs}
    options = {
        one: constant(function, one, arguments[one], default)
        # A group without rows has no constants; its sketch is empty whatever they would be.
        for one, default in line.params.items()
        if one in arguments and len(column)
    }
    inputs |= {one: arguments[one] for one in line.optional if one in arguments}
    named = {one: one for one in inputs if one not in MOMENT}
    return sketched(aggregate(name, "column", **named, **options), seeds.next(), column, inputs)


def sketched(aggregate: Aggregate, seed: int, column: pa.Array, inputs: Mapping[str, pa.Array]) -> bytes:
    """Sketch a column, with the family's further inputs by name.

    Raises `TypeError` for columns of types that the family doesn't accept.
    """
    column, given = within_reach(_counted(aggregate, column)), dict(inputs)
    if aggregate.family.keeps_values:
        column, given = readable(column), {one: readable(values) for one, values in given.items()}
    for one, values in given.items():
        check_input(one, one, values.type)
        if one == "time":
            column, given[one] = _timed(column, within_reach(values))
    if aggregate.family.inputs:
        column, given = usable(column, given)
    groups = aggregate.typed(column.type).groups(1, seed=seed)
    update(groups, aggregate, np.zeros(len(column), np.int64), column, given)
    return groups.to_arrow()[0].as_py()


def _counted(aggregate: Aggregate, column: pa.Array) -> pa.Array:
    """Turn decimals into text if the family doesn't accept them, as `frames.sketch` does."""
    if not pa.types.is_decimal(column.type) or takes(aggregate, column.type):
        return column
    # Arrow would write small ones with an exponent.
    return pl.Series(column).cast(pl.String).to_arrow()


def merged(name: str, kind: str, arguments: dict[str, Any]) -> bytes | None:
    """Merge a group's sketches; null if there are none. Raises `SketchError` if they can't be merged."""
    function, line = f"merge_{name}", family(name)
    check_sketches(function, arguments)
    images = arguments["sketch"].drop_null()
    if not len(images):
        return None
    options = {
        one: constant(function, one, arguments[one], like)
        for one, like in read_options(line).items()
        if one in arguments and arguments[one].null_count < len(arguments[one])
    }
    # One sketch at a time: in memory, a sketch may be a hundred times as large as its bytes.
    read = reader(function, line, kind)
    sketches = (read(image.as_py(), **options) for image in images)
    whole = next(sketches)
    for sketch in sketches:
        whole.merge(sketch)
    return whole.to_bytes()


class TaskSeeds:
    """Seeds for the samples of a task's groups: different for each, the same if Spark repeats a task.

    `salt` comes from the driver (`seed_of_task`).
    """

    def __init__(self, salt: int) -> None:
        self._salt = salt
        self._given = 0

    def next(self) -> int:
        """Return the seed for the next group."""
        self._given += 1
        return seed_of_task(self._salt, self._given)


def _timed(column: pa.Array, time: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Set both columns to null and 1970 in rows without a time, which are skipped."""
    if pa.types.is_date(time.type):
        time = time.cast(pa.timestamp("us"))
    if not time.null_count:
        return column, time
    there = pc.is_valid(time)
    return pc.if_else(there, column, pa.scalar(None, column.type)), time.fill_null(
        pa.scalar(0).cast(time.type)
    )
