"""A write-ahead log in files between a source and a sink, on disk before a source gets its acknowledgement.

A segment is a file of records, each a frame of 16 bytes (a magic number, the payload's length and CRC-32C,
the number of messages) and the payload, a batch encoded by `_encode`. A segment begins with the positions of
all sources, and a record carries the positions of its batch: so the newest segment has the sources'
positions, and a message is in the log exactly if its source's position is. The sink's position is part of the
sink's own commit.
"""

from __future__ import annotations

import errno
import fcntl
import json
import logging
import os
import struct
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import crc32c
import numpy as np

from ....operators.kafka.retry import Stopped
from ....operators.whole_file import sync
from ..batch import Batch, DeadLine, Headers, IngestError, Positions
from ..component import Delivered, Place

log = logging.getLogger("streamgauge.ingest")

_FRAME = struct.Struct("<IIII")
_MAGIC = 0x53475731
_SEGMENT_BYTES = 64 * 1024 * 1024
_CHECK_SECONDS = 0.1
_READER = "log"
"""The part of a sink's positions with the position in this log."""


@dataclass(frozen=True, kw_only=True)
class WriteAheadLog:
    """A folder with at most about `max_bytes` of messages; by default one named after the channel.

    While it, or the disk, is full, sources wait.
    """

    folder: str = ""
    max_bytes: int = 1024 * 1024 * 1024

    def __post_init__(self) -> None:
        if self.max_bytes < 1:
            raise ValueError(f"max_bytes must be an integer ≥ 1, got {self.max_bytes}")

    def open(self, name: str, place: Place) -> FileChannel:
        """See `ChannelSettings`."""
        folder = Path(self.folder) if self.folder else place.folder / place.agent / "channels" / name
        return FileChannel(folder, self.max_bytes, place)


class FileChannel:
    """A `Channel` in a folder, for one agent at a time. Raises `IngestError` if it can't be used."""

    durable = True

    def __init__(self, folder: Path, max_bytes: int, place: Place) -> None:
        self.folder, self._max_bytes, self._place = folder, max_bytes, place
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise IngestError(f"the channel's folder {folder} can't be used: {error.strerror}") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            raise IngestError(
                f"another agent uses the channel's folder {folder}; give one another folder"
            ) from None
        self.changed = threading.Condition()
        self.positions: dict[str, dict[str, Any]] = {}
        self.held = self.held_before = 0
        self.lost: Mapping[str, int] = {}
        self._file = -1
        try:
            self._recover()
        except BaseException:
            self.close()
            raise

    def _recover(self) -> None:
        """Cut off records that a crash left half-written, and read the sources' positions."""
        numbers = self.segments()
        if numbers:
            last = numbers[-1]
            end = 0
            for record in self.records(last, 0, torn=True):
                end = record.end
                _merge(self.positions, record.positions)
            path = self.path(last)
            if end < path.stat().st_size:
                log.warning("%s: the last record was incomplete and is dropped", path)
                os.truncate(path, end)
            if end:
                self._file, self._number = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC), last
                self.synced = (last, end)
                self._written = end
                return
            path.unlink()
            if len(numbers) > 1:
                # It was just begun, so the previous segment has the positions.
                return self._recover()
        # After a folder was emptied, segment numbers must not repeat ones that a sink has seen.
        self._begin(numbers[-1] + 1 if numbers else int(time.time()))

    def _begin(self, number: int) -> None:
        """Begin a new segment with all positions."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        path = self.path(number)
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        os.ftruncate(self._file, 0)
        self._number, self._written = number, 0
        self._append(_encode(None, self.positions), 0)
        os.fsync(self._file)
        sync(self.folder)
        self.synced = (number, self._written)

    # Writing

    def write(self, owner: str, batch: Batch) -> None:
        """Append a batch, once there is room for it."""
        own = {owner: dict(batch.positions)} if batch.positions else {}
        payload = _encode(batch, own)
        self._wait_for_room(len(payload))
        while True:
            with self.changed:
                try:
                    if self._written > _SEGMENT_BYTES:
                        self.sync()
                        self._begin(self._number + 1)
                    self._append(payload, len(batch) + len(batch.dead))
                    _merge(self.positions, own)
                    return
                except OSError as error:
                    if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                        raise IngestError(
                            f"{self.path(self._number)} can't be written: {error.strerror}"
                        ) from None
                    why = error.strerror
            self._wait_for_disk(why)

    def _append(self, payload: bytes, count: int) -> None:
        frame = _FRAME.pack(_MAGIC, len(payload), crc32c.crc32c(payload), count)
        data = memoryview(frame + payload)
        try:
            done = 0
            while done < len(data):
                done += os.write(self._file, data[done:])
        except OSError:
            os.ftruncate(self._file, self._written)
            raise
        self._written += len(data)
        self.held += count

    def _wait_for_room(self, size: int) -> None:
        with self.changed:
            while self.held and self.bytes_kept() + size > self._max_bytes:
                if self._place.stopping():
                    raise Stopped(f"stopped while the channel {self.folder} was full")
                self.changed.wait(_CHECK_SECONDS)

    def _wait_for_disk(self, why: str | None) -> None:
        log.warning("the channel %s waits: %s", self.folder, why)
        if self._place.stopping():
            raise Stopped(f"stopped while the disk of {self.folder} was full")
        time.sleep(_CHECK_SECONDS * 5)

    def sync(self) -> None:
        """Make everything written durable."""
        with self.changed:
            os.fsync(self._file)
            self.synced = (self._number, self._written)
            self.changed.notify_all()

    # Reading

    def segments(self) -> list[int]:
        """Return the numbers of the existing segments."""
        return sorted(int(path.stem) for path in self.folder.glob("*.wal") if path.stem.isdigit())

    def path(self, number: int) -> Path:
        """Return a segment's file."""
        return self.folder / f"{number:012}.wal"

    def bytes_kept(self) -> int:
        """Return the size of all segments."""
        return sum(self.path(number).stat().st_size for number in self.segments())

    def records(self, number: int, offset: int, torn: bool = False) -> Iterator[_Record]:
        """Yield the records of a segment from an offset on.

        Raises `IngestError` for a damaged record; with `torn`, the last one may be half-written.
        """
        path = self.path(number)
        with path.open("rb") as file:
            file.seek(offset)
            size = path.stat().st_size
            while offset < size:
                frame = file.read(_FRAME.size)
                whole = len(frame) == _FRAME.size
                magic, length, crc, count = _FRAME.unpack(frame) if whole else (0, 0, 0, 0)
                payload = file.read(length) if magic == _MAGIC else b""
                if magic != _MAGIC or len(payload) != length or crc32c.crc32c(payload) != crc:
                    # Nothing can follow the record that was being written.
                    if torn and (
                        not whole or offset + _FRAME.size + length >= size or not frame.strip(b"\0")
                    ):
                        return
                    raise IngestError(
                        f"{path} is damaged at byte {offset}: restore it, or delete the file to "
                        "continue without its messages"
                    )
                end = offset + _FRAME.size + length
                yield _decode(payload, count, offset, end)
                offset = end

    def drop_before(self, number: int) -> None:
        """Delete segments that were delivered."""
        with self.changed:
            for old in self.segments():
                if old < number:
                    self.path(old).unlink()
            self.changed.notify_all()

    def sink(self, place: Place) -> _Entrance:
        """See `Channel`."""
        return _Entrance(self, place.owner)

    def source(self, place: Place, positions: Positions) -> _Exit:
        """See `Channel`."""
        return _Exit(self, positions)

    def close(self) -> None:
        """See `Channel`."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        os.close(self._lock)


class _Entrance:
    def __init__(self, channel: FileChannel, owner: str) -> None:
        self._channel, self._owner = channel, owner
        self.positions: Positions = channel.positions.get(owner, {})

    def write(self, batch: Batch) -> None:
        """See `Sink`."""
        self._channel.write(self._owner, batch)

    def commit(self, batches: Sequence[Batch]) -> Delivered:
        """See `Sink`."""
        self._channel.sync()
        return Delivered(sum(map(len, batches)), sum(len(batch.dead) for batch in batches))

    def close(self) -> None:
        """See `Sink`."""


class _Exit:
    waited_for = finite = False

    def __init__(self, channel: FileChannel, positions: Positions) -> None:
        self._channel = channel
        place = positions.get(_READER) or {}
        numbers = channel.segments()
        self._at = (int(place.get("segment", numbers[0])), int(place.get("offset", 0)))
        if self._at[0] < numbers[0]:
            self._at = (numbers[0], 0)
        if self._at > channel.synced:
            raise IngestError(
                f"the channel {channel.folder} ends before the position already delivered from it, so it "
                "was replaced by an older copy; to send all of it again, give the agent another name"
            )
        held = 0
        for number in numbers:
            if number >= self._at[0]:
                records = channel.records(number, self._at[1] if number == self._at[0] else 0)
                held += sum(record.count for record in records)
        channel.held = channel.held_before = held
        channel.drop_before(self._at[0])
        self._records: Iterator[_Record] = iter(())

    @property
    def ended(self) -> bool:
        """See `Source`."""
        return self._at >= self._channel.synced

    def read(self, seconds: float) -> Batch | None:
        """See `Source`."""
        deadline = time.monotonic() + seconds
        while True:
            with self._channel.changed:
                if self._at >= self._channel.synced:
                    left = deadline - time.monotonic()
                    if left <= 0:
                        return None
                    self._channel.changed.wait(left)
                synced = self._channel.synced
            if self._at < synced and (batch := self._next(synced)) is not None:
                return batch

    def _next(self, synced: tuple[int, int]) -> Batch | None:
        number, _ = self._at
        if not self._channel.path(number).exists():  # it was damaged and deleted
            self._at = (min(one for one in self._channel.segments() if one > number), 0)
            return None
        record = next(self._records, None)
        if record is None:
            self._records = self._channel.records(*self._at)
            record = next(self._records, None)
        if record is None:
            self._at = (number + 1, 0)
            self._records = iter(())
            return None
        if (number, record.end) > synced:
            self._records = iter(())
            return None
        self._at = (number, record.end)
        if record.batch is None:
            return None
        at = {"segment": number, "offset": record.end}
        channel, count = self._channel, record.count

        def acknowledged() -> None:
            with channel.changed:
                channel.held -= count
            channel.drop_before(number)

        fields = {**record.batch, "positions": {_READER: at}, "acknowledged": acknowledged}
        return Batch(**fields)

    def close(self) -> None:
        """See `Source`."""


@dataclass(frozen=True, slots=True)
class _Record:
    """A record: the fields of its batch, if any, and the positions that it carries, by owner."""

    batch: dict[str, Any] | None
    positions: Mapping[str, Mapping[str, Any]]
    count: int
    end: int


def _encode(batch: Batch | None, positions: Mapping[str, Any]) -> bytes:
    """Encode a record: the length and JSON of everything but bytes; then the lengths of all messages, keys
    and
    dead lines; then their bytes.
    """
    if batch is None:
        meta: dict[str, Any] = {"positions": positions}
        return _joined(meta, [])
    keys = [] if batch.keys is None else [key or b"" for key in batch.keys]
    meta = {
        "positions": positions,
        "messages": len(batch),
        "stream": batch.stream,
        "null_keys": None if batch.keys is None else [at for at, key in enumerate(batch.keys) if key is None],
        "headers": _texts(batch.headers),
        "own_headers": batch.own_headers and [_texts(headers) for headers in batch.own_headers],
        "timestamp_ms": stamps if isinstance(stamps := batch.timestamp_ms, int) else stamps.tolist(),
        "nulls": None if batch.nulls is None else np.flatnonzero(batch.nulls).tolist(),
        "dead": [line.reason for line in batch.dead],
    }
    return _joined(meta, [*batch.values(), *keys, *(line.value for line in batch.dead)])


def _texts(headers: Headers) -> list[list[str | None]]:
    """Headers for JSON, which holds no bytes."""
    return [[name, None if value is None else value.decode("latin-1")] for name, value in headers]


def _headers(texts: Sequence[Sequence[Any]]) -> Headers:
    return [(name, None if text is None else text.encode("latin-1")) for name, text in texts]


def _joined(meta: Mapping[str, Any], values: Sequence[bytes]) -> bytes:
    text = json.dumps(meta).encode()
    lengths = np.fromiter(map(len, values), np.uint32, len(values))
    return b"".join([struct.pack("<II", len(text), len(values)), text, lengths.tobytes(), *values])


def _decode(payload: bytes, count: int, begin: int, end: int) -> _Record:
    size, number = struct.unpack_from("<II", payload)
    meta = json.loads(payload[8 : 8 + size])
    lengths = np.frombuffer(payload, np.uint32, number, 8 + size).astype(np.int64)
    data = np.frombuffer(payload, np.uint8, offset=8 + size + 4 * number)
    if "messages" not in meta:
        return _Record(None, meta["positions"], count, end)
    starts = np.cumsum(lengths) - lengths
    messages = meta["messages"]

    def value(at: int) -> bytes:
        return data[int(starts[at]) : int(starts[at] + lengths[at])].tobytes()

    keys: list[bytes | None] | None = None
    after = messages
    if meta["null_keys"] is not None:
        gone = set(meta["null_keys"])
        keys = [None if at in gone else value(messages + at) for at in range(messages)]
        after = 2 * messages
    batch = {
        "data": data,
        "starts": starts[:messages],
        "lengths": lengths[:messages],
        "stream": meta["stream"],
        "keys": keys,
        "headers": _headers(meta["headers"]),
        "own_headers": meta["own_headers"] and [_headers(texts) for texts in meta["own_headers"]],
        "timestamp_ms": stamps if isinstance(stamps := meta["timestamp_ms"], int) else np.array(stamps),
        "nulls": None if meta["nulls"] is None else np.isin(np.arange(messages), meta["nulls"]),
        "dead": [DeadLine(reason, value(after + at)) for at, reason in enumerate(meta["dead"])],
    }
    return _Record(batch, meta["positions"], count, end)


def _merge(positions: dict[str, dict[str, Any]], changed: Mapping[str, Mapping[str, Any]]) -> None:
    for owner, parts in changed.items():
        own = positions.setdefault(owner, {})
        for part, position in parts.items():
            if position is None:
                own.pop(part, None)
            else:
                own[part] = position
