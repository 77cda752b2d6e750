"""``ASSERT VALUES``: compares the rows that a stream or table must have next with those that arrived."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import polars as pl

from ....operators.formats.jsonable import jsonable
from ....operators.formats.messages import Messages
from ..errors import error_at
from ..plan.catalog import Relation
from .row_reader import ReceivedMessage


def check_assertion(
    relation: Relation,
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    messages: Sequence[ReceivedMessage],
    begin: int,
    at: Any,
) -> None:
    """Raise `SqlError` unless the first messages are these rows; `begin` is the number of earlier ones."""
    given = messages[: len(rows)]
    decoded = relation.decoder().decode(Messages.of([one.value for one in given])).frame
    keys = [None if one.key is None else one.key.decode() for one in given]
    if relation.key and decoded.height == len(keys):
        key = pl.Series(relation.key, keys, pl.String).cast(relation.columns[relation.key])
        decoded = decoded.with_columns(key)
    came = [[_plain(value) for value in row] for row in decoded.select(columns).rows()]
    for number, row in enumerate([_plain(value) for value in row] for row in rows):
        if number >= len(came):
            raise error_at(at, f"{relation.name} has no more rows, expected {tuple(row)}")
        if not _same(came[number], row):
            place = f"row {begin + number + 1} of {relation.name}"
            raise error_at(at, f"{place} must be {tuple(row)}, got {tuple(came[number])}")


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        value = value.replace(tzinfo=None)
    if isinstance(value, str):
        try:
            return (
                datetime.fromisoformat(value).replace(tzinfo=None).isoformat() if value[:2] == "20" else value
            )
        except ValueError:
            return value
    return jsonable(value)


def _same(one: list[Any], other: list[Any]) -> bool:
    pairs = list(zip(one, other))
    return all(
        abs(a - b) <= 1e-9 * max(abs(a), abs(b))
        if isinstance(a, float) and isinstance(b, int | float)
        else a == b
        for a, b in pairs
    )
