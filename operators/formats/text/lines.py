"""Common parts of text decoders: UTF-8, line ends, several records in a message."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from ..decode import TOMBSTONE, Decoded
from ..field_paths import listed
from ..messages import Messages
from ..reasons import preceded, reason_of
from .values import typed_rows

NOT_TEXT = "not UTF-8 text"

Cells = Sequence[Sequence[str | None]]
"""Records, each a list of its columns' strings."""


def check_many(who: str, many: Any) -> None:
    """Raise `TypeError` for an invalid name of the column for records."""
    if many is not None and (not isinstance(many, str) or not many):
        raise TypeError(f'{who}: many must name the column of records, as in many="records", got {many!r}')


def texts_of(messages: Messages) -> tuple[pl.Series, np.ndarray, dict[int, str]]:
    """The texts of messages without their last line end, their numbers, and why other messages have none."""
    texts = messages.text.str.strip_suffix("\n").str.strip_suffix("\r")
    rows = np.flatnonzero(texts.is_not_null().to_numpy())
    gone = np.flatnonzero(texts.is_null().to_numpy())
    reasons = {row: TOMBSTONE if messages.is_null[row] else NOT_TEXT for row in gone.tolist()}
    return texts.filter(texts.is_not_null()), rows, reasons


def refusing(frame: pl.DataFrame, rows: np.ndarray, refused: Mapping[int, str]) -> Decoded:
    """The rows of these messages, except the refused ones, with or without a row."""
    gone = np.array(sorted(refused), np.int64)
    kept = ~np.isin(rows, gone)
    frame = frame if kept.all() else frame.filter(pl.Series(kept))
    return Decoded(frame, rows[kept] if len(gone) else None, gone, [refused[row] for row in gone.tolist()])


def records(
    messages: Messages, read: Callable[[str], Cells], schema: Mapping[str, Any], many: str
) -> Decoded:
    """One row per message: the list of the records that `read` finds in its text, in the types of a schema.

    `read` raises `ValueError` for a text that it can't read. A message is refused for its first invalid
    record.
    """
    texts, rows, refused = texts_of(messages)
    cells: list[Sequence[str | None]] = []
    lengths = []
    for row, text in zip(rows.tolist(), texts):
        try:
            of_message = read(text)
        except ValueError as error:
            refused[row] = reason_of(error)
            of_message = []
        cells += of_message
        lengths.append(len(of_message))
    flat = pl.DataFrame(cells, schema=dict.fromkeys(schema, pl.String), orient="row")
    frame, wrong = typed_rows(flat, schema)
    owner = np.repeat(np.arange(len(rows)), lengths)
    first = np.cumsum([0, *lengths])
    for at in sorted(wrong):
        place = int(owner[at])
        refused.setdefault(
            int(rows[place]), preceded(f"record {at - int(first[place]) + 1}: ", wrong[at], "")
        )
    return refusing(listed(frame, many, lengths), rows, refused)
