"""The closed windows of a run: in memory while they are few, on disk beyond; an endless run drops the
oldest.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pyarrow as pa

from ...table.schema import START

MEMORY_BYTES = 64 * 1024 * 1024
"""What closed windows may take in memory; beyond, they go to a temporary file (TMPDIR says where)."""

KEPT_BYTES = 1024 * 1024 * 1024
"""What the windows of an endless run may take in memory and on disk; the oldest are dropped."""


class ClosedWindows:
    """Tables of closed windows, in the order they closed; one that comes again replaces the first.

    `most` is how many are kept; None keeps all, whatever they take.

    >>> closed = ClosedWindows(pa.schema([(START, pa.int64()), ("n", pa.int64())]), most=2)
    >>> for start in (1, 2, 3, 3):
    ...     closed.add(0, pa.table({START: [start], "n": [7]}))
    >>> closed.table().to_pylist()
    [{'window_start': 2, 'n': 7}, {'window_start': 3, 'n': 7}]
    """

    def __init__(
        self,
        schema: pa.Schema,
        most: int | None,
        memory_bytes: int = MEMORY_BYTES,
        kept_bytes: int = KEPT_BYTES,
    ) -> None:
        self._schema = schema
        self._most = most
        self._memory_bytes = memory_bytes
        self._kept_bytes = kept_bytes
        self._tables: dict[tuple[int, object], pa.Table] = {}
        self._spilled: set[tuple[int, object]] = set()
        self._held = self._stored = 0

    def add(self, partition: int, table: pa.Table) -> None:
        """Keep a window that a partition of the table topic has closed."""
        key = (partition, table.column(START)[0].as_py())
        self._drop(key)
        self._tables[key] = table
        self._held += table.nbytes
        if self._held > self._memory_bytes:
            fresh = [key for key in self._tables if key not in self._spilled]
            self._tables |= _on_disk({key: self._tables[key] for key in fresh})
            self._spilled.update(fresh)
            self._stored, self._held = self._stored + self._held, 0
        while self._most is not None and len(self._tables) > 1 and self._too_much():
            self._drop(next(iter(self._tables)))

    def table(self, filling: list[tuple[int, pa.Table]] | None = None) -> pa.Table:
        """All of them as one table, by window, with those still `filling`; what is on disk stays there."""
        found = dict(self._tables)
        for partition, table in filling or ():
            found[partition, table.column(START)[0].as_py()] = table
        tables = [found[key] for key in sorted(found, key=lambda key: (key[1], key[0]))]
        return pa.concat_tables(tables) if tables else self._schema.empty_table()

    @property
    def memory_bytes(self) -> int:
        """Bytes of the tables in memory."""
        return self._held

    def _too_much(self) -> bool:
        assert self._most is not None
        return len(self._tables) > self._most or self._held + self._stored > self._kept_bytes

    def _drop(self, key: tuple[int, object]) -> None:
        table = self._tables.pop(key, None)
        if table is None:
            return
        if key in self._spilled:
            self._spilled.remove(key)
            self._stored -= table.nbytes
        else:
            self._held -= table.nbytes


def _on_disk(tables: dict[tuple[int, object], pa.Table]) -> dict[tuple[int, object], pa.Table]:
    """The same tables, mapped from a file that is removed once none of them is used any more."""
    handle, name = tempfile.mkstemp(prefix="streamgauge-windows-", suffix=".arrow")
    os.close(handle)
    schema = next(iter(tables.values())).schema
    try:
        with pa.OSFile(name, "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
            for table in tables.values():
                writer.write_batch(table.combine_chunks().to_batches()[0])
        mapped = pa.ipc.open_file(pa.memory_map(name))
        return {key: pa.Table.from_batches([mapped.get_batch(at)]) for at, key in enumerate(tables)}
    finally:
        Path(name).unlink()
