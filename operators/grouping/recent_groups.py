"""The groups of recent rows, looked up by the key itself: faster than by its hash if groups are few."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from ...sketches.core.columns.columns import as_array, stored_values
from ...sketches.core.compilation.jit import inner, lean
from ...sketches.core.groups.group_numbers import frozen
from ...sketches.core.hashing.words import load64

_LG_SETS = 11
_CELL = 4
"""A cell has a window's start, two words of a key, and the group's number, −1 if it is free."""
_SET = 2 * _CELL
_LONGEST = 15
_UNKNOWN = np.int64(-1)
"""The second word of a key that doesn't fit two words."""
_FEW = 1 << 12
"""Fewer rows are not looked up: they would not pay for the memory of the cells."""
_MISSES, _PAUSE = 3, 32
"""After so many blocks in which most groups were unknown, so many blocks are not looked up."""

# Masks of the bytes of a string of n bytes in two words.
_FIRST = np.array([(1 << 8 * min(n, 8)) - 1 for n in range(_LONGEST + 1)], np.uint64)
_SECOND = np.array([(1 << 8 * max(n - 8, 0)) - 1 for n in range(_LONGEST + 1)], np.uint64)


@lean
def _pack(offsets, data, firsts, seconds):
    """Write strings of up to 15 bytes as two words, with their length in the second one's last byte."""
    last = len(data) - 16
    for i in range(len(firsts)):
        at, length = np.int64(offsets[i]), np.int64(offsets[i + 1]) - np.int64(offsets[i])
        if length > _LONGEST or at > last:
            seconds[i] = _UNKNOWN
        else:
            firsts[i] = np.int64(load64(data, at) & _FIRST[length])
            more = load64(data, at + 8) & _SECOND[length]
            seconds[i] = np.int64(more | np.uint64(length << 56))


@inner
def _set_of(start, first, second):
    """The place of the set of two cells that may have a group."""
    mixed = (np.uint64(first) * np.uint64(0x9E3779B97F4A7C15)) ^ np.uint64(second)
    mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93) + np.uint64(start)
    return np.int64(_SET * ((mixed * np.uint64(0xFF51AFD7ED558CCD)) >> np.uint64(64 - _LG_SETS)))


@inner
def _is(cells, at, start, first, second):
    return (
        (cells[at] == start)
        & (cells[at + 1] == first)
        & (cells[at + 2] == second)
        & (cells[at + 3] >= 0)
        & (second != _UNKNOWN)
    )


@lean
def _look_up(starts, firsts, seconds, cells, numbers, missed):
    """Write the groups of rows that are in the cells to `numbers`, and the others' rows to `missed`."""
    n = np.int64(0)
    for i in range(len(starts)):
        at = _set_of(starts[i], firsts[i], seconds[i])
        if not _is(cells, at, starts[i], firsts[i], seconds[i]):
            at += _CELL
            if not _is(cells, at, starts[i], firsts[i], seconds[i]):
                missed[n] = i
                n += 1
        numbers[i] = cells[at + 3]
    return n


@lean
def _note(starts, firsts, seconds, cells, numbers, missed):
    """Put the groups of missed rows into the first cell of their set, and what was there into the second."""
    for i in missed:
        at = _set_of(starts[i], firsts[i], seconds[i])
        if seconds[i] == _UNKNOWN or _is(cells, at, starts[i], firsts[i], seconds[i]):
            continue
        for word in range(at, at + _CELL):
            cells[word + _CELL] = cells[word]
        cells[at], cells[at + 1], cells[at + 2], cells[at + 3] = starts[i], firsts[i], seconds[i], numbers[i]


class RecentGroups:
    """The groups of recent rows with one key: an integer, or a string of up to 15 bytes.

    Rows whose groups it doesn't remember are passed to a function, which numbers them by their hashes.

    >>> asked = []
    >>> def number(starts, keys):
    ...     asked.append(len(starts))
    ...     return keys[0].to_numpy() + 100
    >>> recent, starts, keys = RecentGroups(), np.zeros(5_000, np.int64), pa.array(np.arange(5_000) % 5)
    >>> [recent.number(starts, [keys], number)[:6].tolist() for _ in range(2)], asked
    ([[100, 101, 102, 103, 104, 100], [100, 101, 102, 103, 104, 100]], [5000])
    """

    def __init__(self) -> None:
        self._cells: np.ndarray | None = None
        self._misses = self._pause = 0

    def number(
        self, starts: np.ndarray, keys: Sequence[pa.Array], number: Callable[..., np.ndarray]
    ) -> np.ndarray:
        """The group of each row; `number` takes starts and keys of rows, and returns their groups."""
        words = None if self._pause or len(starts) < _FEW else _words(keys)
        if words is None:
            self._pause = max(self._pause - 1, 0)
            return number(starts, keys)
        if self._cells is None:
            self._cells = np.full(_SET << _LG_SETS, -1, np.int64)
        numbers, missed = np.empty((2, len(starts)), np.int64)
        n = _look_up(frozen(starts), *words, self._cells, numbers, missed)
        if n:
            rows = missed[:n]
            numbers[rows] = number(starts[rows], [as_array(key).take(pa.array(rows)) for key in keys])
            _note(frozen(starts), *words, self._cells, numbers, rows)
        self._misses = self._misses + 1 if 2 * n > len(starts) else 0
        if self._misses == _MISSES:
            self._pause, self._misses = _PAUSE, 0
        return numbers


def _is_simple(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_integer(kind) or types.is_string(kind) or types.is_large_string(kind))


def _words(keys: Sequence[pa.Array]) -> tuple[np.ndarray, np.ndarray] | None:
    """Two words for each row's key; None for keys that have none."""
    if len(keys) != 1 or keys[0].null_count or not _is_simple(keys[0].type):
        return None
    values = stored_values(keys[0])
    if values.kind == "int64":
        return frozen(values.numbers), np.zeros(len(values), np.int64)
    firsts, seconds = np.zeros((2, len(values)), np.int64)
    _pack(frozen(values.offsets), frozen(values.data), firsts, seconds)
    return firsts, seconds
