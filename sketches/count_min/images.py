"""Spark's `count_min_sketch` bytes: big-endian throughout.

::

    int32   version, 1
    int64   sum of all weights
    int32   depth, the rows
    int32   width, the counters a row
    int64   a factor a row, the first numbers of java.util.Random
    int64   the counters, row after row

Our images add a byte with the kind of the items (`values.item_kinds`), which Spark doesn't read because it
stops after the counters. A single row's factor results from several seeds: if the sketch's own isn't the
smallest of them, it follows as an int32, and the byte for an unknown kind is 1.

Every row of a sketch adds up to the sum of all weights, and the factors come from one seed. Both are checked,
so that damaged bytes are refused.

Source: Spark `CountMinSketch.Version.V1`, `CountMinSketchImpl.writeTo`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..core.hashing.java_random import next_ints, seeds_of
from ..core.protocol import SketchError
from ..core.values.item_kinds import code_of, kind_of_code

_START = 20
SEED_SIZE = 4
UNKNOWN = b"\1"
"""The byte for an unknown kind of items, if a byte is needed."""
MAX_DEPTH, MAX_CELLS = 64, 1 << 26


class Image(NamedTuple):
    """The content of an image."""

    seed: int
    total: int
    table: np.ndarray  # int64, depth × width, read-only
    item_kind: str | None = None


def image_size(depth: int, width: int) -> int:
    """Return the number of bytes of a sketch."""
    return _START + 8 * depth + 8 * depth * width


def header(total: int, depth: int, width: int, factors: tuple[int, ...]) -> bytes:
    """Return the bytes before the counters."""
    fixed = b"".join(
        value.to_bytes(size, "big", signed=True)
        for value, size in ((1, 4), (total, 8), (depth, 4), (width, 4))
    )
    return fixed + np.array(factors, ">i8").tobytes()


def tail(seed: int, depth: int, item_kind: str | None) -> bytes:
    """Return the bytes after the counters."""
    if seed == seeds_of(next_ints(seed, depth))[0]:
        return code_of(item_kind, b"")
    return code_of(item_kind, UNKNOWN) + seed.to_bytes(SEED_SIZE, "big", signed=True)


def parse(data: bytes | memoryview, conservative: bool = False) -> Image:
    """Parse a sketch's bytes. Raises `SketchError` for anything else.

    A conservative sketch's rows add up to at most the sum of the weights.
    """
    size = len(data)
    if size < _START:
        raise SketchError(
            f"count-min: {size} bytes are too few for a sketch, whose header alone has {_START}"
        )
    version, depth, width = (int.from_bytes(data[at : at + 4], "big", signed=True) for at in (0, 12, 16))
    total = int.from_bytes(data[4:12], "big", signed=True)
    if version != 1:
        raise SketchError(f"count-min: expected version 1, got {version}")
    if not 1 <= depth <= MAX_DEPTH or not 1 <= width <= MAX_CELLS // depth or total < 0:
        raise SketchError(f"count-min: depth {depth}, width {width} and total {total} don't make a sketch")
    behind = bytes(data[image_size(depth, width) :])
    if size < image_size(depth, width) or len(behind) not in (0, 1, 1 + SEED_SIZE):
        raise SketchError(
            f"count-min: {depth} rows of {width} take {image_size(depth, width)} bytes, got {size}"
        )
    factors = np.frombuffer(data, ">i8", depth, _START)
    seeds = seeds_of(tuple(factors.tolist()))
    if not seeds:
        raise SketchError("count-min: its hash factors come from no seed; the bytes are damaged")
    seed, item_kind = seeds[0], None
    if len(behind) > 1:
        seed = int.from_bytes(behind[1:], "big", signed=True)
        if seed not in seeds[1:]:
            raise SketchError(f"count-min: seed {seed} doesn't give its hash factors; the bytes are damaged")
    if behind:
        item_kind = kind_of_code(behind[0], UNKNOWN if len(behind) > 1 else b"", "count-min")
    cells = np.frombuffer(data, ">i8", depth * width, _START + 8 * depth).astype(np.int64)
    table = cells.reshape(depth, width)
    sums = table.sum(axis=1, dtype=np.int64)
    wrong = (sums > total) if conservative else (sums != total)
    if wrong.any() or int(table.min()) < 0 or int(table.max()) > total:
        raise SketchError(f"count-min: row {int(np.argmax(wrong))} does not add up to its total {total}")
    return Image(seed, total, table, item_kind)
