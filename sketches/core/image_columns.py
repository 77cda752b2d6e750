"""Columns of serialised sketches: those that are to be merged, with their groups, and those that come out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from .columns import Values, as_array, as_values
from .group_numbers import as_groups
from .protocol import SketchError


def as_images(groups: Any, column: Any, n: int, family: str) -> tuple[np.ndarray, Values]:
    """The images of a binary column, nulls left out, and before them the group of each, one of `n`.

    Raises `SketchError` for a column of another type unless it is empty, and as `as_groups` does.

    >>> numbers, images = as_images([1, 0], [b"a", None], 2, "KLL")
    >>> numbers.tolist(), images.data.tobytes()
    ([1], b'a')
    """
    column = as_array(column)
    numbers = as_groups(groups, len(column), n)
    images = as_values(column)
    if len(images) and images.kind != "binary":
        raise SketchError(f"{family}: expected a column of binary to merge, got {column.type}")
    return images.per_value(numbers), images


def image_column(data: np.ndarray, offsets: np.ndarray) -> pa.Array:
    """Images as `binary` (`large_binary` beyond 2 GiB): their bytes (uint8) and n + 1 offsets (int64)."""
    ends = offsets.astype(np.int32) if offsets[-1] < 2**31 else offsets
    return Values("binary", data[:0], ends, data, None).to_arrow()
