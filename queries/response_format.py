"""Serialising answers, and parsing them: JSON, and Arrow IPC streams."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import polars as pl
import pyarrow as pa

from ..operators.formats.jsonable import jsonable
from .answers.answers import Answer

JSON = "application/json"
ARROW = "application/vnd.apache.arrow.stream"

_ABOUT = b"streamgauge.answer"


def json_bytes(value: Any) -> bytes:
    """Plain values as JSON. Lone surrogates, which UTF-8 can't encode, stay as JSON escapes."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace")


def as_json(answer: Answer) -> bytes:
    """An answer as JSON: what it is based on, and its rows, each an object."""
    return json_bytes(to_dict(answer))


def to_dict(answer: Answer) -> dict[str, Any]:
    """An answer as plain JSON values."""
    rows = [jsonable(row) for row in answer.rows.iter_rows(named=True)]
    return {**answer.about(), "rows": rows}


def sql_json(answer: Answer) -> bytes:
    """An answer to a query in SQL as JSON: columns, rows as lists in their order, and bounds by column."""
    rows = [[jsonable(value) for value in row] for row in answer.rows.iter_rows()]
    bounds = {name: jsonable([list(pair) for pair in pairs]) for name, pairs in answer.bounds.items()}
    about = {"columns": answer.rows.columns, "rows": rows, "bounds": bounds or None}
    return json_bytes({**answer.about(), **about})


def as_arrow(answer: Answer) -> bytes:
    """An answer as an Arrow IPC stream; its schema's metadata has what it is based on, as JSON.

    Bounds of a query in SQL are in additional columns after the query's.
    """
    about = answer.about()
    rows = answer.rows
    if answer.bounds:
        about["bounds"] = list(answer.bounds)
        edges = [
            pl.Series(column, [pair[side] for pair in pairs], dtype=rows.schema[name])
            for name, pairs in answer.bounds.items()
            for side, column in enumerate(_bound_columns(name))
        ]
        rows = rows.with_columns(edges)
    table = rows.to_arrow(compat_level=pl.CompatLevel.oldest())
    table = table.replace_schema_metadata({_ABOUT: json.dumps(about)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def from_arrow(data: bytes) -> Answer:
    """The answer that `as_arrow` wrote. Raises `ValueError` for anything else."""
    try:
        table = pa.ipc.open_stream(data).read_all()
        about = json.loads((table.schema.metadata or {})[_ABOUT])
        rows = pl.DataFrame(pl.from_arrow(table))
        bounds = {
            name: [list(pair) for pair in rows.select(_bound_columns(name)).rows()]
            for name in about.get("bounds", ())
        }
        shown = rows.drop(column for name in bounds for column in _bound_columns(name))
        return replace(Answer.of(about, shown), bounds=bounds)
    except (pa.ArrowException, KeyError, ValueError) as error:
        raise ValueError(f"this is not an answer of a streamgauge server: {error!r}") from None


def _bound_columns(name: str) -> tuple[str, str]:
    return f"{name} (lower bound)", f"{name} (upper bound)"
