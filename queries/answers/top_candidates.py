"""The groups that can be among the largest in a column of sketches, found without merging all groups.

The most that each window's sketches can add to their union is a number (`Groups.shares`), and adding numbers
over an hour of windows takes a hundredth of the time of merging sketches. A group whose union can't exceed
the tenth of the merged groups is not among the first ten. These limits always hold, so the answer equals that
of merging all groups.
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
"""At first, this many times the requested number of groups are merged,"""
_LEAST = 32
"""but at least this many,"""
_MOST = 8
"""and in total at most one in this many groups; beyond that, merging all with the cache is faster."""


def top_candidates(
    schema: pa.Schema,
    question: Question,
    windows: Sequence[ServedWindow],
    wanted: Selection,
    rollups: MergeCache,
    deadline: Deadline,
) -> pl.DataFrame | None:
    """Like `MergeCache.answered`, for groups that certainly include the first in the question's order.

    None if it doesn't pay to look for them, or if nothing is known about unions of the family.
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
        """The groups of these windows, and the most that their unions can answer."""
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
    # The groups found by closed windows: their merges can be reused until the next window closes.
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
    """The window with the most that its sketches add to unions, in place of the sketches; computed once."""

    def make() -> pa.Table:
        groups = aggregate.groups(window.table.num_rows)
        groups.merge(np.arange(window.table.num_rows), window.table.column(name).combine_chunks())
        shares = groups.shares() or {}
        columns = [window.table.column(key) for key in (START, END, *keys_of(schema))]
        return pa.Table.from_arrays([*columns, *(pa.array(part) for part in shares.values())], schema=schema)

    table = rollups.cached("shares", [window], name, make)
    # Its own version, so that its merges are not confused with merges of the window itself.
    return replace(window.with_table(table), version=-window.version)
