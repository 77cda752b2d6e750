"""JSON columns that differ from the object's members in name, place or type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ....sketches.core.lazy import pl
from ..column_types import check_entries, check_polars_types
from ..field_paths import Path
from ..text.values import check_types
from .nested import Places, entries_of


@dataclass(frozen=True)
class JsonField:
    """The source of a JSON column; created by `field`."""

    path: Path
    kind: Any
    text: bool = False
    entries: Places = ()

    @property
    def places(self) -> Any:
        """The places of objects with arbitrary keys, in the form of a definition."""
        return True if self.entries == ((),) else [list(place) for place in self.entries]


def field(
    path: str | Sequence[str],
    kind: Any,
    *,
    text: bool = False,
    entries: bool | Sequence[Sequence[str]] = False,
) -> JsonField:
    """A column of `json` by the path of its member: ``json({"who": field("actor.id", pl.String)})``.

    A path leads through objects, with names separated by dots, or as a list if a name contains dots. If an
    object on the way is missing or null, the column is null.

    With ``text=True`` a value may also be a string, such as ``"9.75"`` for a Float64 or a Decimal, and for a
    String column numbers and Booleans become their JSON text. Without it, both are refused: nothing is
    converted unless you request it.

    With ``entries=True`` the member is an object with any keys and values of type `kind`. It becomes a list
    of structs with the fields ``key`` and ``value``, in the object's order. If a key occurs twice, the last
    value counts. Within `kind`, such lists are read from objects at the places that `entries` lists: each is
    the fields that lead there, with ``"[]"`` for the elements of a list.

    Raises `TypeError` for an invalid path and for types that can't be parsed from text, and `ValueError` for
    both options together, and for a place in `entries` that has no list of such structs.

    >>> import polars as pl
    >>> import streamgauge as sg
    >>> price = sg.field("price", pl.Float64, text=True)
    >>> prices = sg.json({"who": sg.field("actor.id", pl.String), "price": price})
    >>> values = [b'{"actor":{"id":"ann"},"price":"9.75"}', b'{"price":7}', b'{"price":"cheap"}']
    >>> found = prices.decode(sg.formats.Messages.of(values))
    >>> found.frame.rows(), found.reasons
    ([('ann', 9.75), (None, 7.0)], ['"price" is "cheap", not Float64'])
    >>> tags = sg.json({"tags": sg.field("tags", pl.Int64, entries=True)})
    >>> found = tags.decode(sg.formats.Messages.of([b'{"tags":{"a":1,"b":null}}', b'{"tags":{"a":"x"}}']))
    >>> found.frame["tags"].to_list()
    [[{'key': 'a', 'value': 1}, {'key': 'b', 'value': None}]]
    >>> print(found.reasons[0])
    "tags['a']" is a string, not Int64
    >>> counts = pl.List(pl.Struct({"key": pl.String, "value": pl.Int64}))
    >>> days = sg.json({"days": sg.field("days", pl.List(counts), entries=[["[]"]])})
    >>> days.decode(sg.formats.Messages.of([b'{"days":[{"a":1},{}]}'])).frame["days"].to_list()
    [[[{'key': 'a', 'value': 1}], []]]
    """
    names = tuple(path.split(".")) if isinstance(path, str) else tuple(path)
    if not names or not all(isinstance(name, str) for name in names):
        raise TypeError(f'field: path must be such as "actor.id" or ["actor", "id"], got {path!r}')
    if text and entries:
        raise ValueError(
            "field: text=True is for single values, and entries=True for objects; pass one of them"
        )
    if entries:
        check_polars_types("field", {".".join(names): kind})
        whole = kind() if isinstance(kind, type) else kind
        if entries is True:
            return JsonField(names, entries_of(whole), entries=((),))
        places = tuple(tuple(place) for place in entries)
        for place in places:
            check_entries("field", whole, place)
        return JsonField(names, whole, entries=places)
    if text:
        kind = check_types("field", {".".join(names): kind})[".".join(names)]
    return JsonField(names, kind, text)


def nested(fields: Mapping[str, JsonField], lowered: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of the objects that contain the columns' members, with types that the kernel reads.

    Raises `ValueError` if two columns read one member in two ways.
    """
    tree: dict[str, Any] = {}
    for column, json_field in fields.items():
        at = tree
        for name in json_field.path[:-1]:
            at = at.setdefault(name, {})
            if not isinstance(at, dict):
                raise _twice(column, json_field)
        kind = lowered[column]
        if at.setdefault(json_field.path[-1], kind) is not kind and at[json_field.path[-1]] != kind:
            raise _twice(column, json_field)
    return tree


def _twice(column: str, json_field: JsonField) -> ValueError:
    path = ".".join(json_field.path)
    return ValueError(
        f"json: the column {column!r} and another one read {path!r} differently: whole and in parts, or as "
        "two types; read it once, and derive the other column from it with with_columns"
    )


def as_types(tree: Mapping[str, Any]) -> dict[str, Any]:
    """A tree of members as a schema, with nested objects as structs."""
    return {
        name: pl.Struct(as_types(inner)) if isinstance(inner, dict) else inner for name, inner in tree.items()
    }


def at_path(frame: pl.DataFrame, path: Path) -> pl.Series:
    """The member at a path; null if an object on the way is null."""
    member = frame[path[0]]
    for name in path[1:]:
        member = member.struct.field(name)
    return member
