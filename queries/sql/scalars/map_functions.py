"""Functions of MAPs, which are lists of structs of a key and a value."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from .function import LIST, TEXT, Function
from .scalars import Scalar, Scalars, a_type, map_value, plain_type


def _map(one: Scalar, name: str) -> None:
    if map_value(one.type) is None:
        raise ValueError(f"{name} takes a MAP, got {a_type(one.type)}")


def _parts(make: Scalars, one: Scalar, part: str) -> Scalar:
    text = f"{one.text}.list.eval(pl.element().struct.field({part!r}))"
    return make.made(one.expr.list.eval(pl.element().struct.field(part)), text)


def map_element(make: Scalars, one: Scalar, key: Scalar) -> Scalar:
    """The value for a key; null if the map doesn't have it."""
    if not isinstance(key.literal, str):
        raise ValueError(
            "the key of a MAP must be a constant text: m['key']; for other keys write EXPLODE(MAP_KEYS(m)) "
            "beside EXPLODE(MAP_VALUES(m)), and filter by WHERE"
        )
    matching = pl.element().filter(pl.element().struct.field("key") == key.literal)
    text = f"pl.element().filter(pl.element().struct.field('key') == {key.literal!r})"
    entries = make.made(one.expr.list.eval(matching), f"{one.text}.list.eval({text})")
    value = make.call(make.call(entries, "list.get", 0, null_on_oob=True), "struct.field", "value")
    return replace(value, type=map_value(one.type))


def _keys(make: Scalars, one: Scalar) -> Scalar:
    _map(one, "MAP_KEYS")
    return _parts(make, one, "key")


def _values(make: Scalars, one: Scalar) -> Scalar:
    _map(one, "MAP_VALUES")
    return _parts(make, one, "value")


def _entries(make: Scalars, one: Scalar) -> Scalar:
    _map(one, "MAP_ENTRIES")
    return replace(one, type=plain_type(one.type))


def _contains_key(make: Scalars, one: Scalar, key: Scalar) -> Scalar:
    _map(one, "MAP_CONTAINS_KEY")
    return make.call(_parts(make, one, "key"), "list.contains", key)


MAP_FUNCTIONS: dict[str, Function] = {
    "MAP_KEYS": Function(_keys, (LIST,)),
    "MAP_VALUES": Function(_values, (LIST,)),
    "MAP_ENTRIES": Function(_entries, (LIST,)),
    "MAP_CONTAINS_KEY": Function(_contains_key, (LIST, TEXT)),
}
"""Functions by upper-case names."""
