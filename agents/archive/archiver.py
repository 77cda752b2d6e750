"""Archive topics: read their partitions, and publish a file when it is large or old enough.

This is exactly once, without transactions or committed offsets: an archiver that continues with a partition
lists its files and resumes at the end of the last one. A file is named after its first offset and can be
created only once. If two archivers have the same partition for a while, as after a long pause, one's file
stays, and the other drops its messages and continues after that file.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from ...operators.archive.chain import current_manifest, last_segment
from ...operators.archive.delta_log import DeltaLog
from ...operators.archive.manifest import Manifest, record_first, sha256_of
from ...operators.archive.segment import SCHEMA, ArchiveError, Segment, SegmentWriter, decoded_schema, folder
from ...operators.archive.store import Store
from ...operators.consumer.group.membership import Membership
from ...operators.formats.decode import Decoder
from ...operators.formats.messages import Messages
from ...operators.kafka.reader import Corrupt, PositionGone, Reader
from ...operators.kafka.source import TopicPartition
from ...operators.kafka.topics import admin, begin_offsets, end_offsets, id_of, partitions_of
from ...operators.watermarks.position import Input, inputs_of

log = logging.getLogger("streamgauge.archive")

_POLL_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class ArchiveOptions:
    """When a file is published, and what happens if messages are lost.

    A file is published once its messages' values have `size_bytes`, before compression, or `interval_seconds`
    after its first message was read, whichever is first. Unpublished files take at most `memory_bytes` in
    total, compressed: beyond that the largest is published. `start` is where a partition's archive begins if
    it has no file yet. With `skip_lost`, an archive continues after offsets that the topic's retention has
    removed before they were read; its next file records them. `corrupt` does the same for bytes on a broker
    that aren't messages. `delta` makes each topic's files a Delta table as well; an existing table is
    maintained without it.
    """

    size_bytes: int = 128 << 20
    interval_seconds: float = 600.0
    memory_bytes: int = 512 << 20
    start: Literal["earliest", "latest"] = "earliest"
    skip_lost: bool = False
    corrupt: Corrupt = "stop"
    delta: bool = False

    def __post_init__(self) -> None:
        for name in ("size_bytes", "interval_seconds", "memory_bytes"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above 0, got {getattr(self, name)}")


@dataclass(slots=True)
class ArchiveAccount:
    """An archiver's messages and files, lost offsets, and files that another archiver had published."""

    messages: int = 0
    files: int = 0
    bytes: int = 0
    lost: int = 0
    dropped_files: int = 0


@dataclass(slots=True)
class _Growing:
    """A partition's growing file, and the manifest of the files before it."""

    writer: SegmentWriter
    manifest: Manifest
    since: float | None = None
    topic_id: str = field(default="")


class Archiver:
    """Archives topics to a store.

    With a `group_id`, archivers of one group share the topics' partitions. `config` holds librdkafka's
    settings, at least ``bootstrap.servers``. `decoders`, by topic, decode values into columns beside the raw
    ones. `published` is called with each new file's `Segment`.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        topics: Collection[str],
        store: Store,
        options: ArchiveOptions = ArchiveOptions(),
        group_id: str | None = None,
        published: Callable[[Segment], object] = lambda segment: None,
        decoders: Mapping[str, Decoder] = {},
    ) -> None:
        self.account = ArchiveAccount()
        self.assigned: frozenset[Input] = frozenset()
        """The currently assigned partitions."""
        self._config, self._topics, self._store, self._options = dict(config), list(topics), store, options
        self._group_id, self._published, self._decoders = group_id, published, decoders
        self._admin = admin(self._config)
        self._growing: dict[Input, _Growing] = {}
        self._reader: Reader | None = None
        self._delta_logs: dict[str, DeltaLog | None] = {}
        # Whether the reader must be reassigned before it continues.
        self._moved = False

    def run_once(self) -> ArchiveAccount:
        """Archive the data that exists now. Raises `ArchiveError`, `ReadError`, `TopicError`."""
        inputs = self._inputs()
        ends = end_offsets(self._admin, inputs)
        try:
            self._begin(inputs)
            while left := self._left(ends):
                if self._moved:
                    self._assign()
                assert self._reader is not None
                try:
                    for messages in self._reader.read_to(left):
                        self._add(messages)
                        if self._moved:
                            break
                    else:
                        for place, end in left.items():
                            self._cut(Input(*place), end)
                except PositionGone as error:
                    self._begin_again(error)
            for where in inputs:
                self._cut(where)
        finally:
            self.close()
        return self.account

    def run(self, stop: threading.Event) -> ArchiveAccount:
        """Archive until `stop` is set. Raises what `run_once` raises."""
        assert self._group_id is not None, "a continuous run needs a group_id"
        fingerprints: dict[str, str] = {}
        member = Membership(
            self._config, self._group_id, self._topics, fingerprints, self._give_up, self._drop
        )
        try:
            member.join()
            while not stop.is_set():
                member.poll(0.0 if self.assigned else _POLL_SECONDS)
                if member.assigned != self.assigned:
                    self._begin(member.assigned)
                if not self.assigned:
                    continue
                if self._moved:
                    self._assign()
                assert self._reader is not None
                try:
                    messages = self._reader.read(timeout=_POLL_SECONDS)
                except PositionGone as error:
                    self._begin_again(error)
                    continue
                if messages is not None:
                    self._add(messages)
                self._cut_old()
            for where in list(self._growing):
                self._cut(where, self._position(where))
        finally:
            self.close()
            member.close()
        return self.account

    def close(self) -> None:
        """Close the connection; unpublished messages are dropped."""
        self._growing.clear()
        self.assigned = frozenset()
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _left(self, ends: Mapping[Input, int]) -> dict[TopicPartition, int]:
        """Return the partitions that are not archived up to their ends."""
        return {where: end for where, end in ends.items() if self._next_offset(where) < end}

    def _inputs(self) -> list[Input]:
        return inputs_of({topic: partitions_of(self._admin, topic) for topic in self._topics})

    def _begin(self, inputs: Collection[Input]) -> None:
        """Archive exactly these partitions; new ones resume where their files end."""
        self._drop(set(self._growing) - set(inputs))
        new = [where for where in inputs if where not in self._growing]
        if new:
            first = begin_offsets(self._admin, new)
            last = end_offsets(self._admin, new)
            ids = {topic: id_of(self._admin, topic) for topic in {where.topic for where in new}}
            for where in new:
                self._growing[where] = self._chained(where, first[where], last[where], ids[where.topic])
                self._commit(where)
        self.assigned, self._moved = frozenset(inputs), True

    def _begin_again(self, error: PositionGone) -> None:
        """Publish held messages and check again where partitions begin, after retention overtook the
        reader."""
        log.warning("%s", error)
        inputs = self.assigned
        for where in list(self._growing):
            self._cut(where)
        self._growing.clear()
        self._begin(inputs)

    def _chained(self, where: Input, first: int, end: int, topic_id: str) -> _Growing:
        """Begin the next file of a partition whose topic has the offsets from `first` to `end` − 1."""
        self._store.remove_drafts(folder(*where))
        last = last_segment(self._store, *where)
        if last is None:
            wanted = end if self._options.start == "latest" else first
            begin = record_first(self._store, *where, wanted)
            last = Segment(*where, begin, begin, 0, topic_id)
        if last.topic_id and topic_id and last.topic_id != topic_id:
            raise ArchiveError(
                f"the topic {where.topic!r} was deleted and recreated since {last.path} was archived: "
                "its new offsets would be mixed with the old ones; archive it to another folder"
            )
        if last.next_offset > end:
            raise ArchiveError(
                f"{self._store.name} holds {where} up to offset {last.next_offset - 1}, and the topic ends "
                f"before {end}: is it another cluster's topic of that name? Archive it to another folder"
            )
        writer = self._writer(where, last.next_offset, topic_id)
        if last.next_offset < first:
            if not self._options.skip_lost:
                raise ArchiveError(
                    f"the offsets {last.next_offset} to {first - 1} of {where} are gone from the topic, and "
                    "were not archived; to continue without them and record the gap, use --skip-lost"
                )
            log.warning("the offsets %d to %d of %s are lost", last.next_offset, first - 1, where)
            writer.skip(last.next_offset, first)
        return _Growing(writer, self._manifest(where), topic_id=topic_id)

    def _manifest(self, where: Input) -> Manifest:
        """Return the manifest of the published files; write it now if an archiver died before doing so."""
        manifest = current_manifest(self._store, *where)
        if manifest.files:
            manifest.write(self._store)
        return manifest

    def _assign(self) -> None:
        offsets: dict[TopicPartition, int] = {where: self._next_offset(where) for where in self.assigned}
        if self._reader is None:
            self._reader = Reader(self._config, offsets, headers=True, corrupt=self._options.corrupt)
        else:
            self._reader.assign(offsets)
        self._moved = False

    def _add(self, messages: Messages) -> None:
        if (broken := messages.broken) is not None:
            growing = self._growing[Input(broken.topic, broken.partition)]
            growing.writer.skip(broken.first, broken.next)
            growing.since = growing.since or time.monotonic()
            return
        for low, high in messages.runs():
            part = messages.slice(low, high)
            where = Input(*part.topic_partition(0))
            while len(part):
                if self._moved:
                    # Another archiver has published what was dropped here, or part of it, so the following
                    # messages may not continue that file. Reassign the reader, which returns them again.
                    return
                growing = self._growing[where]
                fits = self._fitting(growing.writer, part)
                growing.writer.add(part.slice(0, fits))
                growing.since = growing.since or time.monotonic()
                part = part.slice(fits, len(part))
                if growing.writer.size >= self._options.size_bytes or len(part):
                    self._cut(where)
        while sum(one.writer.held_bytes for one in self._growing.values()) > self._options.memory_bytes:
            self._cut(max(self._growing, key=lambda where: self._growing[where].writer.held_bytes))

    def _fitting(self, writer: SegmentWriter, messages: Messages) -> int:
        """Return how many messages, at least one, go into a file before it is large enough."""
        sizes = np.cumsum(messages.ends - messages.starts)
        return 1 + int(np.searchsorted(sizes[:-1], self._options.size_bytes - writer.size))

    def _cut_old(self) -> None:
        now = time.monotonic()
        for where, growing in self._growing.items():
            if growing.since is not None and now - growing.since >= self._options.interval_seconds:
                self._cut(where, self._position(where))

    def _next_offset(self, where: Input) -> int:
        return self._growing[where].writer.next_offset

    def _position(self, where: Input) -> int:
        """Return the offset up to which a partition has been read."""
        if self._reader is None or self._moved:
            return self._next_offset(where)
        return self._reader.positions().get(where, self._next_offset(where))

    def _cut(self, where: Input, next_offset: int | None = None) -> None:
        """Publish a partition's file, unless empty, and begin the next."""
        growing = self._growing[where]
        writer = growing.writer
        if writer.is_empty:
            if next_offset is not None:
                writer.next_offset = max(writer.next_offset, next_offset)
            return
        if growing.topic_id and id_of(self._admin, where.topic) != growing.topic_id:
            raise ArchiveError(
                f"the topic {where.topic!r} was deleted and recreated while it was archived; messages read "
                f"since offset {writer.first_offset} are discarded. Archive the new topic to another folder"
            )
        segment, data = writer.finish(next_offset, growing.manifest.sha256)
        last = last_segment(self._store, *where)
        ours = last is None or last.next_offset == segment.first_offset
        if ours and self._store.create(segment.path, data):
            self.account.messages += segment.rows
            self.account.files += 1
            self.account.bytes += data.size
            self.account.lost += sum(following - first for first, following in segment.lost)
            following = segment.next_offset
            manifest = growing.manifest.after(segment, sha256_of(data))
            manifest.write(self._store)
            self._commit(where)
            self._published(segment)
        else:
            last = last_segment(self._store, *where)
            assert last is not None
            log.warning("another archiver has published %s; continuing after it", last.range_text)
            self.account.dropped_files += 1
            following, self._moved = last.next_offset, True
            manifest = self._manifest(where)
        following_writer = self._writer(where, following, growing.topic_id)
        self._growing[where] = _Growing(following_writer, manifest, topic_id=growing.topic_id)

    def _commit(self, where: Input) -> None:
        """Add a partition's files to the topic's Delta table, if it has one."""
        topic = where.topic
        if topic not in self._delta_logs:
            decoder = self._decoders.get(topic)
            schema = SCHEMA if decoder is None else decoded_schema(decoder)
            log = DeltaLog.open(self._store, topic)
            if self._options.delta or log is not None:
                log = DeltaLog.create(self._store, topic, schema)
            self._delta_logs[topic] = log
        if (known := self._delta_logs[topic]) is not None:
            known.catch_up(where.partition)

    def _writer(self, where: Input, first_offset: int, topic_id: str) -> SegmentWriter:
        return SegmentWriter(*where, first_offset, topic_id, self._decoders.get(where.topic))

    def _give_up(self, inputs: list[Input]) -> None:
        """Publish held messages of partitions that other archivers get next."""
        for where in inputs:
            if where in self._growing:
                self._cut(where, self._position(where))
        self._drop(inputs)

    def _drop(self, inputs: Iterable[Input]) -> None:
        """Discard held messages of partitions that others have."""
        for where in inputs:
            self._growing.pop(where, None)
        self.assigned -= set(inputs)
        self._moved = True
