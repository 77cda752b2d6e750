"""Recordings of logs: the lines of files, plain or packed by gzip, with the times that they hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice, repeat
from pathlib import Path

from ...operators.definition.event_time import in_utc
from ...operators.definition.stream import Stream
from ...operators.formats.messages import Messages
from ..app import Feed, Message
from ..recordings.compressed_files import INCOMPLETE, RecordingError, opened

NOWHERE = Feed("a-recording", "localhost:9092")
"""Where streams read that are only made to read recordings."""

_HEAD = 65_536
_TOGETHER = 5_000
_LOOKED_AT = 40


def lines_of(path: Path) -> Iterator[bytes]:
    """The lines of a file that aren't empty. Raises `RecordingError` for a packed one that is incomplete."""
    try:
        with opened(path) as file:
            for line in file:
                if stripped := line.rstrip(b"\r\n"):
                    yield stripped
    except INCOMPLETE as error:
        raise RecordingError(f"{path} can't be read to its end: {error}") from None


def first_lines(head: bytes) -> list[bytes]:
    """The first lines of a file, from its first bytes; the last may be cut off and is left out."""
    lines = head.splitlines()
    whole = lines if len(head) < _HEAD or len(lines) < 2 else lines[:-1]
    return [line for line in whole if line.strip()][:_LOOKED_AT]


def mostly(lines: list[bytes], is_one: Callable[[bytes], bool]) -> bool:
    """Whether most of some lines are of a kind."""
    return bool(lines) and 2 * sum(map(is_one, lines)) > len(lines)


def reads(stream: Stream, lines: list[bytes]) -> bool:
    """Whether a stream's decoder reads most of some lines."""
    decoded = stream.kafka_source.value.decode(Messages.of(lines, timestamps=[0] * len(lines)))
    return 2 * decoded.frame.height > len(lines)


def timed(stream: Stream, values: Iterable[bytes], stamps: Iterable[int] | None = None) -> Iterator[Message]:
    """Messages with the event times that a stream finds in them.

    `stamps` are the timestamps (ms) that they are read with, where a time needs one to be whole.
    """
    stamps_, beside = iter(values), repeat(-1) if stamps is None else iter(stamps)
    while chunk := list(islice(stamps_, _TOGETHER)):
        for value, sent_ms in zip(chunk, _times_ms(stream, chunk, list(islice(beside, len(chunk))))):
            yield Message(value, None, sent_ms)


def _times_ms(stream: Stream, values: list[bytes], stamps: list[int]) -> list[int | None]:
    assert stream.time is not None
    decoded = stream.kafka_source.value.decode(Messages.of(values, timestamps=stamps))
    times: list[int | None] = [None] * len(values)
    rows = range(len(values)) if decoded.rows is None else decoded.rows.tolist()
    for row, time in zip(rows, in_utc(decoded.frame.select(stream.time).to_series()).dt.epoch("ms")):
        times[row] = time
    return times
