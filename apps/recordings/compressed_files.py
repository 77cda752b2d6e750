"""Recordings as bytes and as text: unpacked where they are packed, without a byte order mark."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader, TextIOWrapper
from pathlib import Path

from ...sketches.core.errors import StreamgaugeError

INCOMPLETE = EOFError, zlib.error, gzip.BadGzipFile
"""What reading a packed file raises that is cut off or damaged."""
_BOM = b"\xef\xbb\xbf"


class RecordingError(StreamgaugeError, ValueError):
    """A file that can't be replayed; the message says why."""


def opened(path: Path) -> gzip.GzipFile | BufferedReader:
    """The file's bytes, unpacked where it begins as gzip files do, from behind a byte order mark on."""
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    stream = gzip.open(path) if packed else path.open("rb")  # noqa: SIM115
    # The next read raises that the file is incomplete.
    with suppress(*INCOMPLETE):
        if stream.peek(len(_BOM))[: len(_BOM)] == _BOM:
            stream.read(len(_BOM))
    return stream


def as_text(path: Path) -> TextIOWrapper:
    """The file's text; what isn't UTF-8 in it stands for itself (``surrogateescape``)."""
    return TextIOWrapper(opened(path), encoding="utf-8", errors="surrogateescape", newline="")


def suffix_of(path: Path) -> str:
    """What the file's name ends with, in lower case, without that it is packed.

    >>> suffix_of(Path("readings.CSV.gz"))
    '.csv'
    """
    return Path(path.name.lower().removesuffix(".gz")).suffix


@contextmanager
def whole(path: Path) -> Iterator[None]:
    """Raise `RecordingError` where a packed file turns out to be incomplete within the block."""
    try:
        yield
    except INCOMPLETE as error:
        raise RecordingError(
            f"{path} can't be replayed: the gzip file is incomplete or broken ({error})"
        ) from None
