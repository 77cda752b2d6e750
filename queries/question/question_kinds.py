"""Answers of merged sketches, by kind of question: one row per item, rank or group.

A kind can query any family whose sketches have its methods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from ...operators.definition.aggregate import Aggregate
from ...operators.families import FAMILIES
from ...operators.table.schema import END, START, aggregates_of, keys_of
from ...operators.table.sets import compare
from ...operators.table.window_groups import answers
from ...sketches.core.answers import quantile_rows
from ...sketches.core.protocol import SketchError
from ..views.merge_cache import Deadline
from ..views.view import TableView
from .question import BadQuestion, Question, item_of


@dataclass(frozen=True, slots=True)
class QuestionKind:
    """A kind of question: the methods that a sketch needs for it, and how it is answered."""

    methods: tuple[str, ...]
    answer: Callable[..., pl.DataFrame]
    families: tuple[str, ...] = ()

    def fits(self, aggregate: Aggregate) -> bool:
        """Whether an aggregate's sketches can answer it."""
        return self.fits_family(aggregate.name)

    def fits_family(self, name: str) -> bool:
        """Whether the sketches of a family can answer it."""
        if self.families:
            return name in self.families
        line = FAMILIES[name]
        return (
            not line.exact
            and line.installed
            and all(hasattr(line.sketch_class(), method) for method in self.methods)
        )


def aggregates_of_kind(kind: QuestionKind) -> list[str]:
    """The aggregates that can answer it; stored families only if their extra is installed."""
    return [name for name, line in FAMILIES.items() if line.installed and kind.fits_family(name)]


def column_of(view: TableView, name: str, kind: str) -> str:
    """The column to query: the named one, or the only one that can answer. Raises `BadQuestion`."""
    aggregates = aggregates_of(view.schema)
    fit = [column for column, aggregate in aggregates.items() if QUESTION_KINDS[kind].fits(aggregate)]
    if not name and len(fit) == 1:
        return fit[0]
    if not name:
        which = f"set column= to one of {', '.join(fit)}" if fit else "it has no column that can answer that"
        raise BadQuestion(f"{kind} of {view.name}: {which}")
    if name not in aggregates:
        raise BadQuestion(f"column: {name} is not a column of {view.name}; it has {', '.join(aggregates)}")
    if name not in fit:
        raise BadQuestion(
            f"column: {name} is a {aggregates[name].name}, which can't answer {kind}; columns that can: "
            f"{', '.join(fit) or 'none'}"
        )
    return name


def kind_named(kind: str) -> QuestionKind:
    """The kind of question with this name."""
    return QUESTION_KINDS[kind]


def _distinct(
    table: pa.Table, column: str, aggregate: Aggregate, question: Question, deadline: Deadline
) -> Any:
    if not table.num_rows:
        return _groups(table)  # no answer, so the fields of one are unknown
    series = pl.Series(column, answers(aggregate, table.column(column)))
    return _groups(table).with_columns(series).unnest(column)


def _top_k(table: pa.Table, column: str, aggregate: Aggregate, question: Question, deadline: Deadline) -> Any:
    whole = replace(aggregate, answer={"k": question.k})
    series = pl.Series(column, answers(whole, table.column(column)))
    frame = _groups(table).with_columns(series, rank=series.list.eval(pl.int_range(1, pl.len() + 1)))
    frame = frame.filter(pl.col(column).list.len() > 0).explode(column, "rank")
    return frame.select(*_groups(table).columns, "rank", column).unnest(column)


def _quantiles(
    table: pa.Table, column: str, aggregate: Aggregate, question: Question, deadline: Deadline
) -> Any:
    def rows(sketch: Any) -> list[tuple[Any, ...]]:
        return quantile_rows(sketch, question.ranks)

    return _long(table, column, aggregate, rows, ("q", "value", "lower", "upper"), deadline)


def _cdf(table: pa.Table, column: str, aggregate: Aggregate, question: Question, deadline: Deadline) -> Any:
    bounded = hasattr(aggregate.family.sketch_class(), "rank_bounds")

    def rows(sketch: Any) -> list[tuple[Any, ...]]:
        if not sketch.n:
            return []
        points = []
        for x in question.values:
            bounds = sketch.rank_bounds(x) if bounded else (None, None)
            points.append((x, sketch.rank(x), *bounds))
        return points

    return _long(table, column, aggregate, rows, ("x", "rank", "lower", "upper"), deadline)


def _frequency(
    table: pa.Table, column: str, aggregate: Aggregate, question: Question, deadline: Deadline
) -> Any:
    def rows(sketch: Any) -> list[tuple[Any, ...]]:
        items = ((item, _value(item, sketch)) for item in question.items)
        return [(_shown(item, value), sketch.estimate(value), *sketch.bounds(value)) for item, value in items]

    return _long(table, column, aggregate, rows, ("item", "estimate", "lower", "upper"), deadline)


def _membership(
    table: pa.Table, column: str, aggregate: Aggregate, question: Question, deadline: Deadline
) -> Any:
    def rows(sketch: Any) -> list[tuple[Any, ...]]:
        # An item that occurred is always found; any other item is found with this probability.
        items = ((item, _value(item, sketch)) for item in question.items)
        return [(_shown(item, value), value in sketch, sketch.rate) for item, value in items]

    return _long(table, column, aggregate, rows, ("item", "found", "false_positives"), deadline)


def _value(item: Any, sketch: Any) -> Any:
    """An item in the form of the sketch's values."""
    kind = getattr(sketch, "kind", sketch.item_kind)
    return item_of(item, kind if kind is None else str(kind), sketch.family)


def _shown(item: Any, value: Any) -> Any:
    """An item as it was requested; a number as a number."""
    return value if isinstance(value, (int, float)) else item


def _sample(
    table: pa.Table, column: str, aggregate: Aggregate, question: Question, deadline: Deadline
) -> Any:
    if not table.num_rows:
        return _groups(table)  # without an answer, its fields are unknown
    if not table.num_rows:
        return _groups(table)  # no answer, so the fields of one are unknown
    series = pl.Series(column, answers(aggregate, table.column(column)))
    return _groups(table).with_columns(series).unnest(column)


def _sets(tables: Sequence[pa.Table], one: str, other: str, by: Sequence[str], apart: bool) -> pl.DataFrame:
    left, right = tables
    groups = [START, END, *by] if apart else list(by)
    compared = compare(left, one, other, right, by=groups)
    if not left.num_rows and not right.num_rows:
        compared = compared.head(0)
    measures = [name for name in compared.columns if name not in groups]
    long = [
        compared.select(*groups, pl.lit(name).alias("set"), pl.col(name).alias("answer")).with_row_index(
            "__at"
        )
        for name in measures
    ]
    # In the order of the groups, with each group's measures together.
    whole = pl.concat(long).sort("__at", maintain_order=True).drop("__at")
    return whole.unnest("answer")


def _long(
    table: pa.Table,
    column: str,
    aggregate: Aggregate,
    rows: Callable[[Any], Iterable[tuple[Any, ...]]],
    names: tuple[str, ...],
    deadline: Deadline,
) -> pl.DataFrame:
    """Rows for each group's sketch, one below the other, beside the group's window and keys."""
    images = table.column(column)
    groups = aggregate.groups(table.num_rows)
    groups.merge(
        np.arange(table.num_rows), images.combine_chunks() if images.num_chunks != 1 else images.chunk(0)
    )
    long_rows: list[tuple[Any, ...]] = []
    counts = []
    for number in range(table.num_rows):
        if number % 1_000 == 0:
            deadline.check()
        try:
            own = list(rows(groups[number]))
        except (SketchError, TypeError, ValueError, OverflowError) as error:
            raise BadQuestion(f"{column}: {error}") from None
        counts.append(len(own))
        long_rows += own
    beside = _groups(table)[np.repeat(np.arange(table.num_rows), counts)]
    values = list(zip(*long_rows)) if long_rows else [()] * len(names)
    return beside.with_columns(_series(name, list(own)) for name, own in zip(names, values))


def _series(name: str, values: list[Any]) -> pl.Series:
    if not values:
        return pl.Series(name, [], pl.Null)
    return pl.Series(name, values, strict=False)


def _groups(table: pa.Table) -> pl.DataFrame:
    return pl.DataFrame(pl.from_arrow(table.select([START, END, *keys_of(table.schema)])))


QUESTION_KINDS = {
    "distinct": QuestionKind((), _distinct, ("distinct", "distinct_set", "sliding_distinct", "cpc", "tuple")),
    "top-k": QuestionKind(("top",), _top_k),
    "quantiles": QuestionKind(("quantiles",), _quantiles),
    "cdf": QuestionKind(("rank",), _cdf),
    "frequency": QuestionKind(("estimates",), _frequency, ("frequency", "top_k")),
    "membership": QuestionKind(("contains",), _membership),
    "sample": QuestionKind(("values",), _sample),
    "sets": QuestionKind((), _sets, ("distinct_set",)),
}
"""The kinds of questions about one column, by name."""
