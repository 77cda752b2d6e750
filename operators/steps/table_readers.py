"""Reading the tables that streams are joined with, in one worker, and binding streams to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from ..definition.row_stream import RowStream
from ..definition.tables import Lookup, LookupTable, TableJoin
from .table_reader import TableReader

S = TypeVar("S", bound=RowStream)


class TableReaders:
    """Readers of streams' tables, one for each table, however many joins use it.

    `alive` and `stopping` are as in `TableReader`.
    """

    def __init__(
        self, streams: Iterable[RowStream], alive: Callable[[], None], stopping: Callable[[], bool]
    ) -> None:
        tables = {id(table): table for stream in streams for table in stream.reading.tables}
        self._readers = [TableReader(table, alive, stopping) for table in tables.values()]

    def bound(self, stream: S) -> S:
        """The stream with its joins bound to these tables."""
        return bound(stream, lambda table: self._reader_of(table).contents)

    @property
    def size(self) -> int:
        """The bytes of all tables."""
        return sum(reader.contents.size for reader in self._readers)

    def load(self) -> None:
        """Read all tables that aren't loaded yet, up to their current ends."""
        for reader in self._readers:
            reader.load()

    def refresh(self) -> None:
        """Read what has arrived since."""
        for reader in self._readers:
            reader.refresh()

    def close(self) -> None:
        """Close the connections."""
        for reader in self._readers:
            reader.close()

    def _reader_of(self, table: LookupTable) -> TableReader:
        return next(reader for reader in self._readers if reader.table is table)


def bound(stream: S, lookup: Callable[[LookupTable], Lookup]) -> S:
    """The stream with its joins bound to the tables that `lookup` returns."""
    return stream.reading.with_steps(lambda s: s.bound(lookup(s.table)) if isinstance(s, TableJoin) else s)
