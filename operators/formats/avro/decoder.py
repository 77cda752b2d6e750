"""Avro messages as columns: plain, in Confluent's wire format, and as object container files.

A kernel reads flat records, many at a time (`avro.scan`). fastavro reads all other messages,
and those that the kernel doubts, and Arrow builds columns from the results.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from ..decode import Decoded
from ..field_paths import Paths, listed, paths_of, picked
from ..kernel_columns import together
from ..messages import Messages
from ..per_message import Read, one_by_one
from ..registry import FRAME, Registry, UnknownSchema, by_schema, refusing, schema_ids, unframed
from .flat import Flat, flat
from .reading import Loaded, container_reading, reading
from .schema import ROOT, Names, arrow_type, kind_of, load, resolved, single, whole
from .unions import Shape, has_choices, shaping


def avro(
    schema: str | Mapping[str, Any] | Sequence[Any] | None = None,
    *,
    columns: Sequence[str] | Mapping[str, str] | None = None,
    registry: str | Mapping[str, Any] | None = None,
    subject: str | None = None,
    many: str | None = None,
) -> Avro:
    """A decoder of Avro messages into the columns of `schema`, as JSON text or parsed JSON.

    Without a registry, messages are written with that schema and have no prefix. With a `registry` (its URL,
    or the settings of confluent-kafka's `SchemaRegistryClient` as a mapping), they are in Confluent's wire
    format: each names the schema that wrote it. `schema` is then the reader's schema, to which other versions
    are resolved by Avro's rules: fields are matched by name or alias, missing ones get their defaults, and
    numbers are widened. Without a schema, the latest of the `subject` is fetched once, when the stream is
    defined. With ``many="records"`` each message is an object container file, and all its records are a list
    in a column of that name, which ``.explode("records")`` turns into rows.

    `columns` chooses fields by name or path, ``["user", "actor.id"]``, or renames them,
    ``{"who": "actor.id"}``; other fields are skipped, which is faster. A path leads through records and
    optional records. By default there is a column for each field.

    Logical types become Polars' dates, times, Datetime and Decimal; enums and UUIDs become strings; fixed
    becomes Binary; maps become lists of structs of ``key`` and ``value``. A union of one type and null
    becomes that type; any other union becomes a struct with a field for each of its types, all but one null.

    A message that can't be read is refused with the position of the error. So is a message whose schema the
    registry doesn't know, or whose schema can't be resolved. If the registry can't be reached, the run waits.
    Raises `TypeError` for types that no column can have, and `ValueError` for an invalid schema, path or
    setting.

    >>> import streamgauge as sg
    >>> order = '''{"type": "record", "name": "Order", "fields": [{"name": "user", "type": "string"},
    ...     {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}}]}'''
    >>> found = sg.avro(order).decode(sg.formats.Messages.of([b"\\x06ann\\x02", b"\\x06an", None]))
    >>> found.frame.rows(), found.refused.tolist()
    ([('ann', datetime.datetime(1970, 1, 1, 0, 0, 0, 1000, ...))], [1, 2])
    >>> found.reasons[0]
    'not Avro of the schema Order: byte 3: Expected 3 bytes, read 2'
    """
    client = None if registry is None else Registry.of(registry)
    if many is not None and client is not None:
        raise ValueError("avro: container files hold their schema; give many= or registry=, not both")
    references: list[Any] = []
    if schema is None:
        if client is None or subject is None:
            raise TypeError('avro: give a schema, or a registry and a subject="orders-value" that has one')
        schema, references = _registered(client, client.version(subject))
    elif subject is not None:
        raise ValueError("avro: give a schema or a subject, not both")
    root, names = load(schema, references)
    paths = _paths(root, names, columns)
    if many is not None and (not isinstance(many, str) or not many):
        raise TypeError(f'avro: many must name a column, as in many="records", got {many!r}')
    writer = json.dumps(root) if client is None and many is None else None
    decoder = Avro(json.dumps(_projected(root, names, paths)), paths, writer, client, many)
    _ = decoder.schema, (decoder._plain if client is None else None)
    return decoder


@dataclass(frozen=True)
class Avro:
    """A `Decoder` of Avro, created by `avro`.

    `reader` is the schema as JSON, with the chosen fields only; `writer` is the whole schema, if messages
    don't name the one that wrote them.
    """

    reader: str
    paths: Paths
    writer: str | None = None
    registry: Registry | None = None
    many: str | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The Polars types of its columns."""
        return dict(self._frame(self._build([])).schema)

    def definition(self) -> dict[str, Any]:
        """What it reads and how, without the registry's address."""
        definition: dict[str, Any] = {"paths": {column: list(path) for column, path in self.paths}}
        if self.writer is not None:
            return {**definition, "writer": json.loads(self.writer)}
        form = {"framed": True} if self.registry is not None else {"many": self.many}
        return {**definition, "reader": json.loads(self.reader), **form}

    def decode(self, messages: Messages) -> Decoded:
        """The rows of a batch, and why the other messages were refused."""
        return together(messages, *self._read_flat(messages), self._read_each)

    def _read_each(self, messages: Messages) -> Decoded:
        """Messages read by fastavro."""
        if self.registry is None:
            return one_by_one(messages, self._plain, self._build, self._frame)
        return by_schema(messages, self._framed, self._build, self._frame)

    def _read_flat(self, messages: Messages) -> tuple[list[tuple[pl.DataFrame, np.ndarray]], np.ndarray]:
        """The rows of messages that can be read many at a time, each with their numbers, and the others."""
        there = np.flatnonzero(~messages.is_null)
        groups: list[tuple[Flat | None, np.ndarray]] = [(self._flat, there)]
        if self.registry is not None:
            ids = schema_ids(messages)
            groups = [
                (self._flat_of(number), np.flatnonzero(ids == number)) for number in np.unique(ids).tolist()
            ]
        batches, rest = [], [np.flatnonzero(messages.is_null)] if self.registry is None else []
        for how, numbers in groups:
            if how is None:
                rest.append(numbers)
                continue
            records, rows, doubtful = how.read(messages, numbers, 0 if self.registry is None else FRAME)
            rest.append(doubtful)
            if rows.size:
                batches.append((self._frame(records), rows))
        return batches, np.sort(np.concatenate(rest)) if rest else there

    @cached_property
    def _loaded(self) -> Loaded:
        return load(self.reader)

    @cached_property
    def _kind(self) -> pa.DataType:
        kind = arrow_type(*self._loaded)
        return kind if pa.types.is_struct(kind) and _is_record(self._loaded) else pa.struct([(ROOT, kind)])

    @cached_property
    def _tagged(self) -> bool:
        return has_choices(*self._loaded)

    @cached_property
    def _plain(self) -> Read:
        if self.many is not None:
            return container_reading(self._loaded, self._tagged)
        return reading(load(self.writer or self.reader), self._loaded, self._tagged)

    @cached_property
    def _flat(self) -> Flat | None:
        return None if self.writer is None else flat(load(self.writer), self._loaded)

    @cached_property
    def _framings(self) -> dict[int, tuple[Read, Flat | None]]:
        return {}

    def _flat_of(self, number: int) -> Flat | None:
        """How to read messages with a schema id many at a time, if that is possible."""
        self._framed(number)
        return self._framings[number][1] if number in self._framings else None

    def _framed(self, number: int) -> Read:
        """The reader for messages with a schema id."""
        if number in self._framings:
            return self._framings[number][0]
        assert self.registry is not None
        if number < 0:
            return unframed
        try:
            registered = self.registry.schema(number)
            if (registered.schema_type or "AVRO") != "AVRO":
                return refusing(f"its schema {number} is of {registered.schema_type}, not Avro")
            writer = load(*_registered(self.registry, registered))
            read = reading(writer, self._loaded, self._tagged, FRAME)
        except (UnknownSchema, ValueError) as error:
            return refusing(
                str(error) if isinstance(error, UnknownSchema) else f"its schema {number}: {error}"
            )
        self._framings[number] = read, flat(writer, self._loaded)
        return read

    @cached_property
    def _shape(self) -> Shape | None:
        return shaping(self._loaded, self._tagged or self.many is not None)

    def _build(self, values: list[Any]) -> pa.Array:
        """fastavro's results as structs, or as lists of structs."""
        if self.many is None:
            return pa.array(self._shaped(values), self._kind)
        return pa.array([self._shaped(value) for value in values], pa.large_list(self._kind))

    def _shaped(self, values: list[Any]) -> list[Any]:
        if self._shape is not None:
            values = [self._shape(value) for value in values]
        return values if _is_record(self._loaded) else [{ROOT: value} for value in values]

    def _frame(self, values: pa.Array) -> pl.DataFrame:
        if self.many is None:
            return picked(values, self.paths)
        return listed(picked(values.flatten(), self.paths), self.many, values.value_lengths().to_pylist())


def _is_record(loaded: Loaded) -> bool:
    return kind_of(loaded[0]) == "record"


def _registered(registry: Registry, registered: Any) -> tuple[str, list[Any]]:
    """A registered schema's text, and the schemas that it refers to, in order of dependency."""
    texts: dict[tuple[str, int], str] = {}

    def follow(schema: Any) -> None:
        for one in schema.references or ():
            if (one.subject, one.version) not in texts:
                needed = registry.version(one.subject, one.version)
                follow(needed)
                texts[one.subject, one.version] = needed.schema_str

    follow(registered)
    return registered.schema_str, list(texts.values())


def _paths(root: Any, names: Names, columns: Sequence[str] | Mapping[str, str] | None) -> Paths:
    """The field of each column, checked against the schema."""
    if kind_of(root) != "record":
        if columns is not None:
            raise ValueError("avro: the schema is not a record, so it has no fields to select as columns")
        return ((ROOT, (ROOT,)),)
    if columns is None:
        return tuple((field["name"], (field["name"],)) for field in root["fields"])
    return paths_of("avro", columns, lambda path: _check(root, names, path))


def _check(root: Any, names: Names, path: tuple[str, ...]) -> list[str] | None:
    """None if a path leads to a field, otherwise the available names where it goes wrong."""
    node = root
    for name in path:
        node = resolved(single(node) if isinstance(node, list) else node, names)
        fields = (
            {f["name"]: f["type"] for f in node["fields"]}
            if isinstance(node, dict) and "fields" in node
            else {}
        )
        if name not in fields:
            return list(fields)
        node = resolved(fields[name], names)
    return None


def _projected(root: Any, names: Names, paths: Paths) -> Any:
    """The schema with only those fields of the record that some column needs, complete in itself."""
    wanted = {path[0] for _, path in paths}
    if kind_of(root) == "record":
        root = {**root, "fields": [field for field in root["fields"] if field["name"] in wanted]}
    return whole(root, names, set())
