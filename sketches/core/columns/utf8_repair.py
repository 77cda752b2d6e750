"""Repair text for display: U+FFFD replaces what is not UTF-8.

Neither Arrow nor Spark checks a string's bytes: log lines in Latin-1 are strings to them. Sketches that only
hash values hash those bytes, as Spark does. But Arrow, Polars and the images of sketches must return valid
text, so sketches that store values for answers store the text that Spark would show, on every engine.

Source: The Unicode Standard, section 3.9, "U+FFFD substitution of maximal subparts".
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa


def readable(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Repair a column's text, including text in lists and structs; return the same column if all is valid.

    >>> read = readable(pa.array([b"caf\\xe9", b"caf\\xc3\\xa9", None]).view(pa.string()))
    >>> read.to_pylist()
    ['caf\ufffd', 'café', None]
    """
    if _is_ascii(column):
        return column
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        given = column.cast(_of_bytes(column.type)).to_pylist()
        return pa.array([_read(value, column.type) for value in given], column.type)
    return column


def _is_ascii(column: pa.Array | pa.ChunkedArray) -> bool:
    """Whether a column holds numbers or plain ASCII, a check many times faster than Arrow's validation."""
    if pa.types.is_primitive(column.type):
        return True
    offset = {pa.string(): np.int32, pa.large_string(): np.int64}.get(column.type)
    if offset is None or isinstance(column, pa.ChunkedArray):
        return False
    _, offsets, data = column.buffers()
    if data is None:
        return not len(column)
    ends = np.frombuffer(offsets, offset)[column.offset : column.offset + len(column) + 1]
    return not len(ends) or int(np.frombuffer(data, np.uint8)[ends[0] : ends[-1]].max(initial=0)) < 0x80


def _of_bytes(kind: pa.DataType) -> pa.DataType:
    """Return the type with binary in place of strings."""
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return pa.binary() if pa.types.is_string(kind) else pa.large_binary()
    if pa.types.is_map(kind):
        return pa.map_(_of_bytes(kind.key_type), _of_bytes(kind.item_type))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        made = pa.list_ if pa.types.is_list(kind) else pa.large_list
        return made(kind.value_field.with_type(_of_bytes(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_of_bytes(field.type)) for field in kind])
    return kind


def _read(value: Any, kind: pa.DataType) -> Any:
    """Decode a value of the type `_of_bytes(kind)` to the type `kind`."""
    if value is None:
        return None
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return value.decode("utf-8", "replace")
    if pa.types.is_map(kind):
        return [(_read(key, kind.key_type), _read(item, kind.item_type)) for key, item in value]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [_read(one, kind.value_type) for one in value]
    if pa.types.is_struct(kind):
        return {field.name: _read(value[field.name], field.type) for field in kind}
    return value
