"""Columns of serialised sketches: inputs of a merge, with their groups, and outputs."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa

from ..columns.columns import Values, as_array, as_values
from ..groups.group_numbers import as_groups, frozen
from ..protocol import SketchError


def as_images(groups: Any, column: Any, n: int, family: str) -> tuple[np.ndarray, Values]:
    """Return the group of each image, one of `n`, and the images of a binary column without nulls.

    Offsets are always int64 and all arrays read-only, so that kernels are compiled once; ``images.row(i)`` is
    image i's row in the column. Raises `SketchError` for a column of another type unless it is empty, and
    what `as_groups` raises.

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
    """Prepare one image for kernels that read many: group 0, its offsets and its bytes, all read-only."""
    image = np.frombuffer(data, np.uint8)
    return frozen(np.zeros(1, np.int64)), frozen(np.array([0, len(image)], np.int64)), frozen(image)


def begin_with(magic: bytes, images: Values) -> np.ndarray:
    """Return which images begin with these bytes.

    >>> begin_with(b"ab", as_images([0, 0, 0], [b"abc", b"a", b"xyz"], 1, "KLL")[1]).tolist()
    [True, False, False]
    """
    starts = images.offsets[:-1]
    matches = np.diff(images.offsets) >= len(magic)
    places = starts[matches, None] + np.arange(len(magic))
    matches[matches] = (images.data[places] == np.frombuffer(magic, np.uint8)).all(axis=1)
    return matches


def check_sums(data: np.ndarray, starts: np.ndarray, ends: np.ndarray, before: Any = None) -> np.ndarray:
    """Return the CRC-32 (uint32) of each ``data[starts[i]:ends[i]]``, continuing from the CRC of `before`.

    It calls zlib once per image: for a megabyte, that costs far less than a kernel of ours, because zlib uses
    machine instructions for CRCs.

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
    """Make a column of `binary` (`large_binary` beyond 2 GiB) from bytes (uint8) and n + 1 offsets (int64).

    >>> image_column(np.frombuffer(b"abc", np.uint8), np.array([0, 1, 3])).to_pylist()
    [b'a', b'bc']
    """
    ends = offsets.astype(np.int32) if offsets[-1] < 2**31 else offsets
    return Values("binary", data[:0], ends, data, None).to_arrow()


def joined_images(images: Iterable[bytes]) -> pa.Array:
    """Make the same column from separate images.

    >>> joined_images([b"a", b"bc"]).to_pylist()
    [b'a', b'bc']
    """
    made = list(images)
    ends = np.array([0, *accumulate(map(len, made))], np.int64)
    return image_column(np.frombuffer(b"".join(made), np.uint8), ends)
