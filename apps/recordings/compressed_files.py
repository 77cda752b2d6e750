"""Read recordings as bytes and as text, decompressed and without a byte order mark."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader, TextIOWrapper
from pathlib import Path

from ...sketches.core.errors import StreamgaugeError

INCOMPLETE = EOFError, zlib.error, gzip.BadGzipFile
"""The errors of reading a truncated or damaged compressed file."""
_BOM = b"\xef\xbb\xbf"


class RecordingError(StreamgaugeError, ValueError):
    """A file can't be replayed; the message says why."""


def opened(path: Path) -> gzip.GzipFile | BufferedReader:
    """Open the file's bytes, decompressed if it is a gzip file, after a byte order mark."""
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    stream = gzip.open(path) if packed else path.open("rb")  # noqa: SIM115
    # The next read reports that the file is incomplete.
    with suppress(*INCOMPLETE):
        if stream.peek(len(_BOM))[: len(_BOM)] == _BOM:
            stream.read(len(_BOM))
    return stream


def as_text(path: Path) -> TextIOWrapper:
    """Open the file's text; bytes that aren't UTF-8 are preserved (``surrogateescape``)."""
    return TextIOWrapper(opened(path), encoding="utf-8", errors="surrogateescape", newline="")


def suffix_of(path: Path) -> str:
    """Return a file's extension in lower case, ignoring ``.gz``.

    >>> suffix_of(Path("readings.CSV.gz"))
    '.csv'
    """
    return Path(path.name.lower().removesuffix(".gz")).suffix


@contextmanager
def whole(path: Path) -> Iterator[None]:
    """Within the block, raise `RecordingError` if a compressed file turns out to be incomplete."""
    try:
        yield
    except INCOMPLETE as error:
        raise RecordingError(
            f"{path} can't be replayed: the gzip file is incomplete or broken ({error})"
        ) from None
