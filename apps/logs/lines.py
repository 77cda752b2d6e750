"""Recordings of logs: the lines of files, plain or packed by gzip, with the times that they hold."""

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

NOWHERE = Feed("a-recording", "localhost:9092")
"""Where streams read that are only made to read recordings."""

_HEAD = 65_536
_TOGETHER = 5_000
_LOOKED_AT = 40
_DISORDER_MS = 120_000
"""How far a line may lie behind the previous one before its clock counts as put back."""
_HOUR_MS = 3_600_000


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


def timed(
    stream: Stream, values: Iterable[bytes], stamps: Iterable[int] | None = None, zone: str = "UTC"
) -> Iterator[Message]:
    """Messages with the event times that a stream finds in them.

    `stamps` are the timestamps (ms) that they are read with, where a time needs one to be whole. `zone`
    applies to times without one: in the hour that comes twice at the end of summer time, a host's time that
    jumps back means that its clock was put back.
    """
    stamps_, beside = iter(values), repeat(-1) if stamps is None else iter(stamps)
    clocks = _Clocks()
    while chunk := list(islice(stamps_, _TOGETHER)):
        times = _times_ms(stream, chunk, list(islice(beside, len(chunk))), zone, clocks)
        for value, sent_ms in zip(chunk, times):
            yield Message(value, None, sent_ms)


class _Clocks:
    """How far the clocks of hosts have come in a recording, in milliseconds since 1970."""

    def __init__(self) -> None:
        self._by_host: dict[str | None, int] = {}
        self._latest: int | None = None

    def choose(self, host: str | None, first: int, second: int) -> int:
        """Which of two times a line has by its order; they differ in the hour that comes twice only."""
        chosen = first
        if first != second:
            before = self._by_host.get(host, self._latest)
            # Another host's lines may be hours ahead, as in files that were put together.
            goes_on = before is not None and before <= second + _HOUR_MS
            if goes_on and before is not None and first < before - _DISORDER_MS:
                chosen = second
        self._by_host[host] = max(chosen, self._by_host.get(host, chosen))
        self._latest = chosen
        return chosen


def _times_ms(
    stream: Stream, values: list[bytes], stamps: list[int], zone: str, clocks: _Clocks
) -> list[int | None]:
    rows, frame = _decoded(stream, values, stamps)
    firsts = seconds = frame["time"].dt.epoch("ms").to_list()
    first, second = both_hours(frame["time"], zone, frame["host"])
    if (first != second).fill_null(False).any():
        # A time with a zone of its own is the same whatever the message's timestamp is.
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
    """The numbers of the messages that hold a row, and when and of which host it is."""
    assert stream.time is not None
    decoded = stream.kafka_source.value.decode(Messages.of(values, timestamps=stamps))
    time = in_utc(decoded.frame.select(stream.time).to_series())
    host = decoded.frame["host"] if "host" in decoded.frame.columns else pl.Series([None] * len(time))
    rows = list(range(len(values))) if decoded.rows is None else decoded.rows.tolist()
    return rows, pl.DataFrame([time.alias("time"), host.cast(pl.String).alias("host")])
