"""Recordings of logs: the lines of files, plain or compressed by gzip, with the times in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice, repeat
from pathlib import Path

import polars as pl

from ...operators.definition.event_time import in_utc
from ...operators.definition.stream import Stream
from ...operators.formats.messages import Messages
from ...operators.formats.text.local_times import both_hours
from ..app import Feed, Message
from ..recordings.compressed_files import INCOMPLETE, RecordingError, opened
from ..recordings.local_clocks import LocalClocks

NOWHERE = Feed("a-recording", "localhost:9092")
"""A placeholder feed for streams that only read recordings."""

_HEAD = 65_536
_TOGETHER = 5_000
_LOOKED_AT = 40


def lines_of(path: Path) -> Iterator[bytes]:
    """Yield a file's nonempty lines. Raises `RecordingError` for an incomplete compressed file."""
    try:
        with opened(path) as file:
            for line in file:
                if stripped := line.rstrip(b"\r\n"):
                    yield stripped
    except INCOMPLETE as error:
        raise RecordingError(f"{path} can't be read to its end: {error}") from None


def first_lines(head: bytes) -> list[bytes]:
    """Return the first lines of a file from its first bytes, without the last, which may be truncated."""
    lines = head.splitlines()
    whole = lines if len(head) < _HEAD or len(lines) < 2 else lines[:-1]
    return [line for line in whole if line.strip()][:_LOOKED_AT]


def mostly(lines: list[bytes], is_one: Callable[[bytes], bool]) -> bool:
    """Whether most of the lines are of a kind."""
    return bool(lines) and 2 * sum(map(is_one, lines)) > len(lines)


def reads(stream: Stream, lines: list[bytes]) -> bool:
    """Whether a stream's decoder can read most of the lines."""
    decoded = stream.reading.kafka_source.value.decode(Messages.of(lines, timestamps=[0] * len(lines)))
    return 2 * decoded.frame.height > len(lines)


def timed(
    stream: Stream, values: Iterable[bytes], stamps: Iterable[int] | None = None, zone: str = "UTC"
) -> Iterator[Message]:
    """Yield messages with the event times that a stream reads from them.

    `stamps` are the timestamps (ms) with which they are read, if an incomplete time needs one. `zone` applies
    to times without a zone: in the repeated hour at the end of summer time, a host's time that jumps back
    means that its clock was set back.
    """
    stamps_, beside = iter(values), repeat(-1) if stamps is None else iter(stamps)
    clocks = LocalClocks()
    while chunk := list(islice(stamps_, _TOGETHER)):
        times = _times_ms(stream, chunk, list(islice(beside, len(chunk))), zone, clocks)
        for value, sent_ms in zip(chunk, times):
            yield Message(value, None, sent_ms)


def _times_ms(
    stream: Stream, values: list[bytes], stamps: list[int], zone: str, clocks: LocalClocks
) -> list[int | None]:
    rows, frame = _decoded(stream, values, stamps)
    firsts = seconds = frame["time"].dt.epoch("ms").to_list()
    first, second = both_hours(frame["time"], zone, frame["host"])
    if (first != second).fill_null(False).any():
        # A time with its own zone doesn't depend on the message's timestamp.
        options = []
        for sent in (first, second):
            whole = list(stamps)
            for row, at in zip(rows, sent.dt.epoch("ms").to_list()):
                whole[row] = stamps[row] if at is None else at
            options.append(_decoded(stream, values, whole)[1]["time"].dt.epoch("ms").to_list())
        firsts, seconds = options
    times: list[int | None] = [None] * len(values)
    for row, host, one, other in zip(rows, frame["host"].to_list(), firsts, seconds):
        times[row] = None if one is None else clocks.choose(host, one, other)
    return times


def _decoded(stream: Stream, values: list[bytes], stamps: list[int]) -> tuple[list[int], pl.DataFrame]:
    """Return the numbers of the messages with a row, and the rows' times and hosts."""
    assert stream.time is not None
    decoded = stream.reading.kafka_source.value.decode(Messages.of(values, timestamps=stamps))
    time = in_utc(decoded.frame.select(stream.time).to_series())
    host = decoded.frame["host"] if "host" in decoded.frame.columns else pl.Series([None] * len(time))
    rows = list(range(len(values))) if decoded.rows is None else decoded.rows.tolist()
    return rows, pl.DataFrame([time.alias("time"), host.cast(pl.String).alias("host")])
