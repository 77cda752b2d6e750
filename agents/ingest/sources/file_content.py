"""The bytes of a log file: a growing file, or one compressed by gzip at its rotation."""

from __future__ import annotations

import gzip
import os
import zlib
from pathlib import Path
from typing import Protocol

from ....sketches.core.errors import StreamgaugeError

PACKED = ".gz"


class Content(Protocol):
    """Bytes by their offset. `growing` says whether more may come."""

    growing: bool
    status: os.stat_result

    def read(self, offset: int, size: int) -> bytes:
        """Read at most `size` bytes; fewer at the end. Raises `Incomplete` and `OSError`."""

    def refresh(self) -> os.stat_result:
        """Return the file's current status."""

    def close(self) -> None:
        """Close the file."""


class Incomplete(StreamgaugeError, EOFError):
    """A compressed file is truncated or damaged."""


def open_content(path: Path) -> Content:
    """Open a file's bytes, decompressed if its name ends with ``.gz``. Raises `OSError`."""
    return PackedContent(path) if path.suffix == PACKED else PlainContent(path)


class PlainContent:
    """An uncompressed file, which may be renamed or deleted meanwhile."""

    growing = True

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.status = os.fstat(self._descriptor)

    def read(self, offset: int, size: int) -> bytes:
        """See `Content`."""
        return os.pread(self._descriptor, size, offset)

    def refresh(self) -> os.stat_result:
        """See `Content`."""
        self.status = os.fstat(self._descriptor)
        return self.status

    def close(self) -> None:
        """See `Content`."""
        os.close(self._descriptor)


class PackedContent:
    """The content of a gzip file, by the offsets of its decompressed bytes.

    Reading before the last position decompresses it again from the beginning.
    """

    growing = False

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._unpacked = gzip.GzipFile(fileobj=self._file)
        self.status = os.fstat(self._file.fileno())
        self._begin, self._window = 0, b""

    def read(self, offset: int, size: int) -> bytes:
        """See `Content`."""
        try:
            if self._begin <= offset <= self._begin + len(self._window):
                window = self._window[offset - self._begin :]
            else:
                self._unpacked.seek(offset)
                window = b""
            if len(window) < size:
                window += self._unpacked.read(size - len(window))
                self._begin, self._window = offset, window
            return window[:size]
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise Incomplete(str(error)) from None

    def refresh(self) -> os.stat_result:
        """See `Content`."""
        return os.fstat(self._file.fileno())

    def close(self) -> None:
        """See `Content`."""
        self._unpacked.close()
        self._file.close()
