"""Tuple sketches in the layouts of Apache DataSketches, Spark and Druid.

Spark's and Java's `double` and `integer`, and the `bare` doubles of C++ and Python, begin with 8 bytes:
preamble longs, serial version (3), family (9), type (1), 0, flags (2 read-only, 4 empty, 8 compact, 16
ordered), seed hash. With two or more longs, the number of entries (uint32) and 0 follow; with three, theta as
well. Then each entry has its hash and summary: a double or an int32 with its mode (a byte), or a bare double.

Druid's `array` (ArrayOfDoubles) has: 1, serial version (1), family (9), type (3), flags (4 empty, 8 with
entries, 16 ordered), numbers per entry, seed hash; theta; and if there are entries their number and 0, all
hashes, all numbers.

Source: datasketches-java 6.2.0 `tuple.CompactSketch`, `tuple.adouble.DoubleSummary`,
`tuple.arrayofdoubles.HeapArrayOfDoublesCompactSketch`; datasketches-cpp `tuple_sketch_impl.hpp`.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np

from ..core.protocol import SketchError
from .images import SEED_HASH
from .store import MAX_THETA

MODES = ("sum", "min", "max", "always_one")
"""How the numbers of one key are combined, in the order of the mode byte."""

KINDS = ("double", "integer", "array", "bare")
_EMPTY, _COMPACT, _ENTRIES, _ORDERED = 4, 8, 8, 16
_ENTRY = {
    "double": np.dtype([("hash", "<i8"), ("number", "<f8"), ("mode", "u1")]),
    "integer": np.dtype([("hash", "<i8"), ("number", "<i4"), ("mode", "u1")]),
    "bare": np.dtype([("hash", "<i8"), ("number", "<f8")]),
}


class Image(NamedTuple):
    """The content of an image; no mode if it isn't recorded. `numbers` has one row per entry, in hash
    order."""

    mode: str | None
    theta: int
    seen: bool
    hashes: np.ndarray
    numbers: np.ndarray


def read_image(data: bytes, kind: str) -> Image:
    """Parse an image of that kind. Raises `SketchError` for anything else."""
    entries = _read_array(data) if kind == "array" else _read_entries(data, kind)
    if isinstance(entries, str):
        raise SketchError(f"Tuple: these {len(data)} bytes aren't a sketch: {entries}")
    hashes = entries.hashes
    if len(hashes) and (hashes.min() <= 0 or hashes.max() >= entries.theta):
        raise SketchError(
            f"Tuple: these {len(data)} bytes aren't a sketch: a hash is not from 1 to below theta"
        )
    order = np.argsort(hashes)
    ordered = hashes[order]
    if (ordered[1:] == ordered[:-1]).any():
        raise SketchError(f"Tuple: these {len(data)} bytes aren't a sketch: two entries have one hash")
    return entries._replace(hashes=ordered, numbers=entries.numbers[order])


def _read_entries(data: bytes, kind: str) -> Image | str:
    if len(data) < 8:
        return "fewer bytes than its header needs"
    longs, version, family, layout, unused, flags, seed = struct.unpack_from("<BBBBBBH", data)
    if (version, family, layout, unused) != (3, 9, 1, 0) or flags & ~30 or not flags & _COMPACT:
        return "another version, family or type, or not compact"
    if flags & _EMPTY:
        fine = longs == 1 and len(data) == 8
        return Image(None, MAX_THETA, False, *_none()) if fine else "an empty sketch followed by more"
    if seed != SEED_HASH:
        return "hashed with another seed than DataSketches' 9001"
    if longs not in (1, 2, 3) or len(data) < 8 * longs:
        return "it ends within its header"
    n, rest = struct.unpack_from("<II", data, 8) if longs > 1 else (1, 0)
    theta = struct.unpack_from("<q", data, 16)[0] if longs == 3 else MAX_THETA
    if rest or not 0 < theta <= MAX_THETA or (n == 0 and theta == MAX_THETA):
        return "an impossible theta or number of entries"
    entry = _ENTRY[kind]
    if len(data) - 8 * longs != n * entry.itemsize:
        return f"a length that isn't its entries' of kind {kind!r}"
    if not n:
        return Image(None, theta, True, *_none())
    entries = np.frombuffer(data, entry, n, 8 * longs)
    mode = None
    if kind != "bare":
        if entries["mode"][0] >= len(MODES) or (entries["mode"] != entries["mode"][0]).any():
            return "a mode that doesn't exist, or more than one"
        mode = MODES[entries["mode"][0]]
        if mode == "always_one" and (entries["number"] != 1).any():
            return "numbers other than 1, where each is always 1"
    numbers = entries["number"].astype(np.int64 if kind == "integer" else np.float64)[:, None]
    return Image(mode, theta, True, entries["hash"].astype(np.int64), numbers)


def _read_array(data: bytes) -> Image | str:
    if len(data) < 16:
        return "fewer bytes than its header needs"
    one, version, family, layout, flags, width, seed, theta = struct.unpack_from("<BBBBBBHq", data)
    if (one, version, family, layout) != (1, 1, 9, 3):
        return "another version, family or type"
    empty, entries = bool(flags & _EMPTY), bool(flags & _ENTRIES)
    if flags & ~28 or not width or seed != SEED_HASH or not 0 < theta <= MAX_THETA:
        return "unknown flags, another seed, no numbers or an impossible theta"
    if (empty and (entries or theta < MAX_THETA)) or not (empty or entries or theta < MAX_THETA):
        return "an empty sketch with entries, or the reverse"
    if not entries:
        nothing = np.empty(0, np.int64), np.empty((0, width))
        fine = len(data) == 16
        return Image("sum", theta, not empty, *nothing) if fine else "more bytes follow an empty sketch"
    n, unused = struct.unpack_from("<II", data, 16) if len(data) >= 24 else (0, 0)
    if not n or unused or len(data) != 24 + 8 * n * (1 + width):
        return "a length that isn't its entries'"
    hashes = np.frombuffer(data, "<i8", n, 24).astype(np.int64)
    numbers = np.frombuffer(data, "<f8", n * width, 24 + 8 * n).astype(np.float64).reshape(n, width)
    return Image("sum", theta, True, hashes, numbers)


def _none() -> tuple[np.ndarray, np.ndarray]:
    return np.empty(0, np.int64), np.empty((0, 1))


def write_image(
    kind: str, mode: str, theta: int, seen: bool, hashes: np.ndarray, numbers: np.ndarray
) -> bytes:
    """Return the image of entries in hash order."""
    n = len(hashes)
    if kind == "array":
        flags = _ORDERED | (_ENTRIES if n else 0 if seen else _EMPTY)
        head = struct.pack("<BBBBBBHq", 1, 1, 9, 3, flags, numbers.shape[1], SEED_HASH, theta)
        body = hashes.astype("<i8").tobytes() + numbers.astype("<f8").tobytes()
        return head + struct.pack("<II", n, 0) + body if n else head
    longs = 3 if theta < MAX_THETA else 1 if n <= 1 else 2
    flags = 2 | _COMPACT | _ORDERED | (0 if seen else _EMPTY)
    head = struct.pack("<BBBBBBH", longs, 3, 9, 1, 0, flags, SEED_HASH)
    if longs > 1:
        head += struct.pack("<II", n, 0)
    if longs > 2:
        head += struct.pack("<q", theta)
    entries = np.zeros(n, _ENTRY[kind])
    entries["hash"], entries["number"] = hashes, numbers[:, 0]
    if kind != "bare":
        entries["mode"] = MODES.index(mode)
    return head + entries.tobytes()
