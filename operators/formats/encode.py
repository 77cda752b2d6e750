"""Encode rows as messages: JSON objects, or a column that already contains the bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from ...sketches.core.lazy import pl
from .column_types import check_entries
from .jsonable import json_text, json_texts, jsonable, objects


@runtime_checkable
class Encoder(Protocol):
    """Encodes rows as message values, for `Stream.rows_to_kafka`: write your own as a class like this.

    It must be picklable, and is part of a stream's definition.

    >>> import polars as pl
    >>> import streamgauge as sg
    >>> class Lines:
    ...     def check(self, schema):
    ...         pass
    ...     def encode(self, rows):
    ...         return [",".join(map(str, row)).encode() for row in rows.iter_rows()]
    ...     def definition(self):
    ...         return {"encoder": "lines", "version": 1}
    >>> isinstance(Lines(), sg.formats.Encoder), Lines().encode(pl.DataFrame({"user": ["ann"], "n": [7]}))
    (True, [b'ann,7'])
    """

    def check(self, schema: Mapping[str, Any]) -> None:
        """Raise `TypeError` or `ValueError` unless rows of these columns can be encoded."""

    def encode(self, rows: pl.DataFrame) -> Sequence[bytes | None]:
        """A value for each row, None for a tombstone. A row for which it raises becomes a dead letter."""

    def definition(self) -> dict[str, Any]:
        """Its name and its parameters, as plain JSON."""


@dataclass(frozen=True)
class AsJson:
    """See `as_json`."""

    entries: tuple[tuple[str, ...], ...] = ()

    def check(self, schema: Mapping[str, Any]) -> None:
        """See `Encoder`."""
        for place in self.entries:
            check_entries("as_json", pl.Struct(schema), place)

    def encode(self, rows: pl.DataFrame) -> list[bytes | None]:
        """See `Encoder`."""
        return list(json_rows(rows, self.entries))

    def definition(self) -> dict[str, Any]:
        """See `Encoder`."""
        return {"encoder": "json", **({"entries": [list(e) for e in self.entries]} if self.entries else {})}


@dataclass(frozen=True)
class AsBytes:
    """See `as_bytes`."""

    column: str

    def check(self, schema: Mapping[str, Any]) -> None:
        """See `Encoder`."""
        if self.column not in schema:
            raise ValueError(f"as_bytes: {self.column!r} is not a column; there are {', '.join(schema)}")
        if schema[self.column] not in (pl.String, pl.Binary):
            raise TypeError(
                f"as_bytes: {self.column!r} is of type {schema[self.column]}, not String or Binary; make it "
                "one by with_columns or map_batches"
            )

    def encode(self, rows: pl.DataFrame) -> list[bytes | None]:
        """See `Encoder`."""
        return rows[self.column].cast(pl.Binary).to_list()

    def definition(self) -> dict[str, Any]:
        """See `Encoder`."""
        return {"encoder": "bytes", "column": self.column}


def as_json(*, entries: Sequence[Sequence[str]] = ()) -> AsJson:
    """Encode each row as a JSON object with a member per column: the default of `Stream.rows_to_kafka`.

    Times are ISO 8601, bytes hexadecimal, numbers that aren't finite are text (``"NaN"``, ``"Infinity"``),
    and nulls stay null. Choose and rename columns with `select` first.

    A list of structs of ``key`` and ``value`` is written as an object with these keys if `entries` lists its
    place: the column, and the fields within it that lead there, with ``"[]"`` for the elements of a list.

    >>> import polars as pl
    >>> import streamgauge as sg
    >>> sg.as_json().encode(pl.DataFrame({"user": ["ann", None], "spent": [1.5, float("nan")]}))
    [b'{"user":"ann","spent":1.5}', b'{"user":null,"spent":"NaN"}']
    >>> tags = pl.DataFrame({"tags": [[{"key": "a", "value": 1}]]})
    >>> sg.as_json(entries=[["tags"]]).encode(tags)
    [b'{"tags":{"a":1}}']
    """
    return AsJson(tuple(tuple(place) for place in entries))


def as_bytes(column: str) -> AsBytes:
    """Send the text or bytes of a column unchanged; a null is a message without a value, a tombstone.

    For your own formats, compute the column with `map_batches`. Raises `TypeError` for anything but a name.

    >>> import polars as pl
    >>> import streamgauge as sg
    >>> sg.as_bytes("raw").encode(pl.DataFrame({"raw": ["a,1", None]}))
    [b'a,1', None]
    """
    if not isinstance(column, str):
        raise TypeError(f'as_bytes: {column!r} is not a column\'s name; write as_bytes("raw")')
    return AsBytes(column)


def json_bytes(value: Any) -> bytes:
    """A value as compact JSON (`jsonable`); characters that UTF-8 can't encode are escaped."""
    return json_text(value).encode("utf-8", "backslashreplace")


def json_rows(rows: pl.DataFrame, entries: Sequence[tuple[str, ...]] = ()) -> list[bytes]:
    """Each row as a JSON object, as `json_bytes` writes it; `entries` is as in `as_json`."""
    columns = [json_texts(one, [place[1:] for place in entries if place[0] == one.name]) for one in rows]
    return [text.encode() for text in objects(rows.columns, columns)]


def key_bytes(values: Sequence[Any]) -> bytes | None:
    """A message's key: the text of a single value, a JSON array of several, None for none and for a null.

    >>> key_bytes(["en"]), key_bytes([7]), key_bytes(["en", 7]), key_bytes([])
    (b'en', b'7', b'["en",7]', None)
    """
    if len(values) != 1:
        return json_bytes(list(values)) if values else None
    (value,) = values
    if value is None or isinstance(value, bytes):
        return value
    plain = jsonable(value)
    return plain.encode() if isinstance(plain, str) else json_bytes(value)


def keys_bytes(rows: pl.DataFrame, names: Sequence[str]) -> list[bytes | None]:
    """The keys of rows' messages, from these columns, in the form of `key_bytes`."""
    if not names:
        return [None] * rows.height
    if len(names) == 1:
        return [key_bytes([value]) for value in rows[names[0]].to_list()]
    return [f"[{','.join(row)}]".encode() for row in zip(*(json_texts(rows[name]) for name in names))]
