"""The struct that Spark's `approx_top_k_accumulate` returns and `approx_top_k_combine` merges.

Spark 4.3 stores a frequent items sketch as ``struct<sketch: binary, maxItemsTracked: int, itemDataType: T,
itemDataTypeDDL: string>``: the image of DataSketches followed by the number of nulls (int64, big-endian; 0
here, because nulls are skipped), the number of items it was configured to track, a null of the items' type,
and that type's name. By default, `approx_top_k_combine` refuses sketches with different `maxItemsTracked`, so
the same aggregate must always use the same number.

Source: Spark `ApproxTopK.getSketchStateDataType`, `calMaxMapSize`, `dataTypeToDDL`.
"""

from __future__ import annotations

import math

import pyarrow as pa
import pyarrow.compute as pc

from ..core.columns.columns import as_array
from ..core.protocol import SketchError

ITEM_TYPES: dict[str, pa.DataType] = {
    "string": pa.string(),
    "long": pa.int64(),
    "double": pa.float64(),
    "binary": pa.string(),
}
"""The Arrow type of items by the kind of the sketch; bytes are stored as text (`item_forms`)."""

ITEM_DDL: dict[str, str] = {
    "string": "item string not null",
    "long": "item BIGINT NOT NULL",
    "double": "item DOUBLE NOT NULL",
    "binary": "item string not null",
}
"""The `itemDataTypeDDL` that Spark writes, by the kind of the sketch."""

SPARK_DEFAULT_TRACKED = 10_000
"""Spark's default `maxItemsTracked`; its map size is 16,384."""

_MOST_TRACKED = 1_000_000
_NO_NULLS = bytes(8)


def max_size_of(items_tracked: int) -> int:
    """Return the map size that Spark uses to track this many items.

    >>> max_size_of(10_000), max_size_of(3_072)
    (16384, 4096)
    """
    if not 1 <= items_tracked <= _MOST_TRACKED:
        raise SketchError(f"frequent items: Spark tracks 1 to {_MOST_TRACKED} items, not {items_tracked}")
    return max(1 << (math.ceil(items_tracked / 0.75) - 1).bit_length(), 8)


def items_tracked(max_size: int) -> int:
    """Return a `maxItemsTracked` for which Spark uses this map size: its default if it fits, else the
    largest.

    >>> items_tracked(16_384), items_tracked(4_096)
    (10000, 3072)
    """
    if max_size == max_size_of(SPARK_DEFAULT_TRACKED):
        return SPARK_DEFAULT_TRACKED
    tracked = min(3 * max_size // 4, _MOST_TRACKED)
    if max_size_of(tracked) != max_size:
        raise SketchError(
            f"frequent items: Spark has no map of {max_size} entries, only powers of two to 2^21"
        )
    return tracked


def state_type(kind: str) -> pa.StructType:
    """Return the Arrow type of Spark's struct for sketches of that kind."""
    return pa.struct(
        [
            pa.field("sketch", pa.binary(), nullable=False),
            pa.field("maxItemsTracked", pa.int32(), nullable=False),
            pa.field("itemDataType", ITEM_TYPES[kind]),
            pa.field("itemDataTypeDDL", pa.string(), nullable=False),
        ]
    )


def to_state(images: pa.Array, kind: str, max_size: int) -> pa.StructArray:
    """Convert images from `FrequentItemsGroups.to_arrow` to Spark's struct; nulls stay null.

    >>> from .groups import FrequentItemsGroups
    >>> groups = FrequentItemsGroups(1, max_size=64)
    >>> to_state(groups.to_arrow(), "string", 64)[0]["maxItemsTracked"].as_py()
    48
    """
    n = len(images)
    fields = [
        pc.binary_join_element_wise(pc.fill_null(images, b""), _NO_NULLS, b""),
        pa.repeat(pa.scalar(items_tracked(max_size), pa.int32()), n),
        pa.nulls(n, ITEM_TYPES[kind]),
        pa.repeat(ITEM_DDL[kind], n),
    ]
    return pa.StructArray.from_arrays(fields, fields=list(state_type(kind)), mask=images.is_null())


def from_state(column: pa.Array, kind: str) -> pa.Array:
    """Return the images in a column of Spark's struct, for `FrequentItemsGroups.merge`; nulls stay null.

    Raises `SketchError` for another struct, or items of another type.
    """
    column = as_array(column)
    names = [field.name for field in state_type(kind)]
    if not pa.types.is_struct(column.type) or [field.name for field in column.type] != names:
        raise SketchError(f"frequent items: expected a struct of {', '.join(names)}, got {column.type}")
    for ddl in pc.unique(pc.struct_field(column, "itemDataTypeDDL")).to_pylist():
        if ddl is not None and ddl.lower() != ITEM_DDL[kind].lower():
            raise SketchError(f"frequent items: this sketch counts {kind}s, Spark's struct has {ddl!r}")
    states = pc.if_else(column.is_valid(), pc.struct_field(column, "sketch"), pa.scalar(None, pa.binary()))
    return pc.binary_slice(states, 0, -len(_NO_NULLS))
