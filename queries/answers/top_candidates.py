"""The groups that can be among the largest of a column of sketches, known without merging all of them.

What the sketches of each window add to their union at most are numbers (`Groups.shares`), and adding numbers
up over an hour of windows takes a hundredth of the time that merging sketches does. A group whose union can
answer no more than the tenth of those that were merged is not among the first ten. The limits hold for
certain, so the answer is that of merging all groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl
import pyarrow as pa

from ...operators.definition.aggregate import Aggregate
from ...operators.definition.aggregates import sum
from ...operators.table.query import query
from ...operators.table.schema import END, START, aggregates_of, keys_of, table_schema
from ...operators.table.windows import declared_windows
from ..question.question import Question
from ..views.merge_cache import Deadline, MergeCache, Selection
from ..views.view import ServedWindow

_AT_ONCE = 5
"""So many times as many groups as are wanted are merged to begin with,"""
_LEAST = 32
"""at least so many,"""
_MOST = 8
"""and in all up to one in so many: beyond that, what is kept of merging all of them serves better."""


def top_candidates(
    schema: pa.Schema,
    question: Question,
    windows: Sequence[ServedWindow],
    wanted: Selection,
    rollups: MergeCache,
    deadline: Deadline,
) -> pl.DataFrame | None:
    """As `MergeCache.answered`, of groups among which the first of the question's order certainly are.

    None where it doesn't pay to look for them, or nothing is known of the family's unions.
    """
    (name,) = wanted.columns
    limit, aggregate = question.limit, aggregates_of(schema)[name]
    empty = aggregate.groups()
    if limit is None or not question.order.startswith("-") or set(wanted.by) != set(keys_of(schema)):
        return None
    if (shares := empty.shares()) is None:
        return None
    summed = {f"share {part}": sum(part).typed(pa.float64()) for part in shares}
    types = {key: schema.field(key).type for key in keys_of(schema)}
    sums_schema = table_schema(types, summed, declared_windows(schema))
    over = replace(wanted, columns=tuple(summed))

    def limited(some: Sequence[ServedWindow]) -> tuple[pa.Table, np.ndarray]:
        """The groups of these windows, and what their unions answer at most."""
        parts = [_shares(window, aggregate, name, sums_schema, rollups) for window in some]
        sums = rollups.table(sums_schema, parts, over, "span", deadline)
        shared = {part: sums[f"share {part}"].to_numpy() for part in shares}
        return sums.select(wanted.by), empty.union_limits(shared)

    def named(groups: pa.Table, at: np.ndarray) -> pl.DataFrame:
        return pl.DataFrame(pl.from_arrow(groups.take(at)))

    def answers(groups: pl.DataFrame) -> pl.DataFrame:
        return query(rollups.few(schema, windows, wanted, groups, deadline))

    groups, most = limited(windows)
    begun = max(_AT_ONCE * limit, _LEAST)
    if groups.num_rows <= begun:
        return None
    # Those that closed windows name: what is merged of these serves until the next window closes.
    closed = [window for window in windows if not window.open] or windows

    def likely() -> pl.DataFrame:
        those, at_most = limited(closed)
        return named(those, np.argsort(-at_most, kind="stable")[:begun])

    some = rollups.cached("likely", closed, (wanted, begun), likely)
    leading = answers(some)
    if leading.height < limit:
        return None
    least = float(np.sort(leading[name].struct.field("estimate").to_numpy())[-limit])
    able = named(groups, np.flatnonzero(most >= least))
    more = able.join(some, on=wanted.by, how="anti", nulls_equal=True)
    if more.height > groups.num_rows // _MOST:
        return None
    return pl.concat([leading, answers(more)]) if more.height else leading


def _shares(
    window: ServedWindow, aggregate: Aggregate, name: str, schema: pa.Schema, rollups: MergeCache
) -> ServedWindow:
    """The window with what its sketches add to unions in place of them, made once."""

    def make() -> pa.Table:
        groups = aggregate.groups(window.table.num_rows)
        groups.merge(np.arange(window.table.num_rows), window.table.column(name).combine_chunks())
        shares = groups.shares() or {}
        columns = [window.table.column(key) for key in (START, END, *keys_of(schema))]
        return pa.Table.from_arrays([*columns, *(pa.array(part) for part in shares.values())], schema=schema)

    table = rollups.cached("shares", [window], name, make)
    # Its own version, so that nothing merged of it is mistaken for what was merged of the window itself.
    return replace(window.with_table(table), version=-window.version)
