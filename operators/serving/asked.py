"""What merged sketches are asked, by the kind of question: one row an item, a rank or a group.

A kind asks any family that can answer it, by the methods of its sketches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from ...sketches.core.answers import quantile_rows
from ...sketches.core.protocol import SketchError
from ..definition.aggregate import Aggregate
from ..families import FAMILIES
from ..table.query import answers
from ..table.schema import END, START, aggregates_of, keys_of
from ..table.sets import compare
from .question import BadQuestion, Question
from .rollups import Deadline
from .view import TableView


@dataclass(frozen=True, slots=True)
class Asking:
    """A kind of question: the methods that a sketch needs for it, and how it is answered."""

    methods: tuple[str, ...]
    answer: Callable[..., pl.DataFrame]
    families: tuple[str, ...] = ()

    def fits(self, asked: Aggregate) -> bool:
        """Whether an aggregate's sketches can be asked so."""
        return asked.name in able(self)


def able(kind: Asking) -> list[str]:
    """The aggregates that can be asked so."""
    if kind.families:
        return list(kind.families)
    found = []
    for name, line in FAMILIES.items():
        if not line.exact and all(hasattr(line.sketch_class(), method) for method in kind.methods):
            found.append(name)
    return found


def column_of(view: TableView, name: str, kind: str) -> str:
    """The column that is asked: the named one, or the only one that can be. Raises `BadQuestion`."""
    aggregates = aggregates_of(view.schema)
    fit = [column for column, asked in aggregates.items() if ASKED[kind].fits(asked)]
    if not name and len(fit) == 1:
        return fit[0]
    if not name:
        which = f"column= names one of {', '.join(fit)}" if fit else "it has no column that can be asked that"
        raise BadQuestion(f"{kind} of {view.name}: {which}")
    if name not in aggregates:
        raise BadQuestion(f"column: {name} is not a column of {view.name}; it has {', '.join(aggregates)}")
    if name not in fit:
        raise BadQuestion(
            f"column: {name} is a {aggregates[name].name}, which can't be asked {kind}; what can is "
            f"{', '.join(fit) or 'no column of this table'}"
        )
    return name


def needs(kind: str) -> Asking:
    """The kind of question of that name."""
    return ASKED[kind]


def _distinct(table: pa.Table, column: str, asked: Aggregate, question: Question, deadline: Deadline) -> Any:
    found = pl.Series(column, answers(asked, table.column(column)))
    return _groups(table).with_columns(found).unnest(column)


def _top_k(table: pa.Table, column: str, asked: Aggregate, question: Question, deadline: Deadline) -> Any:
    whole = Aggregate(asked.name, asked.column, asked.params, {"k": question.k}, asked.inputs)
    found = pl.Series(column, answers(whole, table.column(column)))
    frame = _groups(table).with_columns(found, rank=found.list.eval(pl.int_range(1, pl.len() + 1)))
    frame = frame.filter(pl.col(column).list.len() > 0).explode(column, "rank")
    return frame.select(*_groups(table).columns, "rank", column).unnest(column)


def _quantiles(table: pa.Table, column: str, asked: Aggregate, question: Question, deadline: Deadline) -> Any:
    def rows(sketch: Any) -> list[tuple[Any, ...]]:
        return quantile_rows(sketch, question.ranks)

    return _long(table, column, asked, rows, ("q", "value", "lower", "upper"), deadline)


def _cdf(table: pa.Table, column: str, asked: Aggregate, question: Question, deadline: Deadline) -> Any:
    bounded = hasattr(asked.family.sketch_class(), "rank_bounds")

    def rows(sketch: Any) -> list[tuple[Any, ...]]:
        if not sketch.n:
            return []
        found = []
        for x in question.values:
            bounds = sketch.rank_bounds(x) if bounded else (None, None)
            found.append((x, sketch.rank(x), *bounds))
        return found

    return _long(table, column, asked, rows, ("x", "rank", "lower", "upper"), deadline)


def _frequency(table: pa.Table, column: str, asked: Aggregate, question: Question, deadline: Deadline) -> Any:
    def rows(sketch: Any) -> list[tuple[Any, ...]]:
        return [(item, sketch.estimate(item), *sketch.bounds(item)) for item in question.items]

    return _long(table, column, asked, rows, ("item", "estimate", "lower", "upper"), deadline)


def _membership(
    table: pa.Table, column: str, asked: Aggregate, question: Question, deadline: Deadline
) -> Any:
    def rows(sketch: Any) -> list[tuple[Any, ...]]:
        # An item that is there is always found; another one is found with this probability.
        return [(item, item in sketch, sketch.rate) for item in question.items]

    return _long(table, column, asked, rows, ("item", "found", "false_positives"), deadline)


def _sample(table: pa.Table, column: str, asked: Aggregate, question: Question, deadline: Deadline) -> Any:
    if not table.num_rows:
        return _groups(table)  # without an answer nothing says which fields it has
    found = pl.Series(column, answers(asked, table.column(column)))
    return _groups(table).with_columns(found).unnest(column)


def _sets(tables: Sequence[pa.Table], one: str, other: str, by: Sequence[str], apart: bool) -> pl.DataFrame:
    left, right = tables
    groups = [START, END, *by] if apart else list(by)
    found = compare(left, one, other, right, by=groups)
    if not left.num_rows and not right.num_rows:
        found = found.head(0)
    measures = [name for name in found.columns if name not in groups]
    long = [
        found.select(*groups, pl.lit(name).alias("set"), pl.col(name).alias("answer")).with_row_index("__at")
        for name in measures
    ]
    # In the order of the groups, each group's measures together.
    whole = pl.concat(long).sort("__at", maintain_order=True).drop("__at")
    return whole.unnest("answer")


def _long(
    table: pa.Table,
    column: str,
    asked: Aggregate,
    rows: Callable[[Any], Iterable[tuple[Any, ...]]],
    names: tuple[str, ...],
    deadline: Deadline,
) -> pl.DataFrame:
    """Rows of each group's sketch, below each other, beside the group's window and keys."""
    images = table.column(column)
    groups = asked.groups(table.num_rows)
    groups.merge(
        np.arange(table.num_rows), images.combine_chunks() if images.num_chunks != 1 else images.chunk(0)
    )
    found: list[tuple[Any, ...]] = []
    counts = []
    for number in range(table.num_rows):
        if number % 1_000 == 0:
            deadline.check()
        try:
            own = list(rows(groups[number]))
        except (SketchError, TypeError, ValueError) as error:
            raise BadQuestion(f"{column}: {error}") from None
        counts.append(len(own))
        found += own
    beside = _groups(table)[np.repeat(np.arange(table.num_rows), counts)]
    values = list(zip(*found)) if found else [()] * len(names)
    return beside.with_columns(_series(name, list(own)) for name, own in zip(names, values))


def _series(name: str, values: list[Any]) -> pl.Series:
    if not values:
        return pl.Series(name, [], pl.Null)
    return pl.Series(name, values, strict=False)


def _groups(table: pa.Table) -> pl.DataFrame:
    return pl.DataFrame(pl.from_arrow(table.select([START, END, *keys_of(table.schema)])))


ASKED = {
    "distinct": Asking((), _distinct, ("distinct", "distinct_set", "sliding_distinct", "cpc", "tuple")),
    "top-k": Asking(("top",), _top_k),
    "quantiles": Asking(("quantiles",), _quantiles),
    "cdf": Asking(("rank",), _cdf),
    "frequency": Asking(("estimates",), _frequency, ("frequency", "top_k")),
    "membership": Asking(("contains",), _membership),
    "sample": Asking(("values",), _sample),
    "sets": Asking((), _sets, ("distinct_set",)),
}
"""The kinds of questions about one column, by name."""
