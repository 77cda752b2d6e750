"""Plain text as columns: by a regular expression with named groups, or as a whole.

The expressions are Rust's, which Polars runs: they have no look-around and no back-references, and take time
in proportion to the text, so no message can block a stream.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from ..decode import TOMBSTONE, Decoded
from ..field_paths import listed
from ..messages import Messages
from ..reasons import Reason, preceded
from .lines import check_many, refusing, texts_of
from .values import check_types, typed, typed_rows

_SHOWN = 60


def text(pattern: str, schema: Mapping[str, Any], *, many: str | None = None) -> Text:
    """A decoder of text by a regular expression; its named groups are columns of these Polars types.

    The expression is searched in a message without its line end: begin it with ``^`` and end it with ``$`` to
    match the whole. A group that doesn't take part in a match is null; the others are parsed as their types,
    as by `csv`. With ``many="lines"`` a message has any number of lines, each of which must match, and they
    become a list in a column of that name; ``.explode("lines")`` makes rows of them.

    A message that doesn't match, or has a group that isn't of its type, is refused. Raises `ValueError` for
    an expression that isn't valid in Rust and for columns without a group, `TypeError` for types that can't
    be parsed from text.

    >>> import streamgauge as sg
    >>> pattern = r"^(?<ip>\\S+) (?<status>\\d{3})( (?<ms>\\d+))?$"
    >>> log = sg.text(pattern, {"ip": pl.String, "status": pl.Int16, "ms": pl.Int64})
    >>> found = log.decode(sg.formats.Messages.of([b"::1 200 17", b"::1 404", b"restarted"]))
    >>> found.frame.rows(), found.reasons
    ([('::1', 200, 17), ('::1', 404, None)], ["no match: 'restarted'"])
    """
    fields = check_types("text", schema)
    check_many("text", many)
    if not isinstance(pattern, str):
        raise TypeError(f"text: the pattern must be a string, got {pattern!r}")
    try:
        groups = pl.Series([""]).str.extract_groups(pattern).dtype
    except pl.exceptions.PolarsError as error:
        raise ValueError(f"text: {pattern!r} is not a regular expression of Rust: {error}") from None
    named = [field.name for field in groups.fields if not field.name.isdigit()]  # type: ignore[attr-defined]
    missing = [name for name in fields if name not in named]
    if missing:
        known = f"it has {', '.join(named)}" if named else "it has none"
        raise ValueError(
            f"text: {', '.join(missing)} is not a named group of the expression, as in "
            f"(?<{missing[0]}>…); {known}"
        )
    return Text(pattern, fields, many)


@dataclass(frozen=True)
class Text:
    """A `Decoder` of text, created by `text`. `fields` are the columns of a match."""

    pattern: str
    fields: Mapping[str, Any]
    many: str | None

    @property
    def schema(self) -> dict[str, Any]:
        """The Polars types of its columns."""
        return dict(self.fields) if self.many is None else {self.many: pl.List(pl.Struct(dict(self.fields)))}

    def decode(self, messages: Messages) -> Decoded:
        """The rows of a batch, and why the other messages were refused."""
        texts, rows, refused = texts_of(messages)
        if self.many is None:
            fields, gone = self._matches(texts)
            refused |= {int(rows[at]): reason for at, reason in gone.items()}
            return typed(refusing(fields, rows, refused), self.fields)
        lines = texts.str.split("\n").list.eval(pl.element().str.strip_suffix("\r"))
        lengths = np.where((texts == "").to_numpy(), 0, lines.list.len().to_numpy())
        flat = lines.filter(texts != "").explode() if len(texts) else texts
        fields, gone = self._matches(flat)
        frame, wrong = typed_rows(fields, self.fields)
        owner, first = np.repeat(np.arange(len(rows)), lengths), np.concatenate([[0], np.cumsum(lengths)])
        for at, reason in sorted({**wrong, **gone}.items()):
            place = int(owner[at])
            refused.setdefault(int(rows[place]), preceded(f"line {at - int(first[place]) + 1}: ", reason, ""))
        return refusing(listed(frame, self.many, lengths.tolist()), rows, refused)

    def _matches(self, texts: pl.Series) -> tuple[pl.DataFrame, dict[int, str]]:
        """The groups of each text, and why other texts don't match."""
        groups = texts.str.extract_groups(self.pattern).struct
        frame = pl.DataFrame([groups.field(name) for name in self.fields])
        missed = np.flatnonzero(~texts.str.contains(self.pattern).to_numpy().astype(bool))
        return frame, {at: Reason("no match", f"no match: {texts[at][:_SHOWN]!r}") for at in missed.tolist()}


def raw(column: str = "value", kind: Any = pl.Binary) -> Raw:
    """A decoder that returns messages unchanged in one column: bytes, or text with ``kind=pl.String``.

    As text, messages that aren't UTF-8 are refused. Raises `TypeError` for another type.

    >>> import streamgauge as sg
    >>> sg.raw("line", pl.String).decode(sg.formats.Messages.of([b"a b", bytes([255])])).frame.rows()
    [('a b',)]
    """
    if kind not in (pl.Binary, pl.String):
        raise TypeError(f"raw: the type of {column!r} must be pl.Binary or pl.String, got {kind}")
    if not isinstance(column, str) or not column:
        raise TypeError(f'raw: {column!r} is not a column\'s name; write raw("line", pl.String)')
    return Raw(column, kind)


@dataclass(frozen=True)
class Raw:
    """A `Decoder` of whole values, created by `raw`."""

    column: str
    kind: Any

    @property
    def schema(self) -> dict[str, Any]:
        """Its only column."""
        return {self.column: self.kind}

    def definition(self) -> dict[str, Any]:
        """Empty: its columns are recorded beside it."""
        return {}

    def decode(self, messages: Messages) -> Decoded:
        """The rows of a batch, and why the other messages were refused."""
        values = pl.Series(self.column, pl.from_arrow(messages.value))
        rows = np.arange(len(messages))
        if self.kind == pl.Binary:
            gone = dict.fromkeys(np.flatnonzero(messages.is_null).tolist(), TOMBSTONE)
            return refusing(pl.DataFrame([values.cast(pl.Binary)]), rows, gone)
        column = messages.text.alias(self.column)
        gone = {
            row: TOMBSTONE if messages.is_null[row] else "not UTF-8 text"
            for row in np.flatnonzero(column.is_null().to_numpy()).tolist()
        }
        return refusing(pl.DataFrame([column]), rows, gone)
