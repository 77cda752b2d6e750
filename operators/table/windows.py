"""The windows of a table of sketches, and which of its rows may be merged.

A table's metadata declares its windows, and their kind decides which rows may be merged
(`operators.windows.table`); if the metadata was lost, as in Spark's SQL, this is derived from the rows.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa

from ...sketches.core.columns.columns import as_array
from ...sketches.core.protocol import SketchError
from ..definition.aggregate import METADATA
from ..grouping.group_index import GroupIndex
from ..windows.kinds import table_windows
from ..windows.paned import Paned
from ..windows.table import TableWindows, check_inside, moment

START, END = "window_start", "window_end"


def declared_windows(schema: pa.Schema) -> TableWindows | None:
    """The windows that a table's metadata declares; None if it declares none."""
    return _declared((schema.metadata or {}).get(METADATA, b"{}"))


def zone_of(schema: pa.Schema) -> str | None:
    """The zone by whose clock a table's windows begin; None for UTC."""
    windows = declared_windows(schema)
    return None if windows is None else windows.zone


@lru_cache(1_000)
def _declared(metadata: bytes) -> TableWindows | None:
    definition = json.loads(metadata).get("windows")
    return None if definition is None else table_windows(definition)


def windows_in(table: pa.Table) -> TableWindows | None:
    """The windows that a table's metadata declares; None if none, or if rows are in other windows."""
    windows = declared_windows(table.schema)
    if windows is None:
        return None
    starts, ends = edges(table)
    new = np.ones(len(starts), bool)  # rows of one window are mostly adjacent, and are checked once
    new[1:] = (starts[1:] != starts[:-1]) | (ends[1:] != ends[:-1])
    return windows if windows.contain(starts[new], ends[new]) else None


def edges(table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """The start and the end of each row's window (int64 microseconds)."""
    starts, ends = (as_array(table.column(name)).view(pa.int64()).to_numpy() for name in (START, END))
    return starts, ends


def within(table: pa.Table, keys: Sequence[str], larger: Paned) -> np.ndarray | None:
    """A mask of the rows that make up larger, adjacent windows, with each row of the stream in only one.

    None means all rows, as for adjacent windows; of overlapping windows, those that lie end to end are used.
    Raises `SketchError` if none do, and for windows that don't fit into the larger ones, such as a session
    over two of them.
    """
    starts, ends = edges(table)
    windows = windows_in(table)
    if windows is None or windows.apart:
        check_apart(table, keys)
    if windows is None:
        check_inside(None, starts, ends, larger)
        return None
    return windows.once_within(starts, ends, larger)


def end_to_end(table: pa.Table, keys: Sequence[str]) -> pa.Table:
    """The rows of a table that together contain each row of the stream once, over its whole span.

    Raises `SketchError` if windows overlap and don't lie end to end from the first to the last.
    """
    windows = windows_in(table)
    if windows is None or windows.apart:
        check_apart(table, keys)
    mask = None if windows is None else windows.once_in_all(*edges(table), lambda: group_numbers(table, keys))
    return table if mask is None else table.filter(pa.array(mask))


def group_numbers(table: pa.Table, keys: Sequence[str]) -> np.ndarray:
    """A number for each row, equal for rows with the same keys."""
    columns = [as_array(table.column(key)) for key in keys]
    return GroupIndex().number(np.zeros(table.num_rows, np.int64), columns)


def check_apart(table: pa.Table, keys: Sequence[str]) -> None:
    """Raise `SketchError` if different windows of one group overlap."""
    starts, ends = edges(table)
    groups = group_numbers(table, keys)
    order = np.lexsort((ends, starts, groups))
    groups, starts, ends = groups[order], starts[order], ends[order]
    same = (starts[1:] == starts[:-1]) & (ends[1:] == ends[:-1])
    at = np.flatnonzero((groups[1:] == groups[:-1]) & ~same & (starts[1:] < ends[:-1]))
    if len(at):
        one, other = (f"{moment(starts[i])} to {moment(ends[i])}" for i in (at[0], at[0] + 1))
        raise SketchError(
            f"the windows {one} and {other} of one group overlap, and the table's metadata doesn't say "
            "that they lie end to end: rows that are in both would count twice; keep only windows that don't "
            "overlap"
        )


def not_covered(table: pa.Table, later: pa.Table) -> np.ndarray:
    """A mask of the rows of a table that don't lie in a window of the same group in a later table.

    The later table's own windows of one group must not cover each other.
    """
    keys, index = table.schema.names[2 : len(table.schema) - len(_aggregates(table.schema))], GroupIndex()
    both = [later, table]
    own = [
        index.number(np.zeros(one.num_rows, np.int64), [as_array(one.column(key)) for key in keys])
        for one in both
    ]
    times = [edges(one) for one in both]
    old = np.repeat([False, True], [later.num_rows, table.num_rows])
    groups = np.concatenate(own)
    starts, ends = (np.concatenate([time[at] for time in times]) for at in (0, 1))
    order = np.lexsort((old, starts, groups))
    groups, ends, old_sorted = groups[order], ends[order], old[order]
    # The last of the later windows that begin no later, if it is of the same group.
    last = np.maximum.accumulate(np.where(old_sorted, -1, np.arange(len(order))))
    covered = (last >= 0) & old_sorted & (groups[last] == groups) & (ends[last] >= ends)
    by_row = np.empty(len(order), bool)
    by_row[order] = covered
    return ~by_row[later.num_rows :]


def _aggregates(schema: pa.Schema) -> list[str]:
    return [field.name for field in schema if field.metadata and METADATA in field.metadata]
