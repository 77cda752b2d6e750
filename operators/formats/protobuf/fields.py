"""Protobuf's fields as columns: their Arrow types, and reading values from messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

Get = Callable[[Any], Any]

# By `FieldDescriptor.type`.
_SCALARS: dict[int, pa.DataType] = {
    1: pa.float64(),
    2: pa.float32(),
    3: pa.int64(),
    4: pa.uint64(),
    5: pa.int32(),
    6: pa.uint64(),
    7: pa.uint32(),
    8: pa.bool_(),
    9: pa.string(),
    12: pa.binary(),
    13: pa.uint32(),
    14: pa.string(),  # an enum, by its names
    15: pa.int32(),
    16: pa.int64(),
    17: pa.int32(),
    18: pa.int64(),
}
_ENUM = 14
_OWN = "google.protobuf."
_WRAPPERS = {
    f"{_OWN}{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
}
_JSON = {f"{_OWN}{name}" for name in ("Struct", "Value", "ListValue")}


def fields_of(descriptor: Any) -> dict[str, Any]:
    """A message's fields by name."""
    return {field.name: field for field in descriptor.fields}


def is_repeated(field: Any) -> bool:
    """Whether a field is a list or a map."""
    return field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED


def _is_required(field: Any) -> bool:
    return field.is_required if hasattr(field, "is_required") else field.label == field.LABEL_REQUIRED


def is_map(field: Any) -> bool:
    """Whether a repeated field is a map."""
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def is_nested(field: Any) -> bool:
    """Whether a path may continue below a field: it is a single message with fields of its own."""
    kind = field.message_type
    return kind is not None and not is_repeated(field) and not _is_value(kind)


def _is_value(kind: Any) -> bool:
    return kind.full_name in _WRAPPERS | _JSON | {f"{_OWN}Timestamp", f"{_OWN}Duration"}


def arrow_type(field: Any, path: str, within: tuple[str, ...] = ()) -> pa.DataType:
    """The Arrow type of a field's column. Raises `TypeError` for a recursive message."""
    if is_map(field):
        key, value = (field.message_type.fields_by_name[name] for name in ("key", "value"))
        return pa.map_(arrow_type(key, path, within), arrow_type(value, path, within))
    one = _type_of_one(field, path, within)
    return pa.list_(one) if is_repeated(field) else one


def _type_of_one(field: Any, path: str, within: tuple[str, ...]) -> pa.DataType:
    kind = field.message_type
    if kind is None:
        return _SCALARS[field.type]
    if kind.full_name == f"{_OWN}Timestamp":
        return pa.timestamp("us", "UTC")
    if kind.full_name == f"{_OWN}Duration":
        return pa.duration("us")
    if kind.full_name in _WRAPPERS:
        return _SCALARS[kind.fields_by_name["value"].type]
    if kind.full_name in _JSON:
        return pa.string()
    if kind.full_name in within:
        raise TypeError(
            f"the Protobuf field {path!r} holds {kind.full_name} within itself, which no column can; choose "
            "the columns beside it by columns=[…]"
        )
    inner = (*within, kind.full_name)
    return pa.struct([(f.name, arrow_type(f, f"{path}.{f.name}", inner)) for f in kind.fields])


def getting(field: Any) -> Get:
    """A function that returns a field's value from a message, in Arrow's form; None if it is absent."""
    name, one = field.name, _value(field)
    if is_map(field):
        value = _value(field.message_type.fields_by_name["value"])
        if value is None:
            return lambda message: list(getattr(message, name).items())
        return lambda message: [(key, value(inner)) for key, inner in getattr(message, name).items()]
    if is_repeated(field):
        if one is None:
            return lambda message: list(getattr(message, name))
        return lambda message: [one(inner) for inner in getattr(message, name)]
    if not field.has_presence:
        return (
            (lambda message: getattr(message, name))
            if one is None
            else (lambda message: one(getattr(message, name)))
        )
    if one is None:
        return lambda message: getattr(message, name) if message.HasField(name) else None
    return lambda message: one(getattr(message, name)) if message.HasField(name) else None


def _value(field: Any) -> Get | None:
    """A function that converts a single value of a field to its Arrow type; None if it fits already."""
    kind = field.message_type
    if field.type == _ENUM:
        names = {value.number: value.name for value in reversed(field.enum_type.values)}
        return lambda number: names.get(number) or str(number)
    if kind is None:
        return None
    if kind.full_name == f"{_OWN}Timestamp":
        return _timestamp
    if kind.full_name == f"{_OWN}Duration":
        return lambda value: value.seconds * 1_000_000 + int(value.nanos / 1_000)
    if kind.full_name in _WRAPPERS:
        return lambda value: value.value
    if kind.full_name in _JSON:
        from google.protobuf.json_format import MessageToJson

        return lambda value: MessageToJson(value, indent=None, ensure_ascii=False)
    gets = {inner.name: getting(inner) for inner in kind.fields}
    return lambda value: {name: get(value) for name, get in gets.items()}


def _timestamp(value: Any) -> int:
    """Microseconds since 1970; finer digits are truncated."""
    return value.seconds * 1_000_000 + value.nanos // 1_000


def along(descriptor: Any, path: tuple[str, ...]) -> Get:
    """A function that returns the value at a path; None if a message on the way is absent."""
    field = fields_of(descriptor)[path[0]]
    if len(path) == 1:
        return getting(field)
    name, inner = path[0], along(field.message_type, path[1:])
    return lambda message: inner(getattr(message, name)) if message.HasField(name) else None


def description(field: Any) -> Any:
    """What determines a field's values, as JSON: its number and type, an enum's names, a message's fields."""
    parts: list[Any] = [field.number, field.type, "repeated" if is_repeated(field) else "one"]
    if field.enum_type is not None:
        parts.append({value.name: value.number for value in field.enum_type.values})
    if field.message_type is not None and not _is_value(field.message_type):
        parts.append({inner.name: description(inner) for inner in field.message_type.fields})
    return parts


def required(descriptor: Any, seen: frozenset[str] = frozenset()) -> bool:
    """Whether a message, or one within it, has required fields."""
    if descriptor.full_name in seen:
        return False
    inner = seen | {descriptor.full_name}
    return any(
        _is_required(field) or (field.message_type is not None and required(field.message_type, inner))
        for field in descriptor.fields
    )
