"""Columns of serialised sketches: those that are to be merged, with their groups, and those that come out."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa

from .columns import Values, as_array, as_values
from .group_numbers import as_groups, frozen
from .protocol import SketchError


def as_images(groups: Any, column: Any, n: int, family: str) -> tuple[np.ndarray, Values]:
    """The images of a binary column, nulls left out, and before them the group of each, one of `n`.

    Offsets are int64 whatever the column's are, and all arrays read-only, so that kernels are compiled once;
    ``images.row(i)`` is the row of the column that image i stood in. Raises `SketchError` for a column of
    another type unless it is empty, and as `as_groups` does.

    >>> numbers, images = as_images([1, 0, 1], [b"a", None, b"b"], 2, "KLL")
    >>> numbers.tolist(), images.data.tobytes(), images.row(1)
    ([1, 1], b'ab', 2)
    """
    column = as_array(column)
    numbers = as_groups(groups, len(column), n)
    images = as_values(column)
    if len(images) and images.kind != "binary":
        raise SketchError(f"{family}: expected a column of binary to merge, got {column.type}")
    images.offsets, images.data = frozen(images.offsets.astype(np.int64)), frozen(images.data)
    return frozen(images.per_value(numbers)), images


def one_image(data: bytes | memoryview) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One image as kernels take many: the group 0, its offsets and its bytes, all read-only."""
    image = np.frombuffer(data, np.uint8)
    return frozen(np.zeros(1, np.int64)), frozen(np.array([0, len(image)], np.int64)), frozen(image)


def begin_with(magic: bytes, images: Values) -> np.ndarray:
    """Which images begin with these bytes.

    >>> begin_with(b"ab", as_images([0, 0, 0], [b"abc", b"a", b"xyz"], 1, "KLL")[1]).tolist()
    [True, False, False]
    """
    starts = images.offsets[:-1]
    matches = np.diff(images.offsets) >= len(magic)
    places = starts[matches, None] + np.arange(len(magic))
    matches[matches] = (images.data[places] == np.frombuffer(magic, np.uint8)).all(axis=1)
    return matches


def check_sums(data: np.ndarray, starts: np.ndarray, ends: np.ndarray, before: Any = None) -> np.ndarray:
    """The CRC-32 (uint32) of ``data[starts[i]:ends[i]]``, going on from that of `before`, if given.

    A call an image: what it costs to leave a megabyte to zlib, which has machine instructions for it, is far
    less than what a kernel of ours would take for it.

    >>> sums = check_sums(np.frombuffer(b"abcabc", np.uint8), np.array([0, 3, 0]), np.array([3, 6, 6]))
    >>> bool(sums[0] == sums[1] == zlib.crc32(b"abc")), bool(sums[2] == zlib.crc32(b"abcabc"))
    (True, True)
    """
    view = memoryview(data)  # type: ignore[arg-type]
    spans = zip(starts.tolist(), ends.tolist())
    if before is None:
        sums = (zlib.crc32(view[start:end]) for start, end in spans)
    else:
        sums = (zlib.crc32(view[start:end], crc) for (start, end), crc in zip(spans, before.tolist()))
    return np.fromiter(sums, np.uint32, len(starts))


def image_column(data: np.ndarray, offsets: np.ndarray) -> pa.Array:
    """Images as `binary` (`large_binary` beyond 2 GiB): their bytes (uint8) and n + 1 offsets (int64).

    >>> image_column(np.frombuffer(b"abc", np.uint8), np.array([0, 1, 3])).to_pylist()
    [b'a', b'bc']
    """
    ends = offsets.astype(np.int32) if offsets[-1] < 2**31 else offsets
    return Values("binary", data[:0], ends, data, None).to_arrow()


def joined_images(images: Iterable[bytes]) -> pa.Array:
    """The same of images that are made one by one.

    >>> joined_images([b"a", b"bc"]).to_pylist()
    [b'a', b'bc']
    """
    made = list(images)
    ends = np.array([0, *accumulate(map(len, made))], np.int64)
    return image_column(np.frombuffer(b"".join(made), np.uint8), ends)
