"""Replay the lines of any files as messages, unchanged, paced by the times in them."""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from .batch import Batch
from .compressed_files import INCOMPLETE, RecordingError, opened

TIMES = ("time", "timestamp", "@timestamp", "ts", "at", "created_at", "event_time", "time_us", "date")
"""Fields to search for a time by default."""

_LINES_A_BATCH = 10_000
_LOOKED_AT = 20
_STDIN = Path("-")
_MS_OF_DIGITS = ((1e17, 1e-6), (1e14, 1e-3), (1e11, 1.0), (0.0, 1e3))
"""Thresholds above which numbers are nanoseconds, microseconds, milliseconds, else seconds since 1970."""


@dataclass(frozen=True)
class Lines:
    """Files of lines, plain or compressed by gzip, one after the other; ``-`` is standard input.

    `time` and `key` are paths of fields in JSON lines, such as ``commit.at``: the event time by which lines
    are due and stamped, and the key in Kafka. `speed` is a factor of the recorded speed; 0 is as fast as
    possible. Lines without a time are due with the previous line. Lines of one key go to one partition.
    """

    paths: Sequence[Path]
    time: str | None = None
    key: str | None = None
    speed: float = 1.0

    def batches(self) -> Iterator[Batch]:
        """See `Source`. Raises `RecordingError` for a file that can't be read."""
        first: float | None = None
        latest, number = 0.0, 0
        lines = self._lines()
        while chunk := list(islice(lines, _LINES_A_BATCH)):
            parsed = [_parsed(line) for line in chunk] if self.time or self.key else [None] * len(chunk)
            sent, due = np.empty(len(chunk), np.int64), np.zeros(len(chunk))
            for at, row in enumerate(parsed):
                moment = None if self.time is None else milliseconds(field_of(row, self.time))
                if moment is not None:
                    first = moment if first is None else first
                    latest = max(latest, moment)
                sent[at] = int(latest) if latest else int(datetime.now(UTC).timestamp() * 1e3)
                if self.speed and first is not None:
                    due[at] = max(latest - first, 0.0) / 1e3 / self.speed
            named = None if self.key is None else [_key(field_of(row, self.key)) for row in parsed]
            if named is None:
                keys = np.arange(number, number + len(chunk), dtype=np.int64).astype(np.uint32)
            else:
                keys = np.array([zlib.crc32(key or b"") for key in named], np.uint32)
            number += len(chunk)
            yield Batch(pa.array(chunk, pa.large_binary()), keys, sent, due, named)

    def _lines(self) -> Iterator[bytes]:
        for path in self.paths:
            try:
                with sys.stdin.buffer if path == _STDIN else opened(path) as file:
                    for line in file:
                        if stripped := line.rstrip(b"\r\n"):
                            yield stripped
            except INCOMPLETE as error:
                raise RecordingError(f"{path} can't be read to its end: {error}") from None


def time_in(path: Path) -> str | None:
    """Return the field of `TIMES` with a time in a file's first JSON lines; None without one.

    Standard input is not read.
    """
    if path == _STDIN:
        return None
    with opened(path) as file:
        rows = [_parsed(line) for line in islice(file, _LOOKED_AT)]
    known = [row for row in rows if isinstance(row, dict)]
    for name in TIMES:
        if known and all(milliseconds(row.get(name)) is not None for row in known):
            return name
    return None


def milliseconds(value: Any) -> float | None:
    """Convert a field's time to milliseconds since 1970; None if it has none.

    >>> milliseconds("2026-01-01T00:00:00Z") == milliseconds(1_767_225_600) == milliseconds(1_767_225_600_000)
    True
    >>> milliseconds("soon"), milliseconds(True), milliseconds(None)
    (None, None, None)
    """
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            try:
                moment = datetime.fromisoformat(value)
            except ValueError:
                return None
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1e3
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e20:
        return None
    return next(value * factor for least, factor in _MS_OF_DIGITS if value >= least)


def field_of(row: Any, path: str) -> Any:
    """Return the value at a path of members; None if it doesn't exist.

    >>> field_of({"commit": {"at": 7}}, "commit.at"), field_of({"commit.at": 8}, "commit.at")
    (7, 8)
    >>> field_of(3, "commit") is None
    True
    """
    if isinstance(row, dict) and path in row:
        return row[path]
    for name in path.split("."):
        if not isinstance(row, dict):
            return None
        row = row.get(name)
    return row


def _key(value: Any) -> bytes | None:
    if value is None or isinstance(value, str):
        return None if value is None else value.encode("utf-8", "replace")
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
