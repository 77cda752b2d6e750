"""Unions of several types, which fastavro returns as bare values: put into a struct with a field per type.

On request, fastavro returns the type name of a record, enum or fixed within any union in a pair; for other
types, the Python type shows which of a union's types a value has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .schema import Names, branch_name, branches, kind_of, resolved, single, walk

Shape = Callable[[Any], Any]

_KINDS = {
    bool: ("boolean",),
    int: ("long", "int"),
    float: ("double", "float"),
    str: ("string",),
    bytes: ("bytes",),
    list: ("array",),
    dict: ("map",),
}


def has_choices(root: Any, names: Names) -> bool:
    """Whether a schema has a union of more than one type besides null."""
    return any(
        isinstance(node, list) and single(node) is None and branches(node) for node, _ in walk(root, names)
    )


def shaping(loaded: tuple[Any, Names], needed: bool) -> Shape | None:
    """A function that adapts fastavro's values to their Arrow types; None if they fit already."""
    return _shape(*loaded) if needed else None


def _shape(node: Any, names: Names) -> Shape | None:
    node = resolved(node, names)
    if isinstance(node, list):
        return _of_union(node, names)
    kind = kind_of(node)
    if kind == "record":
        return _of_record({f["name"]: _shape(f["type"], names) for f in node["fields"]})
    if kind in ("enum", "fixed"):
        return _bare
    if kind == "string" and isinstance(node, dict) and node.get("logicalType") == "uuid":
        return str
    if kind == "array" and (items := _shape(node["items"], names)) is not None:
        return _of_array(items)
    if kind == "map" and (values := _shape(node["values"], names)) is not None:
        return _of_map(values)
    return None


def _bare(value: Any) -> Any:
    """A value without its type's name."""
    return value[1] if type(value) is tuple else value


def _of_array(inner: Shape) -> Shape:
    return lambda values: [inner(value) for value in values]


def _of_map(inner: Shape) -> Shape:
    return lambda values: {key: inner(value) for key, value in values.items()}


def _of_record(fields: dict[str, Shape | None]) -> Shape:
    shaped = {name: shape for name, shape in fields.items() if shape is not None}

    def shape(value: Any) -> Any:
        record = _bare(value)
        return {**record, **{name: inner(record[name]) for name, inner in shaped.items()}}

    return shape


def _of_union(node: list[Any], names: Names) -> Shape | None:
    one = single(node)
    if one is not None or not branches(node):
        inner = _shape(one, names) if one is not None else None
        return None if inner is None else lambda value: None if value is None else inner(value)
    types = {branch_name(resolved(b, names)): resolved(b, names) for b in branches(node)}
    shapes = {name: _shape(kind, names) for name, kind in types.items()}
    full = {kind["name"]: name for name, kind in types.items() if isinstance(kind, dict) and "name" in kind}
    decimals = [n for n, k in types.items() if isinstance(k, dict) and k.get("logicalType") == "decimal"]

    def shape(value: Any) -> Any:
        if value is None:
            return None
        if type(value) is tuple:
            name = full[value[0]] if value[0] in full else value[0].rpartition(".")[2]
        else:
            kinds = _KINDS.get(type(value), tuple(decimals))
            name = next(kind for kind in kinds if kind in types)
        inner = shapes[name]
        return {name: value if inner is None else inner(value)}

    return shape
