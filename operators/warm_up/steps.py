"""What to compile: each family with each column type it accepts, and the path from Kafka to rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from ..definition.aggregates import count
from ..definition.stream import Stream
from ..families import FAMILIES, Family, family
from ..formats.json.decoder import json
from ..formats.messages import Messages
from ..kafka.warm import read_batches
from ..steps.id_filter import IdFilter
from ..steps.id_index import IdIndex
from ..steps.table_rows import TableRows
from .rehearsal import rehearse

COLUMNS = {
    "longs": pa.array(np.arange(4096) % 1000),
    "doubles": pa.array(np.linspace(-1.0, 1.0, 4096)),
    "strings": pa.array([str(i % 1000) for i in range(4096)]),
    "wide strings": pa.array([str(i % 1000) for i in range(4096)], pa.large_string()),
}


@dataclass(frozen=True, slots=True)
class Step:
    """A call that compiles kernels: a function of a module, so that another process can run it."""

    name: str
    call: Callable[..., object]
    arguments: tuple[Any, ...] = ()

    def run(self) -> None:
        """Compile the kernels of this step, or load them if they are already compiled."""
        self.call(*self.arguments)


READING = "reading"
"""The step that is not a family: from Kafka's batches to rows in their windows and groups."""


def steps(names: Iterable[str] = ()) -> list[Step]:
    """The steps of the families with these names, or all steps, the slowest first.

    Raises `KeyError` naming the available families.

    >>> [step.name for step in steps(["count", "reading"])]
    ['reading', 'count']
    """
    chosen = [*names] or [*(name for name, line in FAMILIES.items() if line.installed), READING]
    listed = [
        Step(name, read) if name == READING else Step(name, exercise, (family(name).name,)) for name in chosen
    ]
    return sorted(listed, key=lambda step: step.name not in _LONGEST)


_LONGEST = {"kll_quantiles", "top_k", READING, "distinct_set", "distinct"}
"""Slow steps, which must not start last, when other processes have nothing left to do."""


def exercise(name: str) -> None:
    """Call everything in a family that compiles, with each kind of column it accepts."""
    of = family(name)
    for column in COLUMNS.values():
        if accepts(of, column.type):
            exercise_with(of, column)


def accepts(of: Family, kind: pa.DataType) -> bool:
    """Whether a family accepts a column of this type."""
    try:
        of.of_column(kind)
    except TypeError:
        return False
    return True


def exercise_with(of: Family, column: pa.Array) -> None:
    """Call updates of one group and of many, serialisation, merges, and answers."""
    params: dict[str, Any] = {**of.params, **of.of_column(column.type)}
    if "type" in params:
        params["type"] = column.type
    inputs = {name: np.arange(len(column), dtype=np.int64) for name in of.inputs}
    for n in (1, 3):
        groups = of.groups_class()(n, **params)
        numbers = np.arange(len(column), dtype=np.int64) % n
        groups.update(numbers, column, **inputs)
        groups.update(numbers[:8], column[:8], **{name: rows[:8] for name, rows in inputs.items()})
        for name in of.optional:
            groups.update(numbers, column, **{name: np.ones(len(column), np.int64)})
        images = groups.to_arrow()
        groups.merge(np.arange(n), images)
        rolled_up = of.groups_class()(1, **params)  # merging many into one may use a separate kernel
        rolled_up.merge(np.zeros(8 * n, np.int64), pa.concat_arrays([images] * 8))
    if not of.exact:
        sketch: Any = of.sketch_class()(**params)
        for rows in (len(column), 3):
            sketch.update(column[:rows], **{name: values[:rows] for name, values in inputs.items()})
        if not inputs:  # a batch of many values may use a separate kernel
            sketch.update(pa.concat_arrays([column] * 16))
        sketch.merge(sketch.copy()).answer()


def read() -> None:
    """Read Kafka's batches into rows, and rows of several keys into windows and groups."""
    read_batches()
    value = json({"user": pl.String, "age": pl.Int64, "tags": pl.List(pl.String), "at": pl.String})
    posts = Stream.from_kafka("posts", value=value, time="at").group_by("user", "age").tumbling("1m")
    text = b'{"user": "ann", "age": 3, "tags": ["a", "b"], "at": "2026-01-01T00:00:30Z"}'
    rehearse(posts.agg(n=count()), Messages.of([text, None] * 100))
    users = TableRows({"n": pl.Int64})
    users.update([pl.Series(["ann"] * 200)], pl.DataFrame({"n": range(200)}))
    users.find([pl.Series(["ann"])])
    ids, each = [pa.array([f"ann{n}" for n in range(200)])], np.arange(200)
    IdIndex(1).mark(ids, each, each)
    filtered = IdFilter(1, 100_000, 0.01)  # more blocks than it has room for
    filtered.mark(ids, each, each)
