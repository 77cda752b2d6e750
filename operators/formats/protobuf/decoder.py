"""Protobuf messages as columns: plain, and in Confluent's wire format.

A kernel reads the messages if the chosen fields are single values (`protobuf.scan`). Otherwise, and for
messages that the kernel doubts, Protobuf's own library reads each, and Arrow builds columns of the fields.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from ..decode import Decoded
from ..field_paths import Path, Paths, paths_of, picked
from ..kernel_columns import together
from ..messages import Messages
from ..per_message import Misread, Read, one_by_one
from ..reasons import Reason
from ..registry import FRAME, UNFRAMED, Registry, UnknownSchema, by_schema, refusing, schema_ids, unframed
from .fields import along, arrow_type, description, fields_of, is_nested, required
from .files import Files, compiled, files_of, message_class, name_at, names_in, ordered
from .flat import FlatMessage, flat

_DEEPEST = 32
"""The maximum nesting of messages that a wire format's indexes may lead through."""


def protobuf(
    message: Any = None,
    *,
    schema: Any = None,
    columns: Sequence[str] | Mapping[str, str] | None = None,
    registry: str | Mapping[str, Any] | None = None,
    subject: str | None = None,
) -> Protobuf:
    """A decoder of Protobuf messages into columns.

    `message` is a generated class; or the full name of a message in `schema`, which is a `FileDescriptorSet`,
    its bytes, or the text of a .proto file (compiled once, when the stream is defined; this needs
    ``grpcio-tools`` or ``protoc``). You may omit the name if the schema has only one message.

    By default, messages have no prefix. With a `registry` (its URL, or the settings of confluent-kafka's
    `SchemaRegistryClient`), they are in Confluent's wire format: each names a schema and one of its messages,
    and any other message is refused. Without a class and a schema, the latest schema of the `subject` is
    used.

    `columns` chooses fields by name or path, ``["user", "actor.id"]``, or renames them, ``{"who":
    "actor.id"}``. Without it there is a column for each field.

    Fields that the description doesn't know are ignored, as usual in Protobuf. A field whose presence is
    recorded (``optional``, in a ``oneof``, a message) is null if it is absent; other absent fields have their
    default. Enums become strings (numbers without a name become digits), repeated fields become lists, maps
    become lists of structs of ``key`` and ``value``, and messages become structs.
    ``google.protobuf.Timestamp`` becomes a Datetime and ``Duration`` a Duration, both to the microsecond;
    wrappers become the wrapped value, ``Struct`` and ``Value`` become JSON text.

    A message that can't be read is refused; if the registry can't be reached, the run waits. Raises
    `TypeError` for types that no column can have, and `ValueError` for an invalid description, path or
    setting.

    >>> from google.protobuf.wrappers_pb2 import StringValue
    >>> import streamgauge as sg
    >>> messages = sg.formats.Messages.of([b"\\x0a\\x03ann", b"\\x0a\\x09ann", None])
    >>> found = sg.protobuf(StringValue).decode(messages)
    >>> found.frame.rows(), found.refused.tolist()
    ([('ann',)], [1, 2])
    """
    client = None if registry is None else Registry.of(registry)
    files, name = _described(message, schema, client, subject)
    descriptor = message_class(files, name).DESCRIPTOR
    if columns is None:
        paths: Paths = tuple((field, (field,)) for field in fields_of(descriptor))
    else:
        paths = paths_of("protobuf", columns, lambda path: _check(descriptor, path))
    decoder = Protobuf(files, name, paths, client)
    _ = decoder.schema
    return decoder


@dataclass(frozen=True)
class Protobuf:
    """A `Decoder` of Protobuf, created by `protobuf`. `files` describe the message called `name`."""

    files: Files
    name: str
    paths: Paths
    registry: Registry | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def __repr__(self) -> str:
        columns = {column: ".".join(path) for column, path in self.paths}
        return f"Protobuf(name={self.name!r}, columns={columns}, registry={self.registry!r})"

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The Polars types of its columns."""
        return dict(self._frame(self._build([])).schema)

    def definition(self) -> dict[str, Any]:
        """What it reads and how, without the registry's address."""
        descriptor = self._class.DESCRIPTOR
        fields = {}
        for column, path in self.paths:
            way = _along(descriptor, path)
            fields[column] = {"path": [[f.name, f.number] for f in way], "field": description(way[-1])}
        definition = {"message": self.name, "fields": fields}
        return definition if self.registry is None else {**definition, "framed": True}

    def decode(self, messages: Messages) -> Decoded:
        """The rows of a batch, and why the other messages were refused."""
        return together(messages, *self._read_flat(messages), self._read_each)

    def _read_each(self, messages: Messages) -> Decoded:
        """Messages read by Protobuf's library."""
        if self.registry is None:
            return one_by_one(messages, self._plain, self._build, self._frame)
        return by_schema(messages, self._framed, self._build, self._frame)

    def _read_flat(self, messages: Messages) -> tuple[list[tuple[pl.DataFrame, np.ndarray]], np.ndarray]:
        """The rows of messages that can be read many at a time, with their numbers, and the others."""
        good, begin = ~messages.is_null, 0
        if self._flat is not None and self.registry is not None:
            ids, begin = schema_ids(messages), FRAME + 1
            first = [number for number in np.unique(ids).tolist() if self._is_first(number)]
            # A file's first message is written as one byte 0 after the schema's id.
            good = np.isin(ids, first) & (messages.ends - messages.starts > FRAME)
            good[good] = messages.lines[messages.starts[good] + FRAME] == 0
        numbers = np.flatnonzero(good)
        if self._flat is None or not numbers.size:
            return [], numbers
        records, rows, doubtful = self._flat.read(messages, numbers, begin)
        batches = [(self._frame(records), rows)] if rows.size else []
        return batches, np.sort(np.concatenate([np.flatnonzero(~good), doubtful]))

    def _is_first(self, number: int) -> bool:
        """Whether this message is the first one of a registered schema's file."""
        self._framed(number)
        return number in self._written and name_at(self._written[number], (0,)) == self.name

    @cached_property
    def _flat(self) -> FlatMessage | None:
        return flat(self._class.DESCRIPTOR, dict(self.paths))

    @cached_property
    def _class(self) -> Any:
        return message_class(self.files, self.name)

    @cached_property
    def _columns(self) -> dict[str, tuple[Any, pa.DataType]]:
        descriptor = self._class.DESCRIPTOR
        columns = {}
        for column, path in self.paths:
            # The type first: it raises for recursive messages.
            kind = arrow_type(_along(descriptor, path)[-1], ".".join(path), (descriptor.full_name,))
            columns[column] = (along(descriptor, path), kind)
        return columns

    def _build(self, values: list[Any]) -> pa.Array:
        """The chosen fields of messages, as structs."""
        if not self._columns:
            return pa.array([{}] * len(values), pa.struct([]))
        arrays = [pa.array([get(value) for value in values], kind) for get, kind in self._columns.values()]
        fields = [pa.field(name, kind) for name, (_, kind) in self._columns.items()]
        return pa.StructArray.from_arrays(arrays, fields=fields)

    def _frame(self, values: pa.Array) -> pl.DataFrame:
        return picked(values, tuple((name, (name,)) for name in self._columns))

    @cached_property
    def _plain(self) -> Read:
        read, name, whole = self._class.FromString, self.name, required(self._class.DESCRIPTOR)

        def reading(data: memoryview) -> Any:
            try:
                message = read(bytes(data))
            except Exception as error:
                kind = f"not Protobuf of the message {name}"
                raise Misread(Reason(kind, f"{kind}: {type(error).__name__}: {error}")) from None
            if whole and not message.IsInitialized():
                missing = ", ".join(message.FindInitializationErrors())
                raise Misread(Reason(f"not Protobuf of the message {name}: it has no {missing}"))
            return message

        return reading

    @cached_property
    def _written(self) -> dict[int, bytes]:
        return {}

    def _framed(self, number: int) -> Read:
        """The reader for messages with a schema id."""
        assert self.registry is not None
        if number < 0:
            return unframed
        try:
            if number not in self._written:
                registered = self.registry.schema(number, form="serialized")
                if (registered.schema_type or "AVRO") != "PROTOBUF":
                    kind = registered.schema_type or "AVRO"
                    return refusing(f"its schema {number} is of {kind}, not Protobuf")
                self._written[number] = _registered(self.registry, registered)[-1]
        except UnknownSchema as error:
            return refusing(str(error))
        except ValueError as error:
            return refusing(f"its schema {number}: {error}")
        file, plain, wanted = self._written[number], self._plain, self.name
        names: dict[tuple[int, ...], str | None] = {}

        def reading(data: memoryview) -> Any:
            indexes, end = _indexes(data)
            if indexes not in names:
                names[indexes] = name_at(file, indexes)
            if names[indexes] != wanted:
                there = names[indexes] or f"none that its schema {number} has, at {list(indexes)}"
                raise Misread(Reason(f"its message is not {wanted}", f"its message is {there}, not {wanted}"))
            return plain(data[end:])

        return reading


def _indexes(data: memoryview) -> tuple[tuple[int, ...], int]:
    """Which message of a schema's file this is, and where its bytes begin. Raises `Misread`."""
    count, at = _varint(data, FRAME)
    if count == 0:
        return (0,), at
    if not 0 < count <= _DEEPEST:
        raise Misread(Reason(UNFRAMED, f"{UNFRAMED}: {count} message indexes"))
    indexes = []
    for _ in range(count):
        index, at = _varint(data, at)
        indexes.append(index)
    return tuple(indexes), at


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    """A zigzag integer, and its end."""
    value = shift = 0
    for end in range(at, min(at + 5, len(data))):
        value |= (data[end] & 127) << shift
        shift += 7
        if data[end] < 128:
            return (value >> 1) ^ -(value & 1), end + 1
    raise Misread(Reason(UNFRAMED, f"{UNFRAMED}: its message indexes end too early"))


def _described(
    message: Any, schema: Any, registry: Registry | None, subject: str | None
) -> tuple[Files, str]:
    """The files that describe the messages, and the full name of the requested one."""
    if hasattr(message, "DESCRIPTOR"):
        if schema is not None or subject is not None:
            raise ValueError("protobuf: a message class has its schema; leave out schema= and subject=")
        return files_of(message), message.DESCRIPTOR.full_name
    if message is not None and not isinstance(message, str):
        raise TypeError(f"protobuf: {message!r} is neither a message class nor the full name of a message")
    if schema is not None:
        files = files_of(schema)
    elif registry is not None and subject is not None:
        files = _registered(registry, registry.version(subject, form="serialized"))
    else:
        raise TypeError(
            'protobuf: give a message class, a schema, or a registry and a subject="orders-value"'
        )
    names = names_in(files[-1]) if files else []
    if message is None and len(names) != 1:
        raise ValueError(f"protobuf: name one of the messages: {', '.join(names) or 'there are none'}")
    return files, message or names[0]


def _registered(registry: Registry, registered: Any) -> Files:
    """The files of a registered schema, itself last. Raises `ValueError` for one that can't be read."""
    texts: dict[str, str] = {}

    def follow(name: str, schema: Any) -> None:
        for one in schema.references or ():
            if one.name not in texts:
                follow(one.name, registry.version(one.subject, one.version, form="serialized"))
        texts[name] = schema.schema_str

    follow("", registered)
    own = texts.pop("")
    try:
        files = {name: base64.b64decode(text, validate=True) for name, text in texts.items()}
        last = base64.b64decode(own, validate=True)
    except binascii.Error:
        # Not every registry returns descriptors; text from the others has to be compiled.
        return compiled("registered.proto", {**texts, "registered.proto": own})
    try:
        return ordered(_renamed({**files, "registered.proto": last}))
    except ValueError:
        raise
    except Exception as error:
        raise ValueError(f"not a description of Protobuf: {error}") from None


def _renamed(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Files under the names by which they are imported."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    renamed = {}
    for name, data in files.items():
        file = FileDescriptorProto.FromString(data)
        file.name = name
        renamed[name] = file.SerializeToString(deterministic=True)
    return renamed


def _along(descriptor: Any, path: Path) -> list[Any]:
    """The fields of a path."""
    fields = [fields_of(descriptor)[path[0]]]
    for name in path[1:]:
        fields.append(fields_of(fields[-1].message_type)[name])
    return fields


def _check(descriptor: Any, path: Path) -> list[str] | None:
    """None if a path leads to a field, otherwise the available names where it goes wrong."""
    for at, name in enumerate(path):
        known = fields_of(descriptor)
        if name not in known:
            return list(known)
        if at + 1 < len(path):
            if not is_nested(known[name]):
                return []
            descriptor = known[name].message_type
    return None
