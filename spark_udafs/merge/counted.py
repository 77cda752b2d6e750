"""Merge count windows inside Spark: rows are sketched where the number of earlier rows is known.

Where a window ends depends on how many of a group's rows came before in its partition, and a sketch can't be
split afterwards. Tasks of Spark's source are stateless, so they forward the columns to be sketched, a
bucket's as one Arrow IPC stream, and the state of each bucket and input partition sketches them once, into
its open windows.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from ...operators.consumer.log.merger_state import LogState
from ...operators.consumer.merge.open_windows import Beginning
from ...operators.consumer.merge.partial_windows import PartialWindows
from ...operators.grouping.group_index import GroupIndex, hash_keys
from ...operators.sketching.count_rows import ByCountRows
from ...operators.sketching.delta import Delta
from ...operators.sketching.open_counts import OpenCounts, places_of, row_text
from ...operators.sketching.panes import Sketches
from ...operators.steps.row_origin import RowOrigin
from ...operators.table.schema import BEGUN, END, START, TIME_TYPE, UPTO, keys_of, with_parts
from ...operators.table.windows import edges
from ...operators.windows.count import WINDOW_ID, ByCount
from ...sketches.core.lazy import pl
from .buckets import BucketedPartials, BucketMerge, as_part, joined_parts
from .partials import Mode

_TIME, _OFFSET, _PLACE, _PARTITION = "__time", "__offset", "__place", "__partition"


class CountedRows(Sketches):
    """The columns to be sketched of the rows since the last `drain`, in order."""

    def __init__(self, schema: pa.Schema, window: ByCount, salt: int = 0) -> None:
        super().__init__(schema, salt)

    def _begin(self) -> None:
        self._tables: list[pa.Table] = []

    def __len__(self) -> int:
        return len(self._tables)

    def add(
        self,
        rows: pl.DataFrame,
        times: np.ndarray,
        place: RowOrigin | None = None,
        reached: np.ndarray | None = None,
    ) -> None:
        """See `Sketches.add`."""
        assert place is not None
        keys = [key for key in self._keys if key != WINDOW_ID]
        columns = [
            column for one in self._aggregates.values() for column in (one.column, *one.inputs.values())
        ]
        names = dict.fromkeys([*keys, *(name for name in columns if name is not None)])
        table = rows.select(list(names)).to_arrow(compat_level=pl.CompatLevel.oldest())
        numbers = {_TIME: times, _OFFSET: place.offsets, _PLACE: places_of(place.offsets)}
        for name, column in {**numbers, _PARTITION: np.full(len(times), place.partition)}.items():
            table = table.append_column(name, pa.array(column, pa.int64()))
        self._tables.append(table)

    def _table(self) -> pa.Table:
        return pa.concat_tables(self._tables)


class CountedPartials(BucketedPartials):
    """Partial rows that each hold a bucket's rows of an input partition."""

    sketches = CountedRows

    def __init__(self, schema: pa.Schema, window: ByCount) -> None:
        super().__init__(schema)
        self.merging = CountMerge(schema, window)

    def own_fields(self) -> list[pa.Field]:
        """See `BucketedPartials.own_fields`; adds the input partition."""
        return [*super().own_fields(), pa.field("__input", pa.string())]

    def batches_of(self, delta: Delta) -> Iterator[pa.RecordBatch]:
        """See `Partials.batches_of`."""
        rows = delta.table
        if rows is None:
            return
        rows = rows.combine_chunks()
        keys = [rows.column(key).combine_chunks() for key in self.keys if key != WINDOW_ID]
        buckets = (hash_keys(keys, rows.num_rows)[1] % self._buckets).astype(np.int64)
        chosen = np.unique(buckets)
        tables = [as_part(rows.filter(pa.array(buckets == bucket))) for bucket in chosen.tolist()]
        columns = {
            **{name: pa.array(np.zeros(len(chosen), np.int64)).view(TIME_TYPE) for name in (START, END)},
            "__bucket": pa.array(chosen),
            "__table": pa.array(tables, pa.binary()),
            "__input": pa.array([str(delta.input)] * len(chosen)),
        }
        yield self._batch(columns, len(chosen))

    def merged(self, rows: DataFrame, windows: list[Column], mode: Mode | None) -> DataFrame:
        """See `Partials.merged`."""
        parts = rows.select(F.col(END).alias("__timed"), "__bucket", "__input", "__table")
        return self.in_groups(parts, self.merging, mode)


class CountMerge(BucketMerge):
    """The open windows of a bucket and an input partition; emits a window when it is full."""

    by = ("__bucket", "__input")

    def __init__(self, schema: pa.Schema, window: ByCount) -> None:
        super().__init__(schema, "append", timed=False)
        self._window = window
        self._parts = with_parts(schema)
        self._of_parts = schema.remove(schema.get_field_index(WINDOW_ID))

    def fold(self, parts: Iterable[bytes], key: Any) -> pa.Table:
        """See `BucketMerge.fold`; in a batch, windows that are not full are emitted as well."""
        windows = self._windows(self._sketched(parts, key, None))
        return self._emitted(windows, key[1])

    # Spark passes the arguments by name.
    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        """Sketch a micro-batch's rows, and emit the windows that become full."""
        held = self._table.get()
        parts = [row["__table"] for row in rows]
        full, others = self.filled(parts, key, None if held is None else held[0])
        if others.num_rows:
            self._table.update((as_part(others),))
        else:
            self._table.clear()
        return iter([Row(table=as_part(full))] if full.num_rows else [])

    def filled(self, parts: Iterable[bytes], key: Any, held: bytes | None) -> tuple[pa.Table, pa.Table]:
        """Return the windows that become full, as a table of sketches, and the new state of the others."""
        before = None if held is None else joined_parts(self._parts, [held])
        windows = self._windows(self._sketched(parts, key, before))
        full = windows.column(UPTO).to_numpy() == self._window.rows
        emitted = self._emitted(windows.filter(pa.array(full)), key[1])
        return emitted, windows.filter(pa.array(~full))

    def _sketched(self, parts: Iterable[bytes], key: Any, before: pa.Table | None) -> pa.Table:
        """Return the parts of windows: the stored ones, and those of the new rows."""
        rows = pa.concat_tables([pa.ipc.open_stream(part).read_all() for part in parts]).sort_by(_PLACE)
        numbers = {name: rows.column(name).to_numpy() for name in (_TIME, _OFFSET, _PLACE, _PARTITION)}
        salt = zlib.crc32(f"{key[1]}/{key[0]}/{numbers[_OFFSET][0]}".encode())
        sketches = _PlacedRows(self.schema, self._window, salt)
        sketches.row_places = numbers[_PLACE]
        tables = [self._parts.empty_table()]
        if before is not None:
            keys = [before.column(name).combine_chunks() for name in keys_of(self._parts)]
            known = (before.column(name).to_numpy() for name in (UPTO, BEGUN))
            sketches.counts.note(OpenCounts(*hash_keys(keys, before.num_rows), *known))
            tables.append(before)
        place = RowOrigin(int(numbers[_PARTITION][0]), numbers[_OFFSET])
        frame = pl.from_arrow(rows)
        assert isinstance(frame, pl.DataFrame)
        sketches.add(frame, numbers[_TIME], place)
        return pa.concat_tables([*tables, sketches.drain().cast(self._parts)])

    def _windows(self, parts: pa.Table) -> pa.Table:
        """Merge parts into one for each window."""
        begun, upto = (parts.column(name).to_numpy() for name in (BEGUN, UPTO))
        starts, ends = edges(parts)
        keys = [parts.column(name).combine_chunks() for name in keys_of(self._parts)]
        number = GroupIndex().number(begun, keys)
        count = int(number.max()) + 1
        first, last, rows = (
            np.full(count, np.iinfo(np.int64).max),
            np.full(count, np.iinfo(np.int64).min),
            None,
        )
        np.minimum.at(first, number, starts)
        np.maximum.at(last, number, ends)
        rows, began = np.zeros(count, np.int64), np.empty(count, np.int64)
        np.maximum.at(rows, number, upto)
        began[number] = begun
        held = PartialWindows(self._of_parts, {})
        held.add({}, parts.select(self._of_parts.names), lambda: Beginning(0, LogState()), 0)
        table = held.merged(np.arange(parts.num_rows), number, first, last)
        known: Mapping[str, np.ndarray] = {BEGUN: began, UPTO: rows}
        for at, field in enumerate(self._parts):
            if field.name in known:
                table = table.add_column(at, field, pa.array(known[field.name]))
        return table.cast(self._parts)

    def _emitted(self, windows: pa.Table, where: str) -> pa.Table:
        """Convert windows to the table of sketches."""
        ids = pa.array(
            [f"{where}:{row_text(begun)}" for begun in windows.column(BEGUN).to_pylist()], pa.string()
        )
        table = windows.drop_columns([BEGUN, UPTO])
        at = self.schema.get_field_index(WINDOW_ID)
        return table.add_column(at, self.schema.field(at), ids).cast(self.schema)


class _PlacedRows(ByCountRows):
    """Rows with places assigned by a task: some of a message's rows may be in another bucket."""

    row_places: np.ndarray

    def _places(self, offsets: np.ndarray) -> np.ndarray:
        return self.row_places
