"""Decoding with a library that reads one message at a time, so that each succeeds or fails by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from ...sketches.core.errors import StreamgaugeError
from .decode import TOMBSTONE, Decoded
from .failures import why
from .messages import Messages
from .reasons import reason_of

Read = Callable[[memoryview], Any]
Build = Callable[[list[Any]], pa.Array]

_TOGETHER = 256
"""The number of values converted to Arrow together: more would not fit in the processor's cache."""


class Misread(StreamgaugeError, ValueError):
    """Why a message can't be read, as text for its dead letter."""


def one_by_one(
    messages: Messages,
    read: Read | Sequence[Read],
    build: Build,
    finish: Callable[[pa.Array], pl.DataFrame],
) -> Decoded:
    """Rows from what `read` returns for each message, converted in groups by `build`, then by `finish`.

    There may be one `read` for each message. It and `build` may raise anything: the message concerned is
    refused, with the error in one line, or the text of `Misread`.
    """
    view = memoryview(messages.lines)  # type: ignore[arg-type]
    values: list[Any] = []
    rows: list[int] = []
    kept: list[int] = []
    arrays: list[pa.Array] = []
    refused: dict[int, str] = {}

    def gather() -> None:
        for first, part in _built(values, build, 0):
            if isinstance(part, str):
                refused[rows[first]] = part
            else:
                arrays.append(part)
                kept.extend(rows[first : first + len(part)])
        values.clear()
        rows.clear()

    spans = zip(messages.starts.tolist(), messages.ends.tolist(), messages.is_null.tolist())
    for number, ((start, end, is_null), reads) in enumerate(
        zip(spans, repeat(read) if callable(read) else read)
    ):
        if is_null:
            refused[number] = TOMBSTONE
            continue
        try:
            values.append(reads(view[start:end]))
        except BaseException as error:
            refused[number] = _reason(error)
            continue
        rows.append(number)
        if len(values) == _TOGETHER:
            gather()
    gather()
    frame = finish(pa.concat_arrays(arrays) if arrays else build([]))
    numbers = np.array(sorted(refused), np.int64)
    reasons = [refused[number] for number in numbers.tolist()]
    return Decoded(frame, np.array(kept, np.int64) if refused else None, numbers, reasons)


def _built(values: list[Any], build: Build, first: int) -> Iterator[tuple[int, pa.Array | str]]:
    """Arrays of the values, each with the number of its first, and the reasons of those that make no row."""
    if not values:
        return
    try:
        yield first, build(values)
        return
    except BaseException as error:
        reason = _reason(error)
    if len(values) == 1:
        yield first, reason
        return
    half = len(values) // 2
    yield from _built(values[:half], build, first)
    yield from _built(values[half:], build, first + half)


def _reason(error: BaseException) -> str:
    return reason_of(error) if isinstance(error, Misread) else why(error)
