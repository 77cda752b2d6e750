"""Whether a table of windows is final, or more rows may follow for them."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from ..definition.aggregate import METADATA


def is_final(table: pa.Table) -> bool | None:
    """Implements `SketchTable.is_final`."""
    return _about(table.schema).get("final")


def with_final(table: pa.Table, final: bool) -> pa.Table:
    """The table with its finality in its schema's metadata."""
    metadata = {
        **(table.schema.metadata or {}),
        METADATA: json.dumps({**_about(table.schema), "final": final}),
    }
    return table.replace_schema_metadata(metadata)


def _about(schema: pa.Schema) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads((schema.metadata or {}).get(METADATA, b"{}"))
    return fields
