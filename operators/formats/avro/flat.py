"""Flat Avro records, which contain no lists, maps or other records, many at a time: see `avro.scan`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ..kernel_columns import column, scanned
from ..messages import Messages
from .schema import Names, arrow_type, kind_of, resolved

_KINDS = ("int", "long", "boolean", "enum", "float", "double", "string", "bytes", "fixed", "null")


@dataclass(frozen=True)
class FlatColumn:
    """A column, and the kind, place and type of the field that it is read from."""

    field: int
    kind: str
    dtype: pa.DataType
    symbols: tuple[str, ...] = ()
    default: Any = None
    """The value in all rows, if the writer has no such field and `field` is −1."""


@dataclass(frozen=True)
class Flat:
    """How to read messages of a writer's schema: `table` as in `avro.scan`, without addresses."""

    table: np.ndarray
    columns: dict[str, FlatColumn]

    def read(
        self, messages: Messages, numbers: np.ndarray, begin: int
    ) -> tuple[pa.StructArray, np.ndarray, np.ndarray]:
        """Read some messages from byte `begin` on: the records, their messages, and the doubtful messages."""
        from . import scan  # loads the kernel, which a schema alone doesn't need

        words = {
            name: (own.field, 2 if self.table[own.field, scan.KIND] >= scan.STRING else 1)
            for name, own in self.columns.items()
            if own.field >= 0
        }
        done = scanned(scan.scan, self.table, words, messages, numbers, begin)
        n = len(done.rows)
        arrays = [
            _array(own, *done.columns[name], messages.lines)
            if own.field >= 0
            else pa.array([own.default], own.dtype).take(pa.array(np.zeros(n, np.int64)))
            for name, own in self.columns.items()
        ]
        fields = [pa.field(name, array.type) for name, array in zip(self.columns, arrays)]
        records = (
            pa.StructArray.from_arrays(arrays, fields=fields) if fields else pa.array([{}] * n, pa.struct([]))
        )
        return records, done.rows, done.doubtful


def _array(own: FlatColumn, cells: np.ndarray, present: np.ndarray, lines: np.ndarray) -> pa.Array:
    """A column's cells as Arrow's array."""
    if own.kind == "null":
        return pa.nulls(len(present))
    if own.kind == "enum":
        return pa.array(own.symbols, pa.string()).take(column(pa.int32(), cells, present, lines))
    return column(own.dtype, cells, present, lines)


def flat(writer: tuple[Any, Names], reader: tuple[Any, Names]) -> Flat | None:
    """A fast reader of `writer`'s records as `reader`'s, or None if fastavro is needed.

    It is needed for a nested field or one of several types, for decimals, and for a field whose type isn't
    the reader's or that has an alias.
    """
    (written, names), (wanted, others) = writer, reader
    if kind_of(written) != "record" or kind_of(wanted) != "record" or written["name"] != wanted["name"]:
        return None
    fields = []
    for field in written["fields"]:
        known = _field(field["type"], names)
        if known is None:
            return None
        fields.append(known)
    places = {field["name"]: number for number, field in enumerate(written["fields"])}
    columns = {}
    for field in wanted["fields"]:
        requested = _field(field["type"], others)
        if requested is None or "aliases" in field:
            return None
        kind, dtype = kind_of(requested.node), arrow_type(field["type"], others, field["name"])
        if pa.types.is_decimal(dtype):
            return None
        if field["name"] not in places:
            if "default" not in field or kind in ("bytes", "fixed"):
                return None
            columns[field["name"]] = FlatColumn(-1, kind, dtype, default=field["default"])
            continue
        own = fields[places[field["name"]]]
        if own.node != requested.node or own.null_branch >= 0 > requested.null_branch:
            return None
        symbols = tuple(own.node["symbols"]) if kind == "enum" else ()
        columns[field["name"]] = FlatColumn(places[field["name"]], kind, dtype, symbols)
    rows = [[_KINDS.index(kind_of(f.node)), f.branches, f.null_branch, f.size, 0, 0] for f in fields]
    return Flat(np.array(rows, np.int64).reshape(-1, 6), columns)


class _Field(NamedTuple):
    """A field's type except null, the number of its union's branches or 0, and which one is null or −1."""

    node: Any
    branches: int
    null_branch: int

    @property
    def size(self) -> int:
        """Of a fixed in bytes, or of an enum in symbols."""
        kind = kind_of(self.node)
        return self.node["size"] if kind == "fixed" else len(self.node["symbols"]) if kind == "enum" else 0


def _field(node: Any, names: Names) -> _Field | None:
    """A field, or None if its type is nested, or a union of several types besides null."""
    node = resolved(node, names)
    branches, null_branch = 0, -1
    if isinstance(node, list):
        kinds = [kind_of(one) for one in node]
        branches, null_branch = len(node), kinds.index("null") if "null" in kinds else -1
        others = [one for one in node if kind_of(one) != "null"]
        if len(others) != 1:
            return None
        node = resolved(others[0], names)
    return _Field(node, branches, null_branch) if kind_of(node) in _KINDS else None
