"""Rows of answers in an order: only those that are shown are answered in full."""

from __future__ import annotations

import polars as pl
import pyarrow as pa

from ..table.query import query
from ..table.schema import END, START, keys_of
from .question import BadQuestion, Question
from .rollups import Deadline

_RANK = "__rank"


def ordered(table: pa.Table, question: Question, deadline: Deadline) -> pl.DataFrame:
    """The answers of a table's rows, in the question's order, as many as it wants.

    Estimates are ordered by themselves; what has neither is refused. Rows of the same rank stay in the
    table's order, and those without an answer come last.
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
        if isinstance(ranked.dtype, pl.Struct):
            fields = [field.name for field in ranked.dtype.fields]
            wanted = next((field for field in ("estimate", "n", "total", "count") if field in fields), None)
            if wanted is None:
                raise BadQuestion(f"order: the answers of {name} have no order; name a column of numbers")
            ranked = ranked.struct.field(wanted)
    if isinstance(ranked.dtype, pl.List | pl.Array | pl.Struct):
        raise BadQuestion(f"order: the answers of {name} have no order; name a column of numbers")
    down = question.order.startswith("-")
    if ranked.dtype.is_float():
        ranked = ranked.fill_nan(None)
    frame = pl.DataFrame({_RANK: ranked}).with_row_index("at")
    wanted_rows = frame.sort(_RANK, descending=down, nulls_last=True, maintain_order=True)["at"]
    if question.limit is not None:
        wanted_rows = wanted_rows.head(question.limit)
    return query(table.take(wanted_rows.to_arrow()))
