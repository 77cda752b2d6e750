"""Reading an archived topic: the messages of each partition in order, in batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..formats.messages import Messages, from_column
from .chain import segments, topics_of
from .segment import APPENDED, SCHEMA, ArchiveError, Segment
from .store import Store, store_of

BATCH_MESSAGES = 50_000


@dataclass(frozen=True)
class Recording:
    """A topic in an archive: its partitions' segments, whose footers have all been read and checked."""

    store: Store
    topic: str
    partitions: Mapping[int, tuple[Segment, ...]]

    @classmethod
    def open(
        cls, place: str, topic: str | None = None, options: Mapping[str, Any] | None = None
    ) -> Recording:
        """Open a topic of an archive at a folder or URL; `topic` names it if there are several.

        The folder ``topic=…`` of an archive stands for that topic alone. Raises `ArchiveError` if the archive
        or topic doesn't exist, or its files are damaged or not a chain.
        """
        head, _, last = place.rstrip("/").rpartition("/")
        if last.startswith("topic="):
            place, topic = head or ".", last.removeprefix("topic=")
        store = store_of(place, options)
        known = topics_of(store)
        if topic is None:
            if len(known) > 1:
                raise ArchiveError(
                    f"{place} holds the topics {', '.join(sorted(known))}; name one, as in "
                    f"{place.rstrip('/')}/topic={min(known)}"
                )
            topic = next(iter(known))
        if topic not in known:
            raise ArchiveError(f"{place} holds no topic {topic!r}, but {', '.join(sorted(known))}")
        return cls(store, topic, {p: tuple(segments(store, topic, p)) for p in known[topic]})

    @property
    def n_partitions(self) -> int:
        """The least number of partitions that the topic had."""
        return max(self.partitions) + 1

    @property
    def rows(self) -> int:
        """The number of messages."""
        return sum(segment.rows for chain in self.partitions.values() for segment in chain)

    def bounds(self, partition: int) -> tuple[int, int]:
        """A partition's first offset and its end; (0, 0) if it has no files."""
        chain = self.partitions.get(partition, ())
        return (chain[0].first_offset, chain[-1].next_offset) if chain else (0, 0)

    def read(
        self, partition: int, first: int = 0, following: int | None = None, limit: int = BATCH_MESSAGES
    ) -> Iterator[Messages]:
        """The messages of a partition with offsets `first` to `following` − 1, at most `limit` at once."""
        for segment in self.partitions.get(partition, ()):
            if segment.next_offset <= first:
                continue
            if following is not None and segment.first_offset >= following:
                return
            yield from self._read(segment, first, following, limit)

    def _read(self, segment: Segment, first: int, following: int | None, limit: int) -> Iterator[Messages]:
        try:
            with self.store.open(segment.path) as file:
                for messages in messages_in(file, segment, limit):
                    inside = messages.offset >= first
                    if following is not None:
                        inside &= messages.offset < following
                    if inside.any():
                        yield messages if inside.all() else messages.select(inside)
        except FileNotFoundError:
            raise ArchiveError(
                f"{segment.path} was removed while the archive was read, perhaps by retention: begin again"
            ) from None


def messages_in(file: Any, segment: Segment, limit: int = BATCH_MESSAGES) -> Iterator[Messages]:
    """The messages of a segment's file, open or in memory. Raises `ArchiveError` if it is damaged."""
    try:
        opened = pq.ParquetFile(file, page_checksum_verification=True)
        rows, reached = 0, segment.first_offset - 1
        for batch in opened.iter_batches(limit, columns=SCHEMA.names):
            messages = messages_of(batch, segment.topic, segment.partition)
            rows += len(messages)
            offsets = np.concatenate([[reached], messages.offset])
            reached = int(offsets[-1])
            if reached >= segment.next_offset or (np.diff(offsets) <= 0).any():
                raise ArchiveError(f"{segment.path} is damaged: its offsets aren't {segment.range_text}")
            yield messages
        if rows != segment.rows:
            raise ArchiveError(f"{segment.path} is damaged: {rows} of {segment.rows} rows can be read")
    except (ArchiveError, FileNotFoundError):
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise ArchiveError(f"{segment.path} is damaged: {error}") from None


Slice = tuple[Messages, np.ndarray]
"""Messages of one partition, and when each is due (ms since 1970, never decreasing)."""


def in_time(recordings: Sequence[Recording], limit: int = 20_000) -> Iterator[list[Slice]]:
    """The messages of all partitions by the time at which they were sent, each partition's in order.

    A list contains everything due up to some time, and nothing in the next one is due before. A message with
    an older timestamp than one before it in its partition is due with that one. At most `limit` messages of
    each partition are held at once.
    """
    parts = [_Loaded(one.read(partition, limit=limit)) for one in recordings for partition in one.partitions]
    while parts := [part for part in parts if part.load()]:
        # The next message of a partition is not due before the last of its loaded messages.
        horizon = min(int(part.due[-1]) for part in parts)
        yield [given for part in parts if len((given := part.until(horizon))[1])]


class _Loaded:
    """A partition's loaded messages that are not returned yet, with the times (ms) at which they are due."""

    def __init__(self, batches: Iterator[Messages]) -> None:
        self._batches = batches
        self._latest = 0
        self._messages: Messages | None = None
        self.due = np.zeros(0, np.int64)

    def load(self) -> bool:
        """Load messages if none are left; False at the end."""
        if not len(self.due):
            self._messages = next(self._batches, None)
            if self._messages is None:
                return False
            self.due = np.maximum.accumulate(np.maximum(self._messages.timestamp, self._latest))
            self._latest = int(self.due[-1])
        return True

    def until(self, horizon: int) -> Slice:
        """Return messages that are due up to a time."""
        assert self._messages is not None
        n = int(np.searchsorted(self.due, horizon, side="right"))
        given = self._messages.slice(0, n), self.due[:n]
        self._messages, self.due = self._messages.slice(n, len(self._messages)), self.due[n:]
        return given


class RecordedClock:
    """A clock that shows the time (seconds since 1970) at which the latest message was sent."""

    def __init__(self, seconds: float = 0.0) -> None:
        self._seconds = seconds

    def __call__(self) -> float:
        """The current time."""
        return self._seconds

    def advance(self, messages: Messages) -> None:
        """Advance to the latest of these messages."""
        self._seconds = max(self._seconds, int(messages.timestamp.max(initial=0)) / 1e3)


def messages_of(batch: pa.RecordBatch, topic: str, partition: int) -> Messages:
    """Columns of `SCHEMA` as messages of one partition."""
    n = batch.num_rows
    columns = {name: batch.column(name) for name in SCHEMA.names}
    types = columns["timestamp_type"].to_numpy(zero_copy_only=False)
    stamps = columns["timestamp"].cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    values = columns["value"].cast(pa.large_binary())
    bare = Messages(
        (topic,),
        np.zeros(n, np.int32),
        np.full(n, partition, np.int32),
        columns["offset"].to_numpy(zero_copy_only=False),
        np.ascontiguousarray(stamps),
        np.zeros(0, np.uint8),
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.zeros(n, bool),
        columns["key"].cast(pa.large_binary()),
        columns["headers"],
        types == APPENDED,
    )
    return from_column(bare, values)
