"""CSV messages as typed columns.

Polars splits all lines without quotes at once; Python's `csv` reads the others one by one, so an unclosed
quote affects only its own message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from csv import Error as CsvError
from dataclasses import dataclass
from io import StringIO
from typing import Any

import numpy as np
import polars as pl

from ..decode import Decoded
from ..messages import Messages
from ..reasons import Reason, reason_of
from .csv_reader import csv_reader
from .lines import Cells, check_many, records, refusing, texts_of
from .values import check_types, typed


def csv(
    schema: Mapping[str, Any],
    *,
    delimiter: str = ",",
    quote: str | None = '"',
    null_values: Sequence[str] = ("",),
    header: bool = False,
    many: str | None = None,
) -> Csv:
    """A decoder of CSV into columns of these Polars types, by position or, with a `header`, by name.

    A message is one record. With ``header=True`` its first line names the fields, in any order; additional
    fields are skipped. With ``many="records"`` it has any number of records, one per line, which become a
    list in a column of that name; ``.explode("records")`` makes rows of them.

    Between `quote` characters, a delimiter or the end of a line is text, and two quotes are one. A field that
    is one of `null_values` is null. Times are read as ISO 8601, Booleans are ``true`` and ``false``, and a
    number must fit its type whole. A message with too many or too few fields, or with a field of another
    type, is refused with the reason. Raises `TypeError` for types that can't be parsed from text, and
    `ValueError` for a delimiter or quote that isn't one character.

    >>> import streamgauge as sg
    >>> trades = sg.csv({"symbol": pl.String, "price": pl.Float64}, delimiter=";")
    >>> found = trades.decode(sg.formats.Messages.of([b"ACME;9.75", b'"A;B";', b"ACME;cheap", b"ACME"]))
    >>> found.frame.rows(), found.refused.tolist()
    ([('ACME', 9.75), ('A;B', None)], [2, 3])
    >>> found.reasons
    ['"price" is \\'cheap\\', not Float64', '1 field, where 2 were expected']
    """
    for name, mark in (("delimiter", delimiter), ("quote", quote)):
        fits = isinstance(mark, str) and len(mark) == 1 and mark not in "\r\n"
        if not fits and not (name == "quote" and mark is None):
            raise ValueError(f"csv: the {name} must be one character, such as ';', got {mark!r}")
    if delimiter == quote:
        raise ValueError(f"csv: delimiter and quote are both {delimiter!r}")
    if isinstance(null_values, str):
        raise TypeError(f'csv: null_values must be a list of strings, as in ["", "NA"], got {null_values!r}')
    check_many("csv", many)
    return Csv(check_types("csv", schema), delimiter, quote, tuple(null_values), header, many)


@dataclass(frozen=True)
class Csv:
    """A `Decoder` of CSV, created by `csv`. `fields` are the columns of a record."""

    fields: Mapping[str, Any]
    delimiter: str
    quote: str | None
    null_values: tuple[str, ...]
    header: bool
    many: str | None

    @property
    def schema(self) -> dict[str, Any]:
        """The Polars types of its columns."""
        return dict(self.fields) if self.many is None else {self.many: pl.List(pl.Struct(dict(self.fields)))}

    def decode(self, messages: Messages) -> Decoded:
        """The rows of a batch, and why the other messages were refused."""
        if self.many is not None:
            return records(messages, self._records, self.fields, self.many)
        texts, rows, refused = texts_of(messages)
        marks = [mark for mark in (self.quote, "\n", "\r") if mark is not None]
        alone = texts.str.contains_any(marks) if not self.header else pl.Series([True] * len(texts))
        plain = (~alone).to_numpy() if len(alone) else np.empty(0, bool)
        split = texts.filter(pl.Series(plain)).str.split(self.delimiter)
        short = np.flatnonzero((split.list.len() != len(self.fields)).to_numpy())
        columns = [split.list.get(at, null_on_oob=True) for at in range(len(self.fields))]
        for at in short.tolist():
            refused[int(rows[plain][at])] = self._width(len(split[at]))
        quoted: list[list[str | None]] = []
        nothing: list[str | None] = [None] * len(columns)
        for at in np.flatnonzero(~plain).tolist():
            try:
                cells = self._records(texts[at])
                if len(cells) != 1:
                    raise ValueError(
                        Reason(
                            "not one record in a message",
                            f"{len(cells)} records in a message, where 1 was expected",
                        )
                    )
                quoted.append(list(cells[0]))
            except ValueError as error:
                refused[int(rows[at])] = reason_of(error)
                quoted.append(nothing)
        if quoted:
            order = np.argsort(np.concatenate([np.flatnonzero(plain), np.flatnonzero(~plain)]))
            columns = [
                pl.concat([column, pl.Series(cells, dtype=pl.String)])[order]
                for column, cells in zip(columns, zip(*quoted))
            ]
        frame = pl.DataFrame(dict(zip(self.fields, columns)))
        return typed(self._without_nulls(refusing(frame, rows, refused)), self.fields)

    def _without_nulls(self, decoded: Decoded) -> Decoded:
        nulls = pl.Series(self.null_values, dtype=pl.String)
        frame = decoded.frame.with_columns(
            pl.when(~pl.all().is_in(nulls.implode())).then(pl.all()).name.keep()
        )
        return Decoded(frame, decoded.rows, decoded.refused, decoded.reasons)

    def _records(self, text: str) -> Cells:
        """The records of a text, nulls among them. Raises `ValueError`."""
        lines = StringIO(text.removeprefix("\ufeff") if self.header else text, newline="")
        reader = csv_reader(lines, self.delimiter, self.quote)
        try:
            rows = [row or [""] for row in reader if row or len(self.fields) == 1]
        except CsvError as error:
            raise ValueError(Reason("not CSV", f"not CSV: line {reader.line_num}: {error}")) from None
        places = list(range(len(self.fields)))
        width = len(places)
        if self.header:
            names = rows.pop(0) if rows else []
            missing = [name for name in self.fields if name not in names]
            if missing:
                absent = f"the first line names no {', '.join(missing)}"
                raise ValueError(Reason(absent, f"{absent}, only {', '.join(names)[:200]}"))
            places, width = [names.index(name) for name in self.fields], len(names)
        for row in rows:
            if len(row) != width:
                raise ValueError(self._width(len(row), width))
        return [[None if row[at] in self.null_values else row[at] for at in places] for row in rows]

    def _width(self, count: int, expected: int | None = None) -> Reason:
        wanted = len(self.fields) if expected is None else expected
        fields = "field" if count == 1 else "fields"
        return Reason("another number of fields", f"{count} {fields}, where {wanted} were expected")
