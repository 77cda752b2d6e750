"""Merging windows into coarser ones and fewer keys, reusing earlier merges.

Ten thousand groups per minute can't be merged sixty times for each request. So merges are cached: each window
with only the requested keys and columns, and spans of 2, 4, 8 … windows that begin at a multiple of their
length. An hour then consists of a dozen of these, and only those that contain a new window are merged again.
The merge of all closed windows of a span is cached as well, so that the next request only merges open
windows. Which merges are done depends only on the windows, not on earlier requests: any process with the same
windows gives the same answers.

A cache that stores nothing serves one request: all its windows are merged at once. Answers that depend on the
order of merges (quantiles, samples) then differ within the same bounds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeVar

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from ...operators.table.merge import Accumulator, merge_tables
from ...operators.table.schema import TIME_TYPE, aggregates_of, keys_of, table_schema
from ...operators.table.windows import END, START, declared_windows, end_to_end, within
from ...operators.windows.paned import Paned
from ...operators.windows.tumbling import Tumbling
from ...sketches.core.errors import StreamgaugeError
from .cache import ResultCache
from .group_subset_merge import GroupSubset, GroupSubsetMerge, hashes_of, in_window, pieces
from .view import ServedWindow, rows_of

T = TypeVar("T")

Every = int | str | Paned
"""``"window"``: windows unchanged; ``"span"``: all in one; or larger windows, or their microseconds."""


class OutOfTime(StreamgaugeError):
    """A query exceeded its time limit."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """The time limit of a query, by the monotonic clock; None waits for ever."""

    at: float | None = None

    def check(self) -> None:
        """Raise `OutOfTime` after the limit."""
        if self.at is not None and time.monotonic() > self.at:
            raise OutOfTime


@dataclass(frozen=True, slots=True)
class Selection:
    """The requested part of each window: columns, the keys to preserve, and rows by the values of keys.

    `where` has keys with the requested values, in their own types; None selects nulls.
    """

    columns: tuple[str, ...]
    by: tuple[str, ...]
    where: tuple[tuple[str, tuple[Any, ...]], ...] = ()


def apart(schema: pa.Schema) -> bool:
    """Whether a table's windows differ for each group, or it isn't known whether they do."""
    windows = declared_windows(schema)
    return windows is None or windows.apart


class MergeCache:
    """Merges windows of one table or of several; thread-safe."""

    def __init__(self, most_bytes: int = 512 * 1024 * 1024) -> None:
        self._results = ResultCache(most_bytes)

    @property
    def for_one_request(self) -> bool:
        """Whether it stores nothing."""
        return self._results.keeps_nothing

    def table(
        self,
        schema: pa.Schema,
        windows: Sequence[ServedWindow],
        wanted: Selection,
        every: Every,
        deadline: Deadline = Deadline(),
    ) -> pa.Table:
        """The table of these windows in the requested form, ordered by start, end and partition.

        Raises `SketchError` for windows that don't fit into the requested ones or overlap, and `OutOfTime`.
        """
        return _Merging(self._results, schema, wanted, deadline).table(windows, every)

    def answered(
        self,
        schema: pa.Schema,
        windows: Sequence[ServedWindow],
        wanted: Selection,
        deadline: Deadline,
    ) -> pl.DataFrame:
        """The answers of one column over the whole span of these windows, one row per group, unordered.

        The merged sketches are answered directly, without being serialised. Raises as `table` does.
        """
        return _Merging(self._results, schema, wanted, deadline).answered(windows)

    def few(
        self,
        schema: pa.Schema,
        windows: Sequence[ServedWindow],
        wanted: Selection,
        groups: pl.DataFrame,
        deadline: Deadline,
    ) -> pa.Table:
        """The rows that `table` returns for these groups over the whole span, for tables with all keys.

        Its time depends on the number of these groups' rows, plus little for each window. `groups` has a row
        for each group, with all of its keys. Raises as `table` does.
        """
        return _Merging(self._results, schema, wanted, deadline).few(windows, groups)

    def cached(self, what: str, windows: Sequence[ServedWindow], question: Any, make: Callable[[], T]) -> T:
        """The result of `make` for these windows, computed once; `what` and `question` identify it."""
        key = what, question, tuple(window.version for window in windows)
        return self._results.get(key, make, _size)


def _size(value: Any) -> int:
    size = value.nbytes if isinstance(value, pa.Table) else value.estimated_size()
    return int(size) + 1_000


def _larger(every: Every) -> Paned:
    return every if isinstance(every, Paned) else Tumbling.of_length(int(every))


class _Merging:
    """The merging for one request."""

    def __init__(self, kept: ResultCache, schema: pa.Schema, wanted: Selection, deadline: Deadline) -> None:
        self._results = kept
        self._deadline = deadline
        self._wanted = wanted
        self._keys = keys_of(schema)
        self._windows = declared_windows(schema)
        self._apart = apart(schema)
        self._metadata = schema.metadata
        self._types = {key: schema.field(key).type for key in self._keys}
        aggregates = aggregates_of(schema)
        self._aggregates = {name: aggregates[name] for name in wanted.columns}
        self._rolled = set(wanted.by) != set(self._keys)
        kept_types = {key: self._types[key] for key in wanted.by}
        self._out = table_schema(kept_types, self._aggregates, None)

    def table(self, windows: Sequence[ServedWindow], every: Every) -> pa.Table:
        if not windows:
            return self._out.empty_table()
        if every != "window" and self._apart:
            return self._one_by_one(windows, every)
        if every == "window":
            return self._by_window(windows)
        chosen = self._chosen(windows, every)
        if every == "span":
            return self._span(chosen, chosen[0].start, max(window.end for window in chosen))
        larger = _larger(every)
        spans = [
            self._span(list(group), start, larger.first_end(start))
            for start, group in groupby(chosen, lambda window: larger.pane_start(window.start))
        ]
        return pa.concat_tables(spans)

    def answered(self, windows: Sequence[ServedWindow]) -> pl.DataFrame:
        chosen = self._chosen(windows, "span")
        key = "answered", self._wanted, tuple(window.version for window in chosen)

        def make() -> pl.DataFrame:
            column = self._wanted.columns[0]
            folded = self._accumulated(self._parts(chosen))
            frame = pl.DataFrame(pl.from_arrow(folded.keys_table()))
            answers = folded.answers(column)
            start, end = chosen[0].start, max(window.end for window in chosen)
            times = {START: start, END: end}
            beside = [
                pl.lit(at).cast(pl.Datetime("us")).dt.replace_time_zone("UTC").alias(name)
                for name, at in times.items()
            ]
            whole = (
                frame.with_columns(pl.Series(column, answers))
                if frame.width
                else pl.DataFrame({column: answers})
            )
            return whole.select(*beside, *self._wanted.by, column)

        return self._results.get(key, make, _size)

    def few(self, windows: Sequence[ServedWindow], groups: pl.DataFrame) -> pa.Table:
        chosen = self._chosen(windows, "span")
        by = list(self._wanted.by)
        some = GroupSubset(hashes_of(groups.select(by).to_arrow(compat_level=pl.CompatLevel.oldest()), by))

        def rows(window: ServedWindow, some: GroupSubset) -> pa.Table:
            self._deadline.check()
            key = "hashes", self._wanted.by, window.version
            hashes = self._results.get(
                key, lambda: hashes_of(window.table, by), lambda entry: entry[0].nbytes * 2 + 1_000
            )
            at = pa.array(some.among(hashes))
            table = self._where(window.table.select(self._out.names).take(at))
            return pa.Table.from_arrays(table.columns, schema=self._out)

        whole = GroupSubsetMerge(self._out, rows, self._results, self._wanted).merged(chosen, some)
        return in_window(whole, chosen[0].start, max(window.end for window in chosen))

    def _chosen(self, windows: Sequence[ServedWindow], every: Every) -> list[ServedWindow]:
        """The windows that contain each row of the stream once: of overlapping ones, those end to end."""
        edges = pa.table(
            {
                START: pa.array([window.start for window in windows], pa.int64()).view(TIME_TYPE),
                END: pa.array([window.end for window in windows], pa.int64()).view(TIME_TYPE),
                # Each partition may have another of a key's windows.
                "partition": pa.array([window.partition for window in windows], pa.int64()),
            }
        ).replace_schema_metadata(self._metadata)
        if every == "span":
            chosen = end_to_end(edges.append_column("at", pa.array(range(len(windows)))), ("partition",))
            return [windows[at] for at in chosen["at"].to_pylist()]
        mask = within(edges, (), _larger(every))
        return list(windows) if mask is None else [w for w, fits in zip(windows, mask) if fits]

    def _one_by_one(self, windows: Sequence[ServedWindow], every: Every) -> pa.Table:
        """Windows that differ for each group: checked row by row, and not cached."""
        tables = [self._selected(window) for window in windows]
        if every != "span":
            return merge_tables(tables, self._wanted.by, _larger(every)).select(self._out.names)
        whole = end_to_end(pa.concat_tables(tables), self._keys)
        start, end = windows[0].start, max(window.end for window in windows)
        return in_window(self._folded([whole]), start, end)

    def _by_window(self, windows: Sequence[ServedWindow]) -> pa.Table:
        tables = []
        for (start, end), group in groupby(windows, lambda window: (window.start, window.end)):
            parts = [self._leaf(window) for window in group]
            # A group's rows are all in one partition of the table topic, unless its keys are rolled up.
            if self._rolled and len(parts) > 1:
                parts = [in_window(self._folded(parts), start, end)]
            tables += parts
        return pa.concat_tables(tables)

    def _span(self, windows: Sequence[ServedWindow], start: int, end: int) -> pa.Table:
        parts = self._parts(windows)
        whole = parts[0] if len(parts) == 1 else self._cached("open", windows, lambda: self._folded(parts))
        return in_window(whole, start, end)

    def _parts(self, windows: Sequence[ServedWindow]) -> list[pa.Table]:
        """All closed windows merged into one table, followed by the open ones."""
        if self._results.keeps_nothing and len(windows) > 1:
            names = [*self._keys, *self._wanted.columns]
            rows = rows_of(windows).select(names)
            return [self._folded([self._where(rows).replace_schema_metadata(None)])]
        closed = [window for window in windows if not window.open]
        parts = [self._cached("span", closed, lambda: self._folded(self._pieces(closed)))] if closed else []
        return parts + [self._leaf(window) for window in windows if window.open]

    def _pieces(self, windows: Sequence[ServedWindow]) -> list[pa.Table]:
        """The spans of 2^n windows, at multiples of their length, that make up these."""
        unit = max(1, min(window.end - window.start for window in windows))
        numbers = np.array([window.start // unit for window in windows], np.int64)
        return [
            self._node(windows[first:last], numbers[first:last], low, size)
            for low, size, first, last in pieces(numbers)
        ]

    def _node(self, windows: Sequence[ServedWindow], numbers: np.ndarray, low: int, size: int) -> pa.Table:
        if len(windows) == 1:
            return self._leaf(windows[0])
        if size == 1:
            return self._cached("node", windows, lambda: self._folded([self._leaf(w) for w in windows]))
        half = size // 2
        cut = int(np.searchsorted(numbers, low + half))
        if cut in (0, len(windows)):
            return self._node(windows, numbers, low if cut else low + half, half)

        def both() -> pa.Table:
            left = self._node(windows[:cut], numbers[:cut], low, half)
            return self._folded([left, self._node(windows[cut:], numbers[cut:], low + half, half)])

        return self._cached("node", windows, both)

    def _leaf(self, window: ServedWindow) -> pa.Table:
        if not self._rolled and not self._wanted.where:
            return self._selected(window)
        return self._cached("window", [window], lambda: self._made(window))

    def _made(self, window: ServedWindow) -> pa.Table:
        table = self._selected(window)
        if not self._rolled:
            return table.select(self._out.names).replace_schema_metadata(self._out.metadata)
        return in_window(self._folded([table]), window.start, window.end)

    def _selected(self, window: ServedWindow) -> pa.Table:
        """A window's requested rows and columns, with all its keys if they are to be merged."""
        names = [START, END, *self._keys, *self._wanted.columns]
        table = self._where(window.table)
        if not self._rolled:
            names = self._out.names
        return table.select(names).replace_schema_metadata(self._out.metadata if not self._rolled else None)

    def _where(self, table: pa.Table) -> pa.Table:
        """The rows with the requested values of their keys."""
        for key, wanted in self._wanted.where:
            values = pa.array(wanted, self._types[key])
            table = table.filter(pc.is_in(table[key], value_set=values))
        return table

    def _folded(self, tables: Iterable[pa.Table]) -> pa.Table:
        """Merge all rows with the same keys, whatever their windows."""
        return self._accumulated(tables).table()

    def _accumulated(self, tables: Iterable[pa.Table]) -> Accumulator:
        self._deadline.check()
        folded = Accumulator(self._out)
        for table in tables:
            zeros = np.zeros(table.num_rows, np.int64)
            folded.merge_as(table, zeros, zeros + 1)
            self._deadline.check()
        return folded

    def _cached(self, what: str, windows: Sequence[ServedWindow], make: Any) -> pa.Table:
        key = what, self._wanted, tuple(window.version for window in windows)
        return self._results.get(key, make, lambda table: table.nbytes + 1_000)
