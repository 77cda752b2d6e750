"""Recordings of websockets: one frame per line, possibly after the time at which it was received.

A line such as ``1618677817.06: {"type":"match",…}`` or ``wss://… <- 1618677817.06: {…}`` is a frame after its
time. A frame that is a list becomes one message per event. Anything else is passed on unchanged, and becomes
a dead letter. Binary frames, which some programs write as Python literals (``b'…'``), are decompressed if
they are compressed with gzip.
"""

from __future__ import annotations

import ast
import json
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from ..app import Message, Settings
from ..recordings.compressed_files import opened

_BEFORE = re.compile(rb"^(?:\w+://\S+ (?:<->|<-|->) )?(\d{9,}(?:\.\d+)?): (?=[\[{]|b['\"])")
_NUMBER = re.compile(r"(-?)(\d+)(?:\.(\d+))?")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_GZIP = b"\x1f\x8b"
_MOST = 1 << 24
"""The maximum size of a frame after decompression, in bytes."""

SymbolAndTime = Callable[[Any], tuple[Any, Any]]
"""Returns the raw symbol and time of an event."""


def captured(
    symbol_and_time: SymbolAndTime, apart: bool = True
) -> Callable[[Path, Settings], Iterator[Message]]:
    """Read a recording's messages, keyed by symbol and timed by when they were received, or else by their own
    time.

    A frame that is a list becomes one message per event, unless `apart` is False.
    """

    def messages(path: Path, settings: Settings) -> Iterator[Message]:
        with opened(path) as file:
            for line in file:
                received, frame = _split(line.strip())
                if not frame:
                    continue
                for value, event in _events(frame, apart):
                    symbol, at = symbol_and_time(event)
                    key = None if symbol is None else str(symbol).encode()
                    yield Message(value, key, received if received is not None else sent_ms(at))

    return messages


def holds(head: bytes, wanted: Callable[[Any], bool], apart: bool = True) -> bool:
    """Whether one of the events at a file's beginning is wanted."""
    lines = head.split(b"\n")
    return any(
        wanted(event)
        for line in (lines[:-1] if len(lines) > 1 else lines)
        for _, event in _events(frame_of(line.strip()), apart)
    )


def frame_of(line: bytes) -> bytes:
    """Strip the time of receipt from a line.

    >>> frame_of(b'1618677817.06: {"type":"match"}')
    b'{"type":"match"}'
    """
    return _split(line)[1]


def sent_ms(at: Any) -> int | None:
    """Convert ISO 8601 text or a number since 1970 to milliseconds.

    >>> sent_ms("2021-04-17T16:43:37.089723Z"), sent_ms(1618677817089), sent_ms("soon")
    (1618677817089, 1618677817089, None)
    """
    us = microseconds_of(at)
    return None if us is None else us // 1_000


def microseconds_of(at: Any) -> int | None:
    """Convert ISO 8601 text, or s, ms, µs or ns since 1970 (told apart by size), to microseconds.

    >>> microseconds_of("2021-04-17T16:43:37.089723Z"), microseconds_of("1618677817.5"), microseconds_of(True)
    (1618677817089723, 1618677817500000, None)
    """
    if isinstance(at, bool):
        return None
    match = _NUMBER.fullmatch(format(at, "f") if isinstance(at, float) else str(at))
    if match is not None:
        sign, whole, part = match.groups(default="")
        # 11 digits or fewer are seconds, and each unit has three more.
        unit = min(max(0, (len(whole) - 9) // 3), 3)
        return int(f"{sign}{int(whole + part[:6].ljust(6, '0')) // 1000**unit}")
    try:
        moment = datetime.fromisoformat(str(at))
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(microseconds=1)


def unpacked(frame: bytes) -> bytes:
    """Decompress a frame if it is gzip. Raises `ValueError` for a broken one or one larger than 16 MB.

    >>> import gzip
    >>> unpacked(gzip.compress(b"{}")), unpacked(b"{}")
    (b'{}', b'{}')
    """
    if not frame.startswith(_GZIP):
        return frame
    try:
        unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
        plain = unpacker.decompress(frame, _MOST)
    except zlib.error as error:
        raise ValueError(f"packed by gzip, and broken: {error}") from None
    if not unpacker.eof:
        raise ValueError("packed by gzip, and cut off or larger than 16 MB")
    return plain


def _split(line: bytes) -> tuple[int | None, bytes]:
    """Split a line into the time of receipt (ms), if there is one, and the frame."""
    match = _BEFORE.match(line)
    received, frame = (int(float(match[1]) * 1000), line[match.end() :]) if match else (None, line)
    if frame.startswith((b"b'", b'b"')):
        # A literal that can't be parsed is not a frame.
        with suppress(ValueError, SyntaxError, AttributeError):
            frame = unpacked(ast.literal_eval(frame.decode("ascii")))
    return received, frame


def _events(frame: bytes, apart: bool) -> Iterator[tuple[bytes, Any]]:
    """Return the events of a frame, as bytes and parsed."""
    try:
        parsed = json.loads(frame)
    except ValueError:
        yield frame, None
        return
    if not isinstance(parsed, list) or not apart:
        yield frame, parsed
        return
    for one in parsed:
        yield json.dumps(one, separators=(",", ":"), ensure_ascii=False).encode(), one
