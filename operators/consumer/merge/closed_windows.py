"""The closed windows of a run: in memory while they are few, on disk beyond; an endless run drops the
oldest.
"""

from __future__ import annotations

import pyarrow as pa

from ...table.final import is_final, with_final
from ...table.schema import START
from ...table.windows import not_covered, windows_told
from .on_disk import on_disk

MEMORY_BYTES = 64 * 1024 * 1024
"""What closed windows may take in memory; beyond, they go to a temporary file (TMPDIR says where)."""

KEPT_BYTES = 1024 * 1024 * 1024
"""What the windows of an endless run may take in memory and on disk; the oldest are dropped."""


class ClosedWindows:
    """Tables of closed windows, in the order they closed; one that comes again replaces the first.

    Sessions come many in a table; one that comes again, longer, replaces those of its keys that it covers.
    `most` is how many tables are kept; None keeps all, whatever they take.

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
        self._held = self._stored = self._added = 0
        windows = windows_told(schema)
        kind = None if windows is None else windows.kind
        self._sessions, self._loose = kind == "session", kind in ("session", "count")
        self._not_final: set[tuple[int, object]] = set()

    def add(self, partition: int, table: pa.Table) -> None:
        """Keep a window that a partition of the table topic has closed."""
        key = self._key(partition, table)
        self._drop(key)
        if self._sessions:
            for other, left in _without(self._tables, self._not_final, partition, table).items():
                self._drop(other)
                self._keep(other, left, False)
        self._keep(key, table, is_final(table))
        if self._held > self._memory_bytes:
            fresh = [key for key in self._tables if key not in self._spilled]
            self._tables |= on_disk({key: self._tables[key] for key in fresh})
            self._spilled.update(fresh)
            self._stored, self._held = self._stored + self._held, 0
        while self._most is not None and len(self._tables) > 1 and self._too_much():
            self._drop(next(iter(self._tables)))

    def table(self, filling: list[tuple[int, pa.Table]] | None = None) -> pa.Table:
        """All of them as one table, by window, with those still `filling`; what is on disk stays there."""
        found = dict(self._tables)
        for partition, table in filling or ():
            if self._sessions:
                found |= _without(found, self._not_final, partition, table)
            found[self._key(partition, table)] = table
        if not found:
            return self._schema.empty_table()
        table = pa.concat_tables(found[key] for key in sorted(found, key=lambda key: (key[1], key[0])))
        return with_final(table, not filling and not self._not_final)

    @property
    def memory_bytes(self) -> int:
        """Bytes of the tables in memory."""
        return self._held

    def _key(self, partition: int, table: pa.Table) -> tuple[int, object]:
        first = table.column(START)[0].as_py()
        self._added += 1
        # Windows without common edges that closed together need have no start of their own.
        return (partition, (first, self._added)) if self._loose else (partition, first)

    def _keep(self, key: tuple[int, object], table: pa.Table, final: bool | None) -> None:
        if table.num_rows:
            self._tables[key] = table
            self._held += table.nbytes
            if not final:
                self._not_final.add(key)

    def _too_much(self) -> bool:
        assert self._most is not None
        return len(self._tables) > self._most or self._held + self._stored > self._kept_bytes

    def _drop(self, key: tuple[int, object]) -> None:
        table = self._tables.pop(key, None)
        self._not_final.discard(key)
        if table is None:
            return
        if key in self._spilled:
            self._spilled.remove(key)
            self._stored -= table.nbytes
        else:
            self._held -= table.nbytes


def _without(
    tables: dict[tuple[int, object], pa.Table],
    chosen: set[tuple[int, object]],
    partition: int,
    later: pa.Table,
) -> dict[tuple[int, object], pa.Table]:
    """Those of the chosen tables of a partition that lose sessions to later ones, with what is left."""
    found = {}
    for key in chosen:
        if key[0] == partition and key in tables:
            kept = not_covered(tables[key], later)
            if not kept.all():
                found[key] = tables[key].filter(pa.array(kept))
    return found
