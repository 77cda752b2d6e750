"""Rows of answers in order: only those that are shown are answered in full."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl
import pyarrow as pa

from ...operators.table.query import query
from ...operators.table.schema import END, START, keys_of
from ..question.question import BadQuestion, Question
from ..views.merge_cache import Deadline, MergeCache, Selection
from ..views.view import ServedWindow, TableView
from .top_candidates import top_candidates

_RANK = "__rank"


def ordered(table: pa.Table, question: Question, deadline: Deadline) -> pl.DataFrame:
    """The answers of a table's rows, in the question's order, limited to the requested number.

    Rows are ordered by the estimates themselves; columns without a number to order by are refused. Rows of
    equal rank stay in the table's order, and rows without an answer come last.
    """
    name = question.order.removeprefix("-")
    if not name:
        return query(table if question.limit is None else table.slice(0, question.limit))
    if name not in table.schema.names:
        raise BadQuestion(
            f"order: {name} is not a column of this answer; it has {', '.join(table.schema.names)}"
        )
    if name in (START, END, *keys_of(table.schema)):
        ranked = pl.Series(pl.from_arrow(table.column(name)))
    else:
        ranked = query(table.select([START, END, name]))[name]
        deadline.check()
    return query(table.take(_places(ranked, question).to_arrow()))


def first(
    view: TableView,
    question: Question,
    windows: Sequence[ServedWindow],
    wanted: Selection,
    rollups: MergeCache,
    deadline: Deadline,
) -> pl.DataFrame:
    """The first groups over a whole span, as `ordered` would return them from all groups.

    For all groups, or for those that can be among the first (`top_candidates`), only the column of the order
    is merged; the other columns are merged only for the first groups.
    """
    return rollups.cached(
        "first",
        windows,
        (wanted, question.order, question.limit),
        lambda: _first(view, question, windows, wanted, rollups, deadline),
    )


def _first(
    view: TableView,
    question: Question,
    windows: Sequence[ServedWindow],
    wanted: Selection,
    rollups: MergeCache,
    deadline: Deadline,
) -> pl.DataFrame:
    name, by = question.order.removeprefix("-"), list(wanted.by)
    leading = leading_groups(view, question, windows, wanted, rollups, deadline)
    if wanted.columns == (name,) and leading.height:
        return leading.select(START, END, *by, *wanted.columns)
    if not leading.height:
        return query(rollups.table(view.schema, windows, wanted, "span", deadline))
    # Sorted independently of their ranks, so that the cached merges of these groups stay valid when ranks
    # change.
    where = dict(wanted.where)
    where |= {key: tuple(leading[key].unique().sort()) for key in by}
    those = replace(wanted, where=tuple(sorted(where.items(), key=lambda pair: pair[0])))
    whole = query(rollups.table(view.schema, windows, those, "span", deadline))
    rows = leading.select(by).join(whole, on=by, how="left", nulls_equal=True, maintain_order="left")
    return rows.select(whole.columns)


def leading_groups(
    view: TableView,
    question: Question,
    windows: Sequence[ServedWindow],
    wanted: Selection,
    rollups: MergeCache,
    deadline: Deadline,
) -> pl.DataFrame:
    """The keys of the first groups over a whole span, with their answers in the order's column."""
    name, by = question.order.removeprefix("-"), list(wanted.by)
    one = replace(wanted, columns=(name,))
    answered = top_candidates(view.schema, question, windows, one, rollups, deadline)
    if answered is None:
        answered = rollups.answered(view.schema, windows, one, deadline)
    answered = answered.sort(by, nulls_last=True, maintain_order=True)
    return answered[_places(answered[name], question)]


def _places(ranked: pl.Series, question: Question) -> pl.Series:
    """The positions of the requested rows, in order."""
    if isinstance(ranked.dtype, pl.Struct):
        fields = [field.name for field in ranked.dtype.fields]
        wanted = next((field for field in ("estimate", "n", "total", "count") if field in fields), None)
        ranked = ranked if wanted is None else ranked.struct.field(wanted)
    if isinstance(ranked.dtype, pl.List | pl.Array | pl.Struct):
        name = question.order.removeprefix("-")
        raise BadQuestion(f"order: the answers of {name} have no order; name a column of numbers")
    if ranked.dtype.is_float():
        ranked = ranked.fill_nan(None)
    down = question.order.startswith("-")
    frame = pl.DataFrame({_RANK: ranked}).with_row_index("at")
    places = frame.sort(_RANK, descending=down, nulls_last=True, maintain_order=True)["at"]
    return places if question.limit is None else places.head(question.limit)
