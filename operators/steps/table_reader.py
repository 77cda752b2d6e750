"""A table's topic read into memory: the whole topic first, then updates."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from ...sketches.core.lazy import pl
from ..definition.event_time import in_utc
from ..definition.sources import KafkaSource
from ..definition.tables import LookupTable
from ..formats.decode import Decoded
from ..formats.messages import Messages, from_column, texts
from ..formats.retryable_error import Unavailable
from ..kafka.read_ahead import ReadAhead
from ..kafka.reader import EARLIEST, Reader
from ..kafka.retry import Retry
from ..kafka.source import TopicPartition
from ..kafka.topics import TopicError, admin, partitions_of
from .table_rows import TableRows
from .table_versions import TableVersions

log = logging.getLogger("streamgauge.kafka")

_BATCH_MESSAGES = 200_000
_SAID = 5
"""The number of warnings about single messages, at most."""
_PAUSE_SECONDS = 0.2
_ANSWER_SECONDS = 2.0
_LOOK_SECONDS = 10.0
"""How often it is checked whether the topic has more partitions."""


def contents_of(table: LookupTable) -> TableRows | TableVersions:
    """The container for a table's rows."""
    schema = table.source.schema
    return TableVersions(schema, table.versions_us) if table.versions_us else TableRows(schema)


class TableReader:
    """One worker's copy of a table. `load` reads the whole table; after that, `refresh` keeps it current.

    `alive` is called from time to time while that takes long; if something that a decoder needs is
    unreachable, it is retried until `stopping`. Raises what `Reader` raises: `ReadError` for errors that
    can't be retried.
    """

    def __init__(
        self,
        table: LookupTable,
        alive: Callable[[], None] = lambda: None,
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self.table = table
        self._alive = alive
        self._patience = Retry(f"decode the table {table.topic}", stopping)
        self.contents = contents_of(table)
        self._reader: Reader | None = None
        self._ahead: ReadAhead | None = None
        self._ends: dict[tuple[str, int], int] = {}
        self._looked = 0.0
        self._warned = 0

    @property
    def loaded(self) -> bool:
        """Whether it has read everything that existed when it began."""
        return self._ahead is not None

    def load(self) -> None:
        """Read everything that existed at the first call. If `alive` raises, the next call continues
        there."""
        if self.loaded:
            return
        began = time.monotonic()
        if self._reader is None:
            self._reader = self._begun()
            self._ends = self._reader.end_offsets()
        self._read_to(self._reader, self._ends)
        self._looked = time.monotonic()
        self._ahead = ReadAhead(self._reader, _BATCH_MESSAGES)
        log.info(
            "the table %s has %s rows, %.0f MB, read in %.1f s",
            *(self.table.topic, len(self.contents), self.contents.size / 1e6, self._looked - began),
        )

    def catch_up(self) -> None:
        """Read everything that exists now: for occasional callers, in place of `load` and `refresh`."""
        if self._reader is None:
            self._reader, self._looked = self._begun(), time.monotonic()
        elif time.monotonic() - self._looked > _LOOK_SECONDS:
            self._looked = time.monotonic()
            positions, topic = self._reader.positions(), self.table.topic
            known = [(topic, partition) for partition in self._reader.partitions(topic)]
            if len(known) > len(positions):
                self._reader.assign({where: positions.get(where, EARLIEST) for where in known})
        self._read_to(self._reader, self._reader.end_offsets())

    def refresh(self) -> None:
        """Read what has arrived since the last call, without waiting for more."""
        assert self._reader is not None and self._ahead is not None
        while (messages := self._ahead.read(0.0)) is not None:
            self.update(messages)
        if time.monotonic() - self._looked > _LOOK_SECONDS:
            self._add_partitions()

    def update(self, messages: Messages) -> None:
        """Add messages: the latest of each key is its row, or, with versions, each is a version.

        A version that deletes its key has its message's timestamp.
        """
        keys, given = self._keys(messages)
        rows = np.full(len(messages), -1, np.int64)
        times = np.maximum(messages.timestamp, 0) * np.int64(1000)
        timeless = np.zeros(len(messages), bool)
        frames, height = [self.table.source.schema.to_frame()], 0
        with_rows = np.flatnonzero(given & ~messages.is_null)
        some = messages if len(with_rows) == len(messages) else messages.select(with_rows)
        done = 0
        for part, decoded in self._decoded(self.table.source, some):
            own = with_rows[done : done + len(part)]
            at = own if decoded.rows is None else own[decoded.rows]
            rows[at] = height + np.arange(len(at))
            frames.append(decoded.frame)
            if self.table.time is not None:
                moments = in_utc(decoded.frame.select(self.table.time).to_series())
                timeless[at] = moments.is_null().to_numpy()
                times[at] = moments.to_physical().fill_null(0).to_numpy()
            height, done = height + decoded.frame.height, done + len(part)
            for row, reason in zip(own[decoded.refused].tolist(), decoded.reasons):
                self._warn(messages, row, f"its key has no row now: {reason}")
        for row in np.flatnonzero(timeless & given)[:_SAID].tolist():
            self._warn(messages, row, "it has no event time")
        if timeless.any():
            keys = [key.filter(pl.Series(~timeless[given])) for key in keys]
            given &= ~timeless
        self.contents.update(keys, pl.concat(frames), rows[given], times[given])

    def close(self) -> None:
        """Close the connection."""
        for part in (self._ahead, self._reader):
            if part is not None:
                part.close()
        self._ahead = self._reader = None

    def _begun(self) -> Reader:
        """Start a reader of the whole topic."""
        reader = Reader(dict(self.table.source.settings), {})
        partitions = reader.partitions(self.table.topic)
        reader.assign({(self.table.topic, partition): EARLIEST for partition in partitions})
        return reader

    def _read_to(self, reader: Reader, ends: Mapping[TopicPartition, int]) -> None:
        for messages in reader.read_to(ends, _BATCH_MESSAGES):
            self.update(messages)
            self._alive()

    def _decoded(self, source: KafkaSource, messages: Messages) -> Iterator[tuple[Messages, Decoded]]:
        for part in source.decoded(messages, self._wait):
            self._patience.done()
            yield part

    def _wait(self, error: Unavailable) -> None:
        self._alive()
        self._patience.still(str(error))
        time.sleep(_PAUSE_SECONDS)

    def _keys(self, messages: Messages) -> tuple[list[pl.Series], np.ndarray]:
        """The columns of the keys, and a mask of the messages that have one."""
        source = self.table.key_source
        if source is None:
            keys, known = self._plain_keys(messages, self.table.key)
            return [keys.filter(pl.Series(known))], known
        known, frames, done = np.zeros(len(messages), bool), [source.schema.to_frame()], 0
        for part, decoded in self._decoded(source, from_column(messages, messages.key)):
            whole = decoded.frame.select(pl.all_horizontal(pl.all().is_not_null())).to_series().to_numpy()
            rows = np.arange(len(part)) if decoded.rows is None else decoded.rows
            known[done + rows[whole]] = True
            frames.append(decoded.frame.filter(pl.Series(whole)))
            refusals = [*zip(decoded.refused.tolist(), decoded.reasons)]
            refusals += [(row, "a part of its key is null") for row in rows[~whole].tolist()]
            for row, reason in refusals[:_SAID]:
                empty = messages.key[done + row].as_py() is None
                self._warn(messages, done + row, "it has no key" if empty else f"its key: {reason}")
            done += len(part)
        return pl.concat(frames).get_columns(), known

    def _plain_keys(self, messages: Messages, kind: Any) -> tuple[pl.Series, np.ndarray]:
        given = pl.Series(values=pl.from_arrow(messages.key), dtype=pl.Binary)
        keys = given if kind == pl.Binary else texts(given)
        if kind not in (pl.Binary, pl.String):
            keys = keys.cast(kind, strict=False)
        known = keys.is_not_null().to_numpy()
        for row in np.flatnonzero(~known)[:_SAID].tolist():
            bad = given[row]
            self._warn(messages, row, "it has no key" if bad is None else f"its key {bad!r} is not {kind}")
        return keys, known

    def _warn(self, messages: Messages, row: int, reason: str) -> None:
        self._warned += 1
        if self._warned <= _SAID:
            more = "; more such messages are not reported" if self._warned == _SAID else ""
            where = f"{self.table.topic}[{messages.partition[row]}] at offset {messages.offset[row]}"
            log.warning("a message of the table %s can't be used: %s%s", where, reason, more)

    def _add_partitions(self) -> None:
        """Read partitions that were added to the topic."""
        assert self._reader is not None and self._ahead is not None
        self._looked = time.monotonic()
        topic, positions = self.table.topic, self._ahead.positions()
        try:
            partitions = partitions_of(admin(self.table.source.settings), topic, _ANSWER_SECONDS)
        except TopicError as error:
            log.debug("don't know how many partitions the table %s has: %s", topic, error)
            return
        if partitions <= len(positions):
            return
        self._ahead.close()
        known = self._reader.partitions(topic)  # it may not know all of them yet
        self._reader.assign({(topic, p): positions.get((topic, p), EARLIEST) for p in known})
        self._ahead = ReadAhead(self._reader, _BATCH_MESSAGES)
