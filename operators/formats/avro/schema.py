"""Avro schemas: the columns that they describe, and their form for fastavro.

Times are read as the integers that Avro stores, which is faster than Python's datetimes and also works for
the year 12000; Arrow's types give them their meaning. Decimals are read by fastavro.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

ROOT = "value"
"""The column for a schema that is not a record."""

_PLAIN: dict[str, pa.DataType] = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
    "fixed": pa.binary(),
}
_TIMES: dict[tuple[str, str], pa.DataType] = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time32("ms"),
    ("long", "time-micros"): pa.time64("us"),
    ("long", "timestamp-millis"): pa.timestamp("ms", "UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", "UTC"),
    ("long", "timestamp-nanos"): pa.timestamp("ns", "UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
    ("long", "local-timestamp-nanos"): pa.timestamp("ns"),
}
_MOST_DIGITS = 38

Names = dict[str, Any]
"""Named types (records, enums, fixed) by their full names."""


def load(given: Any, references: Iterable[Any] = ()) -> tuple[Any, Names]:
    """A schema with full names, each type defined where it is first used, and its named types.

    `given` is JSON text or its parsed value; `references` are schemas whose names it uses, in order. Raises
    `ValueError` for anything but an Avro schema.
    """
    from fastavro import parse_schema
    from fastavro.schema import SchemaParseException, UnknownType

    names: Names = {}
    try:
        schema = None
        for one in (*references, given):
            schema = parse_schema(_read(one), names)
    except (SchemaParseException, UnknownType, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a schema of Avro: {type(error).__name__}: {error}") from None
    except RecursionError:
        raise ValueError("not a schema of Avro that can be read: it is nested too deep") from None
    names = {name: _bare(kind) for name, kind in names.items()}
    return whole(_bare(schema), names, set()), names


def _read(given: Any) -> Any:
    if not isinstance(given, str):
        return given
    try:
        return json.loads(given)
    except ValueError:
        return given.strip()


def _bare(node: Any) -> Any:
    """A schema without fastavro's marks and without documentation."""
    if isinstance(node, Mapping):
        members = {key: value if key == "default" else _bare(value) for key, value in node.items()}
        return {key: value for key, value in members.items() if key != "doc" and not key.startswith("__")}
    return [_bare(value) for value in node] if isinstance(node, list) else node


def kind_of(node: Any) -> str:
    """The type of a node, or the name of a named one: ``record``, ``long``, ``union``, ``x.Address``."""
    if isinstance(node, list):
        return "union"
    return kind_of(node["type"]) if isinstance(node, Mapping) else node


def resolved(node: Any, names: Names) -> Any:
    """The node itself, or the named type that it refers to."""
    return names[node] if isinstance(node, str) and node in names else node


def branches(node: Any) -> list[Any]:
    """The types of a union except null; for anything else the node itself."""
    return [one for one in node if kind_of(one) != "null"] if isinstance(node, list) else [node]


def single(node: Any) -> Any | None:
    """The type of a union of one type and null, or the wider of two numbers; None for other unions."""
    types = branches(node)
    kinds = {kind_of(one) for one in types}
    for both, wide in (({"int", "long"}, "long"), ({"float", "double"}, "double")):
        if kinds == both and not any(isinstance(one, Mapping) for one in types):
            return wide
    return types[0] if len(types) == 1 else None


def branch_name(node: Any) -> str:
    """The name of the field for a union's branch."""
    return node["name"].rpartition(".")[2] if isinstance(node, Mapping) and "name" in node else kind_of(node)


def arrow_type(node: Any, names: Names, path: str = "", within: tuple[str, ...] = ()) -> pa.DataType:
    """The Arrow type of a schema's column. Raises `TypeError` for types that no column can have."""
    node = resolved(node, names)
    if isinstance(node, list):
        one = single(node)
        if one is not None:
            return arrow_type(one, names, path, within)
        fields = {branch_name(resolved(b, names)): b for b in branches(node)}
        if not fields:
            return pa.null()
        if len(fields) < len(branches(node)):
            raise TypeError(f"the Avro field {path!r} is a union of types of one name; choose other columns")
        return pa.struct([(n, arrow_type(b, names, f"{path}.{n}", within)) for n, b in fields.items()])
    kind = kind_of(node)
    if kind == "array":
        return pa.list_(arrow_type(node["items"], names, path, within))
    if kind == "map":
        return pa.map_(pa.string(), arrow_type(node["values"], names, path, within))
    if kind in ("record", "error"):
        if node["name"] in within:
            raise TypeError(
                f"the Avro field {path!r} holds {node['name']} within itself, which no column can; "
                "choose the columns beside it by columns=[…]"
            )
        inner = (*within, node["name"])
        return pa.struct(
            [(f["name"], arrow_type(f["type"], names, f"{path}.{f['name']}", inner)) for f in node["fields"]]
        )
    if kind not in _PLAIN:
        raise TypeError(f"the Avro field {path!r} has the type {kind!r}, which no column can have")
    return _leaf(node, kind, path)


def _leaf(node: Any, kind: str, path: str) -> pa.DataType:
    logical = node.get("logicalType") if isinstance(node, Mapping) else None
    if logical == "decimal" and kind in ("bytes", "fixed"):
        digits, scale = node.get("precision", 0), node.get("scale", 0)
        if not 0 < digits <= _MOST_DIGITS or not 0 <= scale <= digits:
            raise TypeError(f"the Avro field {path!r} is a decimal of {digits} digits; columns have up to 38")
        return pa.decimal128(digits, scale)
    return _TIMES.get((kind, logical or ""), _PLAIN[kind])


def for_reading(node: Any, times: bool = False) -> Any:
    """The schema without the logical types that are read as plain numbers and strings.

    Decimals stay, and with `times` so do timestamps.
    """
    if isinstance(node, Mapping):
        apart = ("default", "symbols")
        kept = {key: for_reading(value, times) for key, value in node.items() if key not in apart}
        kept |= {key: node[key] for key in apart if key in node}
        logical = kept.get("logicalType", "decimal")
        if logical != "decimal" and not (times and (kind_of(kept), logical) in _TIMES):
            del kept["logicalType"]
        return kept
    return [for_reading(one, times) for one in node] if isinstance(node, list) else node


def other_times(writer: Any, writers: Names, reader: Any, readers: Names, seen: frozenset[str]) -> bool:
    """Whether a time was written in another unit than the reader's, such as millis instead of micros."""
    writer, reader = resolved(writer, writers), resolved(reader, readers)
    for one in branches(writer) if isinstance(writer, list) else ():
        if other_times(one, writers, reader, readers, seen):
            return True
    for one in branches(reader) if isinstance(reader, list) and not isinstance(writer, list) else ():
        if kind_of(resolved(one, readers)) == kind_of(writer) and other_times(
            writer, writers, one, readers, seen
        ):
            return True
    if not isinstance(writer, Mapping) or not isinstance(reader, Mapping):
        return False
    kind = kind_of(writer)
    if kind in ("record", "error") and "fields" in reader and writer["name"] not in seen:
        known = {alias: f for f in reader["fields"] for alias in (f["name"], *f.get("aliases", ()))}
        inner = seen | {writer["name"]}
        pairs = [(f["type"], known[f["name"]]["type"]) for f in writer["fields"] if f["name"] in known]
        return any(other_times(w, writers, r, readers, inner) for w, r in pairs)
    for part in ("items", "values"):
        if part in writer and part in reader:
            return other_times(writer[part], writers, reader[part], readers, seen)
    times = [_TIMES.get((kind_of(one), one.get("logicalType", ""))) for one in (writer, reader)]
    return None not in times and times[0] != times[1]


def walk(node: Any, names: Names, within: frozenset[str] = frozenset()) -> Iterator[tuple[Any, bool]]:
    """All nodes of a schema, each with whether it is a recursive record, at which the descent ends."""
    node = resolved(node, names)
    again = isinstance(node, Mapping) and node.get("name") in within
    yield node, again
    if again:
        return
    if isinstance(node, list):
        inner = node
    elif isinstance(node, Mapping):
        within = within | {node["name"]} if "fields" in node else within
        inner = [f["type"] for f in node.get("fields", ())]
        inner += [node[part] for part in ("items", "values") if part in node]
        inner += [node["type"]] if isinstance(node["type"], (Mapping, list)) else []
    else:
        inner = []
    for one in inner:
        yield from walk(one, names, within)


def takes_no_bytes(node: Any, names: Names, within: frozenset[str] = frozenset()) -> bool:
    """Whether a value takes no bytes, so that a message may claim to have any number of them."""
    node = resolved(node, names)
    kind = kind_of(node)
    if kind in ("record", "error"):
        if node["name"] in within:
            return True
        inner = within | {node["name"]}
        return all(takes_no_bytes(f["type"], names, inner) for f in node["fields"])
    return kind == "null" or (kind == "fixed" and node["size"] == 0)


def whole(node: Any, names: Names, seen: set[str]) -> Any:
    """A schema in which each named type is defined where it is first used."""
    if isinstance(node, str):
        if node not in names or node in seen:
            return node
        return whole(names[node], names, seen)
    if isinstance(node, list):
        return [whole(one, names, seen) for one in node]
    if "name" in node:
        if node["name"] in seen:
            return node["name"]
        seen.add(node["name"])
    schema = dict(node)
    for part in ("items", "values", "type"):
        if part in schema:
            schema[part] = whole(schema[part], names, seen)
    if "fields" in schema:
        schema["fields"] = [{**f, "type": whole(f["type"], names, seen)} for f in schema["fields"]]
    return schema
