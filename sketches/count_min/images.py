"""Spark's `count_min_sketch` bytes: big-endian throughout.

::

    int32   version, 1
    int64   sum of all weights
    int32   depth, the rows
    int32   width, the counters a row
    int64   a factor a row, the first numbers of java.util.Random
    int64   the counters, row after row

Behind them our images have one byte more, the kind of the items (`core.item_kinds`), which Spark, having all
counters, doesn't read.

Every row of a sketch adds up to the sum of all weights, and the factors come from one seed: both are checked,
so that damaged bytes are refused rather than answered from.

Source: Spark `CountMinSketch.Version.V1`, `CountMinSketchImpl.writeTo`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..core.item_kinds import kind_of_code
from ..core.java_random import seed_of
from ..core.protocol import SketchError

_START = 20
MAX_DEPTH, MAX_CELLS = 64, 1 << 26


class Image(NamedTuple):
    """What the bytes hold."""

    seed: int
    total: int
    table: np.ndarray  # int64, depth × width, read-only
    item_kind: str | None = None


def image_size(depth: int, width: int) -> int:
    """Bytes of a sketch."""
    return _START + 8 * depth + 8 * depth * width


def header(total: int, depth: int, width: int, factors: tuple[int, ...]) -> bytes:
    """The bytes before the counters."""
    fixed = b"".join(
        value.to_bytes(size, "big", signed=True)
        for value, size in ((1, 4), (total, 8), (depth, 4), (width, 4))
    )
    return fixed + np.array(factors, ">i8").tobytes()


def parse(data: bytes | memoryview, conservative: bool = False) -> Image:
    """The sketch in the bytes. Raises `SketchError` for anything else.

    Of a conservative sketch the rows add up to no more than the sum of the weights.
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
    if size - image_size(depth, width) not in (0, 1):
        raise SketchError(
            f"count-min: {depth} rows of {width} take {image_size(depth, width)} bytes, got {size}"
        )
    factors = np.frombuffer(data, ">i8", depth, _START)
    seed = seed_of(tuple(factors.tolist()))
    if seed is None:
        raise SketchError("count-min: its hash factors come from no seed; the bytes are damaged")
    cells = np.frombuffer(data, ">i8", depth * width, _START + 8 * depth).astype(np.int64)
    table = cells.reshape(depth, width)
    sums = table.sum(axis=1, dtype=np.int64)
    wrong = (sums > total) if conservative else (sums != total)
    if wrong.any() or int(table.min()) < 0 or int(table.max()) > total:
        raise SketchError(f"count-min: row {int(np.argmax(wrong))} does not add up to its total {total}")
    has_kind = size > image_size(depth, width)
    return Image(seed, total, table, kind_of_code(data[-1], b"", "count-min") if has_kind else None)
