"""How a string is identified, and where its bytes are stored.

A string is identified by two words. For a string of up to 15 bytes, the words contain the string: the bytes,
padded with zeros, and its length in the topmost byte, so that equal words are equal strings. For a longer
one, they contain a hash and the length, with a topmost byte of 255, and its bytes are at `place` in an arena,
after an int32 length; these are compared.
"""

from __future__ import annotations

import numpy as np

from ..core.compilation.jit import inner, lean
from ..core.hashing.words import load32, load64, store32
from .store import LONG

SHORT = 15
"""The number of bytes that a string's two words can contain."""

_LONG_TEXT = np.uint64(0xFF00000000000000)
_SIZE = np.uint64(0x00FFFFFFFFFFFFFF)


def _masks(first: int) -> np.ndarray:
    """Return by length which bits of the 8 bytes from `first` on belong to the string."""
    sizes = np.clip(np.arange(SHORT + 1) - first, 0, 8)
    return np.array([(1 << 8 * int(size)) - 1 for size in sizes], np.uint64)


_FIRST, _SECOND = _masks(0), _masks(8)


@inner
def _bytes(data, begin, size):
    """Load up to 8 bytes as a word if there may be fewer than 8 to read."""
    word = np.uint64(0)
    for b in range(size):
        word |= np.uint64(data[begin + b]) << np.uint64(8 * b)
    return word


@inner
def words_of(data, begin, size):
    """Return the two words that identify a string."""
    if size <= SHORT:
        if begin + 16 <= len(data):
            key = load64(data, begin) & _FIRST[size]
            more = load64(data, begin + 8) & _SECOND[size]
        else:
            key = _bytes(data, begin, min(size, 8))
            more = _bytes(data, begin + 8, max(size - 8, 0))
        more |= np.uint64(size) << np.uint64(56)
    else:
        key = np.uint64(size)
        for at in range(begin, begin + size - 8, 8):
            key = (key ^ load64(data, at)) * np.uint64(0x9E3779B97F4A7C15)
            key ^= key >> np.uint64(32)
        key = (key ^ load64(data, begin + size - 8)) * np.uint64(0xBF58476D1CE4E5B9)
        key ^= key >> np.uint64(29)
        more = _LONG_TEXT | np.uint64(size)
    return np.int64(key), np.int64(more)


@inner
def size_of(more):
    """Return the size of a string in bytes, from its second word."""
    return np.int64(np.uint64(more) & _SIZE) if more < 0 else np.int64(more >> np.int64(56))


@lean
def identify(offsets, data, keys, mores, begins):
    """Compute every string's words and start; return the bytes that long strings need in the arena."""
    needed = np.int64(0)
    for i in range(len(keys)):
        begin = offsets[i]
        size = offsets[i + 1] - begin
        keys[i], mores[i] = words_of(data, begin, size)
        begins[i] = begin
        if size > SHORT:
            needed += 4 + size
    return needed


@inner
def same_text(texts, place, data, begin, size):
    """Whether the long string at `place` is ``data[begin : begin + size]``, of the same size."""
    same = True
    at = np.int64(0)
    while same and at < size - 8:
        same = load64(texts, place + 4 + at) == load64(data, begin + at)
        at += 8
    return same and load64(texts, place + size - 4) == load64(data, begin + size - 8)


@inner
def keep_text(tables, data, begin, size):
    """Copy a long string into the arena, which has room for it; return its place."""
    place = tables.spent[0].used
    store32(tables.texts, place, np.uint32(size))
    for b in range(size):
        tables.texts[place + 4 + b] = data[begin + b]
    tables.spent[0].used = place + 4 + size
    return place


@inner
def put_text(out, at, cells, cell, texts):
    """Write the bytes of a cell's string; return how many."""
    key, more = np.uint64(cells[cell]), np.uint64(cells[cell + 2])
    size = size_of(cells[cell + 2])
    if size > SHORT:
        place = cells[cell + 3]
        for b in range(size):
            out[at + b] = texts[place + 4 + b]
        return size
    for b in range(min(size, 8)):
        out[at + b] = np.uint8((key >> np.uint64(8 * b)) & np.uint64(255))
    for b in range(8, size):
        out[at + b] = np.uint8((more >> np.uint64(8 * b - 64)) & np.uint64(255))
    return size


@lean
def copy_texts(tables, places, offsets, data):
    """Write the strings of these cells, concatenated, to `data`, and their ends to ``offsets[1:]``."""
    used = np.int64(0)
    for i in range(len(places)):
        used += put_text(data, used, tables.cells, places[i], tables.texts)
        offsets[i + 1] = used


@lean
def compact_texts(tables, out):
    """Copy the long strings still counted to `out`, as large as the arena's used part; return the bytes."""
    used = np.int64(0)
    cells = tables.cells
    for g in range(len(tables.groups)):
        group = tables.groups[g]
        if group.active == 0 or len(tables.cell) == LONG:
            continue
        for at in range(group.base, group.base + (len(tables.cell) << group.lg), len(tables.cell)):
            if cells[at + 1] != 0 and cells[at + 2] < 0:
                place = cells[at + 3]
                size = 4 + np.int64(load32(tables.texts, place))
                for b in range(size):
                    out[used + b] = tables.texts[place + b]
                cells[at + 3] = used
                used += size
    tables.spent[0].used = used
    return used
