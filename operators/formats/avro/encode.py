"""Encoding rows as Avro messages: plain, or in Confluent's wire format with a registry's schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from typing import Any

import polars as pl

from ..registry import Registry
from .schema import load


@dataclass(frozen=True)
class AsAvro:
    """See `as_avro`. `frame` is the prefix of each value."""

    schema: str
    frame: bytes = b""

    @cached_property
    def _parsed(self) -> Any:
        from fastavro import parse_schema

        return parse_schema(json.loads(self.schema))

    def __getstate__(self) -> dict[str, Any]:
        return {"schema": self.schema, "frame": self.frame}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)

    @property
    def _fields(self) -> dict[str, Any]:
        return {field["name"]: field for field in self._parsed["fields"]}

    def check(self, schema: Mapping[str, Any]) -> None:
        """See `Encoder`."""
        missing = [
            name for name, field in self._fields.items() if name not in schema and "default" not in field
        ]
        if missing:
            raise ValueError(
                f"as_avro: the schema's field {missing[0]!r} is not among the columns {', '.join(schema)}, "
                "and has no default; add it by with_columns, or rename a column by select"
            )

    def encode(self, rows: pl.DataFrame) -> list[bytes | None]:
        """See `Encoder`."""
        from fastavro import schemaless_writer

        encoded: list[bytes | None] = []
        for row in rows.select(name for name in self._fields if name in rows.columns).iter_rows(named=True):
            out = BytesIO(self.frame)
            out.seek(len(self.frame))
            schemaless_writer(out, self._parsed, row, strict_allow_default=True)
            encoded.append(out.getvalue())
        return encoded

    def definition(self) -> dict[str, Any]:
        """See `Encoder`."""
        framed = {"id": int.from_bytes(self.frame[1:], "big")} if self.frame else {}
        return {"encoder": "avro", "schema": self.schema, **framed}


def as_avro(
    schema: str | Mapping[str, Any] | None = None,
    *,
    registry: str | Mapping[str, Any] | None = None,
    subject: str | None = None,
) -> AsAvro:
    """Encode each row as an Avro record from the columns named like its fields; other columns are skipped.

    `schema` is a record's schema, as JSON text or parsed JSON; the messages then contain only values. With a
    `registry`, its URL or the settings of confluent-kafka's `SchemaRegistryClient`, the schema is the latest
    of the `subject`, fetched once, when the stream is defined, and messages are in Confluent's wire format. A
    row that the schema can't represent, such as a null for a required field, is a dead letter.

    Raises `ValueError` for anything but a record's schema, and for a column that the schema needs and the
    stream doesn't have; `LookupError` for an unknown subject and `ConnectionError` for a registry that can't
    be reached.

    >>> import polars as pl
    >>> import streamgauge as sg
    >>> order = '''{"type": "record", "name": "Order", "fields": [{"name": "user", "type": "string"},
    ...     {"name": "n", "type": "int", "default": 1}]}'''
    >>> sg.as_avro(order).encode(pl.DataFrame({"user": ["ann"], "other": [True]}))
    [b'\\x06ann\\x02']
    """
    frame = b""
    if registry is not None:
        if subject is None or schema is not None:
            raise ValueError(
                "as_avro: with registry= name the subject= whose latest schema is to be written, and give no "
                "schema; register a new one there first"
            )
        number, schema = Registry.of(registry).latest(subject)
        frame = b"\0" + number.to_bytes(4, "big")
    if schema is None:
        raise ValueError("as_avro: give a schema, or registry= and subject=")
    whole, _ = load(schema)
    if not isinstance(whole, Mapping) or whole.get("type") != "record":
        raise ValueError("as_avro: the schema is not a record's; a row is written as a record")
    given = schema if isinstance(schema, str) else json.dumps(schema)
    return AsAvro(json.dumps(json.loads(given), sort_keys=True), frame)
