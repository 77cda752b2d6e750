"""Protobuf messages of which only single values are read, many at a time: see `protobuf.scan`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ..kernel_columns import column, scanned, words_of
from ..messages import Messages
from .fields import arrow_type, is_repeated, required

_KINDS = ("int64", "sint64", "int32", "uint32", "sint32", "bool", "64", "32", "text", "bytes", "nested")
_ENUM = 14
_BY_TYPE = {
    **dict.fromkeys((1, 6, 16), "64"),
    **dict.fromkeys((2, 7, 15), "32"),
    **dict.fromkeys((3, 4), "int64"),
    **dict.fromkeys((5, _ENUM), "int32"),
    8: "bool",
    9: "text",
    12: "bytes",
    13: "uint32",
    17: "sint32",
    18: "sint64",
}
"""The kind of each `FieldDescriptor.type` of single values."""

FlatField = tuple[int, pa.DataType, Mapping[int, str] | None]
"""The place of a column's field in the table, its type, and the names of an enum's numbers."""


@dataclass(frozen=True)
class FlatMessage:
    """How to read messages: `table` as in `protobuf.scan`, without addresses."""

    table: np.ndarray
    columns: dict[str, FlatField]

    def read(
        self, messages: Messages, numbers: np.ndarray, begin: int
    ) -> tuple[pa.StructArray, np.ndarray, np.ndarray]:
        """Read some messages from byte `begin` on: the records, their messages, and the doubtful messages."""
        from . import scan  # loads the kernel, which a description alone doesn't need

        words = {
            name: (field, 1 if names else words_of(dtype))
            for name, (field, dtype, names) in self.columns.items()
        }
        done = scanned(scan.scan, self.table, words, messages, numbers, begin)
        arrays = [
            column(dtype, *done.columns[name], messages.lines)
            if names is None
            else _named(names, column(pa.int32(), *done.columns[name], messages.lines))
            for name, (_, dtype, names) in self.columns.items()
        ]
        fields = [pa.field(name, array.type) for name, array in zip(self.columns, arrays)]
        return pa.StructArray.from_arrays(arrays, fields=fields), done.rows, done.doubtful


def _named(names: Mapping[int, str], numbers: pa.Array) -> pa.Array:
    """An enum's names; numbers without one become digits."""
    known = numbers.dictionary_encode()
    texts = [names.get(number) or str(number) for number in known.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(known.indices)


def flat(descriptor: Any, chosen: Mapping[str, tuple[str, ...]]) -> FlatMessage | None:
    """A fast reader of the chosen fields' paths by column, or None if Protobuf's library is needed.

    It is needed for nested or repeated fields, in a ``oneof``, or required, and for messages with extensions.
    """
    if not chosen or descriptor.is_extendable or required(descriptor):
        return None
    kinds = [_kind(field) for field in descriptor.fields]
    places = {field.name: place for place, field in enumerate(descriptor.fields)}
    columns: dict[str, FlatField] = {}
    for name, path in chosen.items():
        place = places[path[0]]
        if len(path) > 1 or kinds[place] == "nested" or place in [used for used, *_ in columns.values()]:
            return None
        field = descriptor.fields[place]
        names = None
        if field.type == _ENUM:
            names = {value.number: value.name for value in reversed(field.enum_type.values)}
        columns[name] = place, arrow_type(field, path[0]), names
    rows = [
        [field.number, _KINDS.index(kind), not field.has_presence, 0, 0]
        for field, kind in zip(descriptor.fields, kinds)
    ]
    return FlatMessage(np.array(rows, np.int64), columns)


def _kind(field: Any) -> str:
    """A field's kind for the kernel."""
    choice, kind = field.containing_oneof, _BY_TYPE.get(field.type, "nested")
    if is_repeated(field) or (choice is not None and len(choice.fields) > 1):
        return "nested"
    if field.type == _ENUM and getattr(field.enum_type, "is_closed", True):
        return "nested"
    return kind
