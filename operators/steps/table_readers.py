"""The tables that streams are joined with, read by one worker, and streams that find their rows in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from ..definition.row_stream import RowStream
from ..definition.tables import Lookup, LookupTable, TableJoin
from .table_reader import TableReader

S = TypeVar("S", bound=RowStream)


class TableReaders:
    """Readers of the tables of streams, one for each table, however often they are joined with it.

    `alive` and `stopping` are as in `TableReader`.
    """

    def __init__(
        self, streams: Iterable[RowStream], alive: Callable[[], None], stopping: Callable[[], bool]
    ) -> None:
        tables = {id(table): table for stream in streams for table in stream.tables}
        self._readers = [TableReader(table, alive, stopping) for table in tables.values()]

    def bound(self, stream: S) -> S:
        """The stream with its joins bound to what is read here."""
        return bound(stream, lambda table: self._reader_of(table).contents)

    @property
    def size(self) -> int:
        """Bytes of all tables."""
        return sum(reader.contents.size for reader in self._readers)

    def load(self) -> None:
        """Read all that isn't read yet, as far as it goes now."""
        for reader in self._readers:
            reader.load()

    def refresh(self) -> None:
        """Take in what has come since."""
        for reader in self._readers:
            reader.refresh()

    def close(self) -> None:
        """Let go of the connections."""
        for reader in self._readers:
            reader.close()

    def _reader_of(self, table: LookupTable) -> TableReader:
        return next(reader for reader in self._readers if reader.table is table)


def bound(stream: S, lookup: Callable[[LookupTable], Lookup]) -> S:
    """A stream whose joins find their rows where `lookup` says."""
    return stream.with_steps(lambda s: s.bound(lookup(s.table)) if isinstance(s, TableJoin) else s)
