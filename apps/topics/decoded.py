"""Decode messages for people: JSON, Avro, summaries of tables of sketches and deltas, text, or bytes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Message

from ...operators.consumer.log.messages import decode
from ...operators.formats.jsonable import jsonable
from ...operators.formats.registry import FRAME, Registry, UnknownSchema
from ...operators.kafka.chunked_records import Record
from ...operators.kafka.log_faults import DeltaError
from ...operators.table.schema import aggregates_of, from_ipc, keys_of
from ...operators.table.windows import edges
from ...operators.watching.terminal import escaped_json, json_line
from ...sketches.core.protocol import SketchError

_ARROW = b"\xff\xff\xff\xff"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class JsonText(str):
    """A JSON value as it was sent, on one line: parsed and written again, 1e400 would become Infinity."""

    __slots__ = ()

    @classmethod
    def of(cls, value: bytes) -> JsonText:
        r"""Take a message's bytes; raises `ValueError` if they are not JSON.

        >>> JsonText.of(b'{"price": 0.1000000000000000055,\n "n": 1e400}\n')
        '{"price": 0.1000000000000000055, "n": 1e400}'
        """
        text = value.decode(json.detect_encoding(value))
        json.loads(text, parse_float=str, parse_int=str, parse_constant=_refuse_constant)
        # JSON's strings contain no line ends and tabs, which are escaped there.
        return cls(re.sub(r" *[\r\n\t][\r\n\t ]*", " ", text.strip()))


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


@dataclass(frozen=True)
class MessageDecoding:
    """How to decode values: by their content, by the Avro schema in a file, or by a registry's schemas."""

    schema: Path | None = None
    registry: str | None = None

    @cached_property
    def _own(self) -> Any:
        from fastavro import parse_schema

        assert self.schema is not None
        return parse_schema(json.loads(self.schema.read_text()))

    @cached_property
    def _registry(self) -> Registry | None:
        return None if self.registry is None else Registry.of(self.registry)

    @cached_property
    def _by_id(self) -> dict[int, Any]:
        return {}

    def of(self, message: Message) -> dict[str, Any]:
        """Return all of a message as plain JSON, a JSON value as `JsonText`; `form` is how it was decoded."""
        given: Any = message.headers() or ()
        headers: list[tuple[str, bytes | None]] = [(name, value) for name, value in given]
        form, value = self._value(message.value(), dict(headers))
        kind, stamp = message.timestamp()
        return {
            "topic": message.topic(),
            "partition": message.partition(),
            "offset": message.offset(),
            "timestamp": None if kind == TIMESTAMP_NOT_AVAILABLE else written(stamp),
            "key": self._key(message.key()),
            "headers": [[name, _text(value)] for name, value in headers],
            "form": form,
            "value": value,
        }

    def _key(self, key: bytes | None) -> Any:
        if key is not None and len(key) > FRAME and key[0] == 0 and self._registry is not None:
            return self._framed(key)[1]
        return _text(key)

    def _value(self, value: bytes | None, headers: Mapping[str, bytes | None]) -> tuple[str, Any]:
        if value is None:
            return "tombstone", None
        if self.schema is not None:
            return self._avro(value, self._own)
        if headers.get("kind") == b"state":
            return "snapshot", {"resume": _text(headers.get("resume")), "bytes": len(value)}
        if "fingerprint" in headers and "next" in headers:
            return "delta", _delta(value, headers)
        if value.startswith(_ARROW):
            return _table(value)
        if value[:1] == b"\0" and len(value) > FRAME:
            return self._framed(value)
        try:
            return "json", JsonText.of(value)
        except (ValueError, RecursionError):
            text = _text(value)
            return ("text" if isinstance(text, str) else "bytes"), text

    def _framed(self, value: bytes) -> tuple[str, Any]:
        """Decode a value in Confluent's wire format."""
        number = int.from_bytes(value[1:FRAME], "big")
        if self._registry is None:
            return "framed", {"schema": number, "bytes": value[FRAME:].hex(), "hint": "name --registry"}
        if number not in self._by_id:
            try:
                known = self._registry.schema(number)
            except UnknownSchema as error:
                return "framed", {"schema": number, "bytes": value[FRAME:].hex(), "hint": str(error)}
            self._by_id[number] = self._parsed(known)
        schema = self._by_id[number]
        if isinstance(schema, str):
            return "framed", {"schema": number, "bytes": value[FRAME:].hex(), "hint": schema}
        return self._avro(value[FRAME:], schema)

    def _parsed(self, parsed: Any) -> Any:
        """Return a registry's schema for fastavro, or a text that explains why there is none."""
        from fastavro import parse_schema
        from fastavro.schema import SchemaParseException, UnknownType

        if parsed.schema_type != "AVRO":
            return f"its schema is {parsed.schema_type}, which is not decoded here"
        assert self._registry is not None
        names: dict[str, Any] = {}
        try:
            for one in parsed.references or ():
                text = self._registry.version(one.subject, one.version).schema_str
                parse_schema(json.loads(text), names)
            return parse_schema(json.loads(parsed.schema_str), names)
        except (SchemaParseException, UnknownType, ValueError) as error:
            return f"its schema can't be read: {error}"

    def _avro(self, value: bytes, schema: Any) -> tuple[str, Any]:
        from fastavro import schemaless_reader

        try:
            return "avro", jsonable(schemaless_reader(BytesIO(value), schema, None))
        except Exception as error:  # fastavro raises all kinds of errors for bytes in another format
            hint = f"not Avro of that schema: {type(error).__name__}"
            return "bytes", {"bytes": value.hex(), "hint": hint}


def decoded_line(message: Mapping[str, Any]) -> str:
    """Write what `MessageDecoding.of` returned as one line of JSON, a JSON value as it was sent.

    >>> decoded_line({"offset": 7, "form": "json", "value": JsonText("[1e400]")})
    '{"offset": 7, "form": "json", "value": [1e400]}'
    """
    value = message["value"]
    if not isinstance(value, JsonText):
        return json_line(message)
    rest = json_line({name: part for name, part in message.items() if name != "value"})
    return f'{rest[:-1]}, "value": {escaped_json(value)}}}'


def written(milliseconds: int) -> str:
    """Format a timestamp, in UTC.

    >>> written(1_767_225_600_123)
    '2026-01-01T00:00:00.123Z'
    """
    try:
        moment = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return f"{milliseconds} ms"
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _delta(value: bytes, headers: Mapping[str, bytes | None]) -> dict[str, Any]:
    """Summarise a worker's delta for a range of its input."""
    if "part" in headers:
        return {"part": _text(headers["part"]), "bytes": len(value)}
    try:
        delta = decode(Record(value, {name: part or b"" for name, part in headers.items()}, 0, ""))
    except DeltaError as error:
        return {"damaged": str(error), "bytes": len(value)}
    fields: dict[str, Any] = {"input": str(delta.input), "from": delta.first_offset, "to": delta.next_offset}
    fields |= {"account": delta.account.to_dict(), "bytes": len(value)}
    return fields if delta.table is None else {**fields, "groups": delta.table.num_rows}


def _table(value: bytes) -> tuple[str, Any]:
    """Summarise a table of sketches; for another Arrow stream, return its number of rows and its columns."""
    import pyarrow as pa

    try:
        table = from_ipc(value)
        starts, ends = edges(table)
        columns = {name: aggregate.name for name, aggregate in aggregates_of(table.schema).items()}
        fields: dict[str, Any] = {"groups": table.num_rows, "keys": keys_of(table.schema), "columns": columns}
        if len(starts):
            fields |= {"from": written(int(starts.min()) // 1_000), "to": written(int(ends.max()) // 1_000)}
        return "table", fields
    except SketchError:
        pass
    try:
        sketches = pa.ipc.open_stream(value).read_all()
    except (pa.ArrowException, OSError, ValueError):
        return "bytes", value.hex()
    return "arrow", {"rows": sketches.num_rows, "columns": {f.name: str(f.type) for f in sketches.schema}}


def _text(value: bytes | str | None) -> Any:
    """Decode bytes as text if possible; otherwise, return an object with their hexadecimal form."""
    if value is None or isinstance(value, str):
        return value
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return {"bytes": value.hex()}
    shown = all(one.isprintable() or one in "\n\r\t" for one in text)
    return text if shown else {"bytes": value.hex()}
