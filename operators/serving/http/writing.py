"""Answers as bytes, and back: JSON, and Arrow IPC streams."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pyarrow as pa

from ...table.jsonable import jsonable
from ..answers import Answer

JSON = "application/json"
ARROW = "application/vnd.apache.arrow.stream"

_ABOUT = b"streamgauge.answer"


def as_json(answer: Answer) -> bytes:
    """An answer as JSON: what it stands on, and its rows, each an object."""
    return json.dumps(told(answer), ensure_ascii=False).encode()


def told(answer: Answer) -> dict[str, Any]:
    """An answer as plain JSON values."""
    rows = [jsonable(row) for row in answer.rows.iter_rows(named=True)]
    return {**answer.about(), "rows": rows}


def as_arrow(answer: Answer) -> bytes:
    """An answer as an Arrow IPC stream; its schema's metadata holds what it stands on, as JSON."""
    table = answer.rows.to_arrow(compat_level=pl.CompatLevel.oldest())
    table = table.replace_schema_metadata({_ABOUT: json.dumps(answer.about())})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def from_arrow(data: bytes) -> Answer:
    """The answer that `as_arrow` wrote. Raises `ValueError` for anything else."""
    try:
        table = pa.ipc.open_stream(data).read_all()
        about = json.loads((table.schema.metadata or {})[_ABOUT])
        return Answer.of(about, pl.DataFrame(pl.from_arrow(table)))
    except (pa.ArrowException, KeyError, ValueError) as error:
        raise ValueError(f"this is not an answer of a streamgauge server: {error!r}") from None
