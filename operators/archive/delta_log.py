"""A Delta table over an archived topic's files: Delta's log beside them, which engines read as a table.

Commits name files together with the archive's own application transaction: for each partition, the offset up
to which its files are in the table. So any archiver that continues adds files that another one published and
didn't commit, and no file is added twice. The archive itself doesn't depend on the log.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from ...sketches.core.extras import naming_extras
from .chain import first_offsets, read_segment
from .manifest import first_kept
from .segment import SCHEMA, ArchiveError, Segment, file_name, first_offset_of
from .store import Store

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from deltalake.transaction import AddAction, RemoveAction

_FOLDER = "_delta_log"
_PARTITIONED_BY = [
    pa.field("topic", pa.string(), nullable=False),
    pa.field("partition", pa.int32(), nullable=False),
]
_TRIES = 20
"""How often a commit is retried after other archivers' commits."""


class DeltaLog:
    """The log of one topic. Raises `ArchiveError` if it can't be read or written."""

    def __init__(self, store: Store, topic: str, table: DeltaTable) -> None:
        self._store, self._topic, self._table = store, topic, table

    @classmethod
    def open(cls, store: Store, topic: str) -> DeltaLog | None:
        """The log of a topic; None if it has none. Raises `MissingExtraError` if Delta isn't installed."""
        if _FOLDER not in store.folders(f"topic={topic}"):
            return None
        with naming_extras():
            from deltalake import DeltaTable

        with _errors_named(store, topic):
            return cls(store, topic, DeltaTable(_place(store, topic)))

    @classmethod
    def create(cls, store: Store, topic: str, schema: pa.Schema = SCHEMA) -> DeltaLog:
        """A topic's log, created if missing, with the columns of its files, some of which may be new."""
        with naming_extras():
            from deltalake import DeltaTable, Schema
            from deltalake.exceptions import CommitFailedError

        place, by = _place(store, topic), [field.name for field in _PARTITIONED_BY]
        wanted = Schema.from_arrow(pa.schema([*schema, *_PARTITIONED_BY]))
        with _errors_named(store, topic):
            for _ in range(_TRIES):
                try:
                    table = DeltaTable.create(place, wanted, mode="ignore", partition_by=by)
                    known = {field.name: field for field in table.schema().fields}
                    if new := [field for field in wanted.fields if field.name not in known]:
                        table.alter.add_columns(new)
                except CommitFailedError:  # another archiver has created it, or added the columns
                    continue
                for field in wanted.fields:
                    if field.name in known and known[field.name].type != field.type:
                        raise ArchiveError(
                            f"{place}: the Delta table's column {field.name} has a different type in the "
                            "new files; archive to another folder, or go back to the earlier --decode "
                            "statements"
                        )
                return cls(store, topic, DeltaTable(place))
        raise _contended(store, topic)

    def next_offset(self, partition: int) -> int | None:
        """The offset before which a partition's files are in the table; None if none ever was."""
        version: int | None = self._table.transaction_version(_application(partition))
        return version

    def files(self, partition: int) -> set[str]:
        """The names of a partition's files that are now in the table."""
        with _errors_named(self._store, self._topic):
            self._table.update_incremental()
            actions = pa.table(self._table.get_add_actions(flatten=True))
            inside = actions.column("partition.partition").to_pylist()
            paths = actions.column("path").to_pylist()
        return {path.rpartition("/")[2] for path, number in zip(paths, inside) if number == partition}

    def catch_up(self, partition: int) -> None:
        """Add a partition's files that aren't in the table yet, and remove those that retention deleted."""
        from deltalake import CommitProperties, Transaction

        def missing() -> tuple[list[AddAction], CommitProperties] | None:
            committed = self.next_offset(partition) or 0
            offsets = [n for n in first_offsets(self._store, self._topic, partition) if n >= committed]
            added = [self._added(partition, first) for first in offsets]
            if not added:
                return None
            segment = added[-1][0]
            transaction = Transaction(_application(partition), segment.next_offset)
            return [action for _, action in added], CommitProperties(app_transactions=[transaction])

        self._commit(missing)
        if (begins := first_kept(self._store, self._topic, partition)) is not None:
            self.remove_before(partition, begins)

    def remove_before(self, partition: int, begins: int) -> None:
        """Remove files from the table that begin before an offset."""
        from deltalake import CommitProperties
        from deltalake.transaction import RemoveAction

        def old() -> tuple[list[RemoveAction], CommitProperties] | None:
            now = int(time.time() * 1000)
            offsets = [first_offset_of(name) for name in self.files(partition)]
            removed = [
                RemoveAction(
                    path=_path(partition, first),
                    data_change=True,
                    deletion_timestamp=now,
                    partition_values=self._values(partition),
                )
                for first in offsets
                if first is not None and first < begins
            ]
            return (removed, CommitProperties()) if removed else None

        self._commit(old)

    def _commit(self, actions_of: Any) -> None:
        """Commit what `actions_of` returns for the newest table; retried if another program was first."""
        from deltalake.exceptions import CommitFailedError

        with _errors_named(self._store, self._topic):
            for _ in range(_TRIES):
                self._table.update_incremental()
                if (commit := actions_of()) is None:
                    return
                actions, properties = commit
                by = [field.name for field in _PARTITIONED_BY]
                try:
                    self._table.create_write_transaction(
                        actions, "append", self._table.schema(), by, commit_properties=properties
                    )
                except CommitFailedError:
                    continue
                self._table.update_incremental()
                return
        raise _contended(self._store, self._topic)

    def _added(self, partition: int, first: int) -> tuple[Segment, AddAction]:
        from deltalake.transaction import AddAction

        segment = read_segment(self._store, self._topic, partition, first)
        with self._store.open(segment.path) as file:
            statistics = _statistics(pq.read_metadata(file))
            size = file.seek(0, 2)
        now = int(time.time() * 1000)
        path = _path(partition, first)
        return segment, AddAction(path, size, self._values(partition), now, True, statistics)

    def _values(self, partition: int) -> dict[str, str | None]:
        return {"topic": self._topic, "partition": str(partition)}


def _path(partition: int, first: int) -> str:
    """A file's path within the table."""
    return f"partition={partition}/{file_name(first)}"


def _place(store: Store, topic: str) -> str:
    return f"{store.name}/topic={topic}"


def _application(partition: int) -> str:
    return f"streamgauge.archive/{partition}"


def _contended(store: Store, topic: str) -> ArchiveError:
    return ArchiveError(
        f"{_place(store, topic)}: {_TRIES} commits to the Delta table failed, because other writers "
        "committed first; start the archiver again"
    )


@contextmanager
def _errors_named(store: Store, topic: str) -> Iterator[None]:
    from deltalake.exceptions import DeltaError

    try:
        yield
    except (DeltaError, OSError, ValueError) as error:
        if isinstance(error, ArchiveError | FileNotFoundError):
            raise
        raise ArchiveError(f"{_place(store, topic)}/{_FOLDER}: {error}") from error


def _statistics(file: pq.FileMetaData) -> str:
    """A file's statistics for the log: exact, because engines answer queries from them."""
    statistics: dict[str, Any] = {"numRecords": file.num_rows}
    names = file.schema.to_arrow_schema().names
    for name in ("offset", "timestamp"):
        groups = [file.row_group(n).column(names.index(name)).statistics for n in range(file.num_row_groups)]
        known = [one for one in groups if one is not None and one.null_count is not None]
        if not groups or len(known) < len(groups):
            continue
        statistics.setdefault("nullCount", {})[name] = sum(one.null_count for one in known)
        with_values = [one for one in known if one.num_values]
        if with_values and all(one.has_min_max for one in with_values):
            statistics.setdefault("minValues", {})[name] = _plain(min(one.min for one in with_values))
            statistics.setdefault("maxValues", {})[name] = _plain(max(one.max for one in with_values))
    return json.dumps(statistics)


def _plain(value: int | datetime) -> int | str:
    """A value in the log's form; times are in UTC, in milliseconds, as in the files.

    >>> _plain(datetime(2026, 1, 1, 0, 0, 0, 5_000))
    '2026-01-01T00:00:00.005Z'
    """
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
    return value
