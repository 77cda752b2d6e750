"""Inferring the CREATE statement for a topic's messages, if it was written without columns."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import polars as pl

from ..parse.dialect import is_plain_name
from ..parse.statements import CreateSource
from ..scalars.scalars import sql_type

SAMPLED = 1_000
"""The number of messages to examine."""
_RECENT_MS = range(946_684_800_000, 4_102_444_800_000)
"""Milliseconds of times between 2000 and 2100."""
_TIME_NAMES = re.compile(r"(^|_)(time|timestamp|ts|at|date|created|occurred)(_|$)|time$|_at$", re.I)


def inferred_create(node: CreateSource, messages: Iterable[Sequence[Any]]) -> str:
    """The statement with the columns found in messages. Raises `ValueError` if they can't be inferred.

    `messages` are as `Engine.messages` returns them: partition, offset, time, key, value.
    """
    rows: list[dict[str, Any]] = []
    keys: list[str | None] = []
    read = 0
    for _, _, _, key, value in messages:
        read += value is not None
        try:
            row = json.loads(value) if value is not None else None
        except ValueError:
            continue
        if isinstance(row, dict):
            rows.append(row)
            keys.append(key)
    topic = node.options["KAFKA_TOPIC"]
    if not read:
        raise ValueError(
            f"{node.name} must name its columns: the topic {topic} has no message to read them from"
        )
    if not rows:
        raise ValueError(
            f"{node.name} must name its columns, such as (userid VARCHAR, viewtime BIGINT): no message of "
            f"{topic} is a JSON object; PRINT '{topic}' shows what is in it"
        )
    types = column_types(rows)
    columns = [f"{_quoted(name)} {kind}" for name, kind in types.items()]
    if node.kind == "table" and "KEY" not in node.options:
        own = "key" if "key" not in types else "message_key"
        columns.insert(0, f"{own} VARCHAR PRIMARY KEY")
    options = {name: word.value for name, word in node.options.items()}
    options.setdefault("VALUE_FORMAT", "JSON")
    if node.kind == "stream" and "TIMESTAMP" not in options and (time := _time_column(types, rows)):
        options["TIMESTAMP"] = time
    given = ", ".join(
        "{}='{}'".format(name, str(value).replace("'", "''")) for name, value in options.items()
    )
    return f"CREATE {node.kind.upper()} {_quoted(str(node.name))} ({', '.join(columns)}) WITH ({given});"


def column_types(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The types of the fields of JSON objects, by name.

    >>> column_types([{"n": 1, "tags": ["x"]}, {"n": 1.5, "by": {"id": 7}, "gone": None}])
    {'n': 'DOUBLE', 'tags': 'ARRAY<VARCHAR>', 'by': 'STRUCT<id BIGINT>', 'gone': 'VARCHAR'}
    """
    values: dict[str, list[Any]] = {}
    for row in rows:
        for name, value in row.items():
            values.setdefault(name, []).append(value)
    return {name: _type(given) for name, given in values.items()}


def _type(values: Sequence[Any]) -> str:
    """The type that can hold all of some values; text if there is none, as for values of several kinds."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return sql_type(pl.Boolean())
    if kinds == {int}:
        return sql_type(pl.Int64())
    if kinds and kinds <= {int, float}:
        return sql_type(pl.Float64())
    if kinds == {list}:
        return f"ARRAY<{_type([one for value in values if value is not None for one in value])}>"
    if kinds == {dict}:
        fields = column_types([value for value in values if value])
        if fields:
            return f"STRUCT<{', '.join(f'{_quoted(name)} {kind}' for name, kind in fields.items())}>"
    return sql_type(pl.String())


def _time_column(types: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> str:
    """The first column with a typical name for times that always holds one; empty if there is none."""
    for name, kind in types.items():
        values = [row.get(name) for row in rows]
        if not _TIME_NAMES.search(name):
            continue
        if kind == "BIGINT" and all(isinstance(one, int) and one in _RECENT_MS for one in values):
            return name
        if kind == "VARCHAR" and all(map(_is_time, values)):
            return name
    return ""


def _is_time(value: Any) -> bool:
    try:
        return bool(datetime.fromisoformat(value))
    except (TypeError, ValueError):
        return False


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return name if is_plain_name(name) else f'"{doubled}"'
