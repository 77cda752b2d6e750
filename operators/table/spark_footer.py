"""Parquet files that both Spark and this package read as tables of sketches.

Spark stores its schema, with each column's metadata, as JSON in the Parquet footer. Arrow stores its own
schema there and ignores Spark's. Files written here contain both, so that ``spark.read.parquet`` finds the
aggregates' definitions; for files that Spark wrote, Spark's schema is used.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...sketches.core.protocol import SketchError
from ...sketches.core.values.event_moments import TIME
from ..definition.aggregate import METADATA, arrow_type
from ..windows.kinds import table_windows
from ..windows.table import TableWindows
from .windows import declared_windows

FOOTER = b"org.apache.spark.sql.parquet.row.metadata"
WINDOWS = "streamgauge.windows"
"""The key of the table's windows in a Spark column's metadata; Arrow has them in its schema's metadata."""
KEY_TYPE = "streamgauge.key"
"""The key of a key column's Arrow type in a Spark column's metadata, if Spark uses a wider type."""

DEFINED = "streamgauge_definition"
"""The column of stored tables with the definition of each row; not part of the table of sketches."""
ROWS = "streamgauge.rows"
"""The metadata key for the common value of all rows in that column."""

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


def to_footer(schema: pa.Schema, definition: str | None = None) -> str | None:
    """A schema in Spark's form, or None if Spark lacks one of its types.

    `definition` is the value of the column `DEFINED`, which is then the last, in all rows.

    >>> to_footer(pa.schema([("n", pa.int64())]))
    '{"type": "struct", "fields": [{"name": "n", "type": "long", "nullable": true, "metadata": {}}]}'
    """
    try:
        struct = _struct(list(schema), declared_windows(schema))
    except KeyError:
        return None
    if definition is not None:
        note = {"name": DEFINED, "type": "string", "nullable": True, "metadata": {ROWS: definition}}
        struct["fields"].append(note)
    return json.dumps(struct)


def type_text(kind: pa.DataType) -> str:
    """A type's name in Spark, or in Arrow if Spark lacks it.

    >>> type_text(pa.uint16()), type_text(pa.large_string()), type_text(pa.uint64())
    ('integer', 'string', 'uint64')
    """
    try:
        text = _type(kind)
    except KeyError:
        return str(kind)
    return text if isinstance(text, str) else json.dumps(text)


def notes_of(field: pa.Field, windows: TableWindows | None) -> dict[str, str]:
    """The metadata of a Spark column: an aggregate's definition and windows, or the type of a widened key."""
    if field.metadata and METADATA in field.metadata:
        notes = {_DEFINITION: field.metadata[METADATA].decode()}
        return notes if windows is None else {**notes, WINDOWS: json.dumps(windows.definition())}
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
    """The windows that the columns' metadata declares; None if it declares none or several."""
    definitions = {note[WINDOWS] for note in notes if WINDOWS in note}
    return table_windows(json.loads(definitions.pop())) if len(definitions) == 1 else None


def _row_definition(metadata: dict[bytes, bytes] | None) -> str | None:
    """The definition that all rows of a file from Spark must have; None if it isn't recorded."""
    fields = json.loads((metadata or {}).get(FOOTER, b'{"fields": []}'))["fields"]
    return next((field["metadata"].get(ROWS) for field in fields if field["name"] == DEFINED), None)


def check_rows(column: Any, definition: str | None) -> None:
    """Raise `SketchError` if rows have another definition than `definition`, or several.

    `column` has the definition of each row; nulls are rows without one, such as rows of files without the
    column.
    """
    if column.null_count == len(column):
        return
    others = [text for text in pc.unique(column).to_pylist() if text is not None and text != definition]
    if definition is None and others:
        definition = others.pop(0)
    if others:
        raise SketchError(
            f"the rows have different definitions and can't be in one table: some have {definition}; "
            f"others have {others[0]}. Tables of both were united or appended; separate them by the "
            f"column {DEFINED}"
        )


def without_definition(table: pa.Table) -> pa.Table:
    """A stored table without the column for definitions. Raises `SketchError` as `check_rows` does."""
    if DEFINED not in table.column_names:
        return table
    check_rows(table[DEFINED], _row_definition(table.schema.metadata))
    return table.drop_columns([DEFINED])


def footer_contents(
    metadata: dict[bytes, bytes] | None,
) -> tuple[dict[str, str], dict[str, pa.DataType], TableWindows | None]:
    """The content of Spark's footer: aggregates' definitions, types of keys, and the windows.

    Only keys whose type in the file may be another are listed: widened ones, and instants, which Spark writes
    as INT96 without a zone.

    If it lacks them, the first two are empty and the windows None.
    """
    fields = json.loads((metadata or {}).get(FOOTER, b'{"fields": []}'))["fields"]
    notes = {field["name"]: field["metadata"] for field in fields}
    instants = {field["name"]: TIME for field in fields if field["type"] == "timestamp"}
    return (
        {name: note[_DEFINITION] for name, note in notes.items() if _DEFINITION in note},
        instants | {name: arrow_type(note[KEY_TYPE]) for name, note in notes.items() if KEY_TYPE in note},
        windows_of(notes.values()),
    )
