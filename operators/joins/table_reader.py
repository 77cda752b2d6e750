"""A table's topic read into memory: whole at first, then what has come since."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

import numpy as np
import polars as pl

from ..definition.tables import Table
from ..formats.messages import Messages, texts
from ..kafka.read_ahead import ReadAhead
from ..kafka.reader import EARLIEST, Reader
from ..kafka.topics import TopicError, admin, partitions_of
from .contents import Contents

log = logging.getLogger("streamgauge.kafka")

_BATCH_MESSAGES = 200_000
_SAID = 5
"""Warnings about single messages, at most."""
_ANSWER_SECONDS = 2.0
_LOOK_SECONDS = 10.0
"""How often it is asked whether the topic has more partitions by now."""


class TableReader:
    """One worker's copy of a table. `load` reads it whole; from then on `refresh` keeps it current.

    Raises what `Reader` raises: `ReadError` for what waiting won't mend.
    """

    def __init__(self, table: Table) -> None:
        self.table = table
        self.contents = Contents(table.source.schema)
        self._reader: Reader | None = None
        self._ahead: ReadAhead | None = None
        self._looked = 0.0
        self._said = 0

    @property
    def loaded(self) -> bool:
        """Whether all has been read that was there when it began."""
        return self._ahead is not None

    def load(self, alive: Callable[[], None]) -> None:
        """Read all there is now; `alive` is called now and then, as that may take long."""
        if self.loaded:
            return
        began = time.monotonic()
        self.close()
        self._reader = Reader(dict(self.table.source.settings), {})
        partitions = self._reader.partitions(self.table.topic)
        self._reader.assign({(self.table.topic, partition): EARLIEST for partition in partitions})
        for messages in self._reader.read_to(self._reader.end_offsets(), _BATCH_MESSAGES):
            self.take(messages)
            alive()
        self._looked = time.monotonic()
        self._ahead = ReadAhead(self._reader, _BATCH_MESSAGES)
        log.info(
            "the table %s has %s rows, %.0f MB, read in %.1f s",
            *(self.table.topic, len(self.contents), self.contents.size / 1e6, self._looked - began),
        )

    def refresh(self) -> None:
        """Take in what has come since the last call, without waiting for more."""
        assert self._reader is not None and self._ahead is not None
        while (messages := self._ahead.read(0.0)) is not None:
            self.take(messages)
        if time.monotonic() - self._looked > _LOOK_SECONDS:
            self._look()

    def take(self, messages: Messages) -> None:
        """Take in messages: the latest of each key is its row."""
        keys, given = self._keys(messages)
        rows = np.full(len(messages), -1, np.int64)
        frames, height = [self.table.source.schema.to_frame()], 0
        told = np.flatnonzero(given & ~messages.is_null)
        some = messages if len(told) == len(messages) else messages.select(told)
        done = 0
        for part, decoded in self.table.source.decoded(some):
            own = told[done : done + len(part)]
            at = own if decoded.rows is None else own[decoded.rows]
            rows[at] = height + np.arange(len(at))
            frames.append(decoded.frame)
            height, done = height + decoded.frame.height, done + len(part)
            for row, reason in zip(own[decoded.refused].tolist(), decoded.reasons):
                self._warn(messages, row, f"its key has no row now: {reason}")
        self.contents.update(keys.filter(pl.Series(given)), pl.concat(frames), rows[given])

    def close(self) -> None:
        """Let go of the connection."""
        for part in (self._ahead, self._reader):
            if part is not None:
                part.close()
        self._ahead = self._reader = None

    def _keys(self, messages: Messages) -> tuple[pl.Series, np.ndarray]:
        """The keys in the table's type, and which of them are keys."""
        given = pl.Series(values=pl.from_arrow(messages.key), dtype=pl.Binary)
        kind = self.table.key
        keys = given if kind == pl.Binary else texts(given)
        if kind not in (pl.Binary, pl.String):
            keys = keys.cast(kind, strict=False)
        known = keys.is_not_null().to_numpy()
        for row in np.flatnonzero(~known)[:_SAID].tolist():
            bad = given[row]
            self._warn(messages, row, "it has no key" if bad is None else f"its key {bad!r} is not {kind}")
        return keys, known

    def _warn(self, messages: Messages, row: int, told: str) -> None:
        self._said += 1
        if self._said <= _SAID:
            more = "; more such messages are not told" if self._said == _SAID else ""
            where = f"{self.table.topic}[{messages.partition[row]}] at offset {messages.offset[row]}"
            log.warning("a message of the table %s can't be used: %s%s", where, told, more)

    def _look(self) -> None:
        """Read partitions that the topic has been given since."""
        assert self._reader is not None and self._ahead is not None
        self._looked = time.monotonic()
        topic, positions = self.table.topic, self._ahead.positions()
        try:
            partitions = partitions_of(admin(self.table.source.settings), topic, _ANSWER_SECONDS)
        except TopicError as error:
            log.debug("not told how many partitions the table %s has: %s", topic, error)
            return
        if partitions <= len(positions):
            return
        self._ahead.close()
        known = self._reader.partitions(topic)  # which may not know of all of them yet
        self._reader.assign({(topic, p): positions.get((topic, p), EARLIEST) for p in known})
        self._ahead = ReadAhead(self._reader, _BATCH_MESSAGES)
