"""A file of lines, written at least once: for trials, and for uses that don't need Kafka."""

from __future__ import annotations

import errno
import logging
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ....operators.kafka.retry import Stopped
from ..batch import Batch, IngestError
from ..component import Delivered, Place
from ..local_positions import LocalPositions

log = logging.getLogger("streamgauge.ingest")

_PAUSE_SECONDS = 0.5


@dataclass(frozen=True, kw_only=True)
class LineFile:
    """Messages are appended to the file `path`, one per line; dead letters to the same name with ``.dead``.

    The bytes are on disk before the source's position is stored. An agent that is killed in between writes
    the last lines again.
    """

    path: str

    def __post_init__(self) -> None:
        if not self.path:
            raise ValueError("path must name a file, got ''")

    def open(self, place: Place) -> FileSink:
        """See `SinkSettings`."""
        return FileSink(Path(self.path), place)


class FileSink:
    """A `Sink` that appends to a file. Raises `IngestError` for a file that can't be written."""

    def __init__(self, path: Path, place: Place) -> None:
        self._path, self._place = path, place
        self._kept = LocalPositions(place.folder, place.agent, place.source)
        self.positions = self._kept.positions
        try:
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise IngestError(f"{path} can't be written: {error.strerror}") from None

    def write(self, batch: Batch) -> None:
        """See `Sink`."""
        if len(batch):
            self._append(self._file, self._path, lines(batch))
        if batch.dead:
            path = self._path.with_name(self._path.name + ".dead")
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            try:
                text = b"".join(line.reason.encode() + b": " + line.value + b"\n" for line in batch.dead)
                self._append(descriptor, path, text)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def commit(self, batches: Sequence[Batch]) -> Delivered:
        """See `Sink`."""
        os.fsync(self._file)
        for batch in batches:
            if batch.positions:
                self._kept.keep(batch.positions)
        return Delivered(sum(map(len, batches)), sum(len(batch.dead) for batch in batches))

    def close(self) -> None:
        """See `Sink`."""
        os.close(self._file)

    def _append(self, descriptor: int, path: Path, text: bytes) -> None:
        """Write all bytes, waiting until the disk has room for them."""
        begin, warned = os.fstat(descriptor).st_size, False
        while True:
            try:
                view = memoryview(text)
                while view:
                    view = view[os.write(descriptor, view) :]
                return
            except OSError as error:
                if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                    raise IngestError(f"{path} can't be written: {error.strerror}") from None
                os.ftruncate(descriptor, begin)
                if not warned:
                    log.warning("%s waits: %s", path, error.strerror)
                    warned = True
            if self._place.stopping():
                raise Stopped(f"stopped while the disk of {path} was full")
            time.sleep(_PAUSE_SECONDS)


def lines(batch: Batch) -> bytes:
    r"""Return a batch's messages, each with a newline.

    >>> lines(Batch.of([b"one", b"two"]))
    b'one\ntwo\n'
    """
    return b"\n".join(batch.values()) + b"\n"
