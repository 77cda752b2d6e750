"""Parquet files that Spark and this package both read as tables of sketches.

Spark keeps its schema, with each column's metadata, as JSON in the Parquet footer. Arrow keeps its own schema
there and ignores Spark's. Files written here carry both, so that ``spark.read.parquet`` finds the aggregates'
definitions; files that Spark wrote are read by Spark's schema.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from ..definition.aggregate import METADATA, arrow_type
from .windows import TableWindows, windows_told

FOOTER = b"org.apache.spark.sql.parquet.row.metadata"
WINDOWS = "streamgauge.windows"
"""The key of the table's windows in a Spark column's metadata; Arrow has them in its schema's metadata."""
KEY_TYPE = "streamgauge.key"
"""The key of a key column's Arrow type in a Spark column's metadata, where Spark keeps a wider type."""

_DEFINITION = METADATA.decode()
_WIDENED = {pa.uint8(): "short", pa.uint16(): "integer", pa.uint32(): "long"}
_NAMES = {
    pa.bool_(): "boolean",
    pa.int8(): "byte",
    pa.int16(): "short",
    pa.int32(): "integer",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.date32(): "date",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.binary(): "binary",
    pa.large_binary(): "binary",
    pa.timestamp("us"): "timestamp_ntz",
    pa.timestamp("us", "UTC"): "timestamp",
    **_WIDENED,
}


def to_footer(schema: pa.Schema) -> str | None:
    """A schema as Spark writes it, or None if Spark lacks one of its types.

    >>> to_footer(pa.schema([("n", pa.int64())]))
    '{"type": "struct", "fields": [{"name": "n", "type": "long", "nullable": true, "metadata": {}}]}'
    """
    try:
        return json.dumps(_struct(list(schema), windows_told(schema)))
    except KeyError:
        return None


def notes_of(field: pa.Field, windows: TableWindows | None) -> dict[str, str]:
    """The metadata of a Spark column: an aggregate's definition and windows, or the type of a widened key."""
    if field.metadata and METADATA in field.metadata:
        told = {_DEFINITION: field.metadata[METADATA].decode()}
        return told if windows is None else {**told, WINDOWS: json.dumps(windows.definition())}
    return {KEY_TYPE: str(field.type)} if field.type in _WIDENED else {}


def _struct(fields: list[pa.Field], windows: TableWindows | None = None) -> dict[str, Any]:
    return {
        "type": "struct",
        "fields": [
            {"name": f.name, "type": _type(f.type), "nullable": True, "metadata": notes_of(f, windows)}
            for f in fields
        ],
    }


def _type(kind: pa.DataType) -> Any:
    if pa.types.is_struct(kind):
        return _struct(list(kind))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return {"type": "array", "elementType": _type(kind.value_type), "containsNull": True}
    if pa.types.is_decimal128(kind):
        return f"decimal({kind.precision},{kind.scale})"
    return _NAMES[kind]


def windows_of(notes: Iterable[Mapping[str, str]]) -> TableWindows | None:
    """The windows that the columns' metadata names; None if it names none or several."""
    told = {note[WINDOWS] for note in notes if WINDOWS in note}
    return TableWindows.from_definition(json.loads(told.pop())) if len(told) == 1 else None


def told_of(
    metadata: dict[bytes, bytes] | None,
) -> tuple[dict[str, str], dict[str, pa.DataType], TableWindows | None]:
    """What Spark's footer holds: aggregates' definitions, types of keys that Spark widened, and the windows.

    The first two are empty, and the windows None, if it doesn't hold them.
    """
    fields = json.loads((metadata or {}).get(FOOTER, b'{"fields": []}'))["fields"]
    notes = {field["name"]: field["metadata"] for field in fields}
    return (
        {name: note[_DEFINITION] for name, note in notes.items() if _DEFINITION in note},
        {name: arrow_type(note[KEY_TYPE]) for name, note in notes.items() if KEY_TYPE in note},
        windows_of(notes.values()),
    )
