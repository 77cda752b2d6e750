"""The decoder of alert packets: Avro containers, JSON, and Avro with a schema id or a schema in the key."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from typing import Any, Literal

import polars as pl
import pyarrow as pa

from ....operators.formats.avro.reading import container_reading, reading
from ....operators.formats.avro.schema import load
from ....operators.formats.decode import Decoded
from ....operators.formats.messages import Messages
from ....operators.formats.per_message import Misread, Read, one_by_one
from ....operators.formats.registry import Registry
from . import rubin, ztf
from .packet import PACKET
from .schemas import Schemas
from .scores import Score

Survey = Literal["ztf", "rubin"]

_PACKETS: dict[str, Callable[[Any], dict[str, Any]]] = {"ztf": ztf.packet, "rubin": rubin.packet}
CONTAINER = b"Obj\x01"
"""The first bytes of an Avro container."""
_SHOWN = 300
_container = container_reading(None, False)


@dataclass(frozen=True)
class Packets:
    """A `Decoder` of a survey's alert packets into the columns of `PACKET`.

    A message may be an Avro container with one alert (ZTF); JSON; in Confluent's wire format (Rubin), with
    the schema from the files `schemas`, from the `registry`, or, without either, from the package
    `lsst-alert-packet`; or plain Avro with its schema in the message's key (Fink).
    """

    survey: Survey
    registry: Registry | None = None
    schemas: tuple[str, ...] = ()
    scores: tuple[Score, ...] = ()

    version = 2

    @property
    def schema(self) -> dict[str, Any]:
        """The Polars types of its columns."""
        return dict(_frame(_build([])).schema)

    def definition(self) -> dict[str, Any]:
        """The definition, which doesn't depend on where the schemas come from."""
        scores = {"scores": [score.path for score in self.scores]} if self.scores else {}
        return {"survey": self.survey, "version": self.version, **scores}

    def decode(self, messages: Messages) -> Decoded:
        """Return the rows of a batch, and why the other messages were refused."""
        keys = messages.key.to_pylist()
        return one_by_one(messages, [self._read(key) for key in keys], _build, _frame)

    def one(self, value: bytes, key: bytes | None = None) -> dict[str, Any]:
        """Decode a single packet. Raises `Misread`, and anything else that broken bytes can cause."""
        packet: dict[str, Any] = self._read(key)(memoryview(value))
        return packet

    def _read(self, key: bytes | None) -> Read:
        def read(data: memoryview) -> dict[str, Any]:
            record = self._record(data, key)
            return {**_PACKETS[self.survey](record), "scores": [score.of(record) for score in self.scores]}

        return read

    def _record(self, data: memoryview, key: bytes | None) -> Any:
        begin = bytes(data[:5])
        if begin[:4] == CONTAINER:
            return _single(self._records(data))
        if begin.lstrip()[:1] == b"{":
            return _object(data)
        if len(begin) == 5 and begin[0] == 0 and self.survey == "rubin":
            return self._schemas.reading(int.from_bytes(begin[1:], "big"))(data)
        if key is not None and key.lstrip()[:1] == b"{":
            return self._keyed(key)(data)
        raise Misread(f"not an alert packet: it begins with {begin!r}, and has no schema")

    def _records(self, data: memoryview) -> list[Any]:
        """Return a container's records. An error names the survey if its schema is invalid Avro."""
        try:
            return records(data)
        except Misread:
            survey = ztf.survey_of_schema(schema_name(bytes(data))) if self.survey == "ztf" else None
            if survey is None:
                raise
            raise Misread(ztf.of_another(survey)) from None

    @cached_property
    def _schemas(self) -> Schemas:
        return Schemas(self.registry, self.schemas)

    @cached_property
    def _readings(self) -> dict[bytes, Read]:
        return {}

    def _keyed(self, key: bytes) -> Read:
        """Return the reader for messages with their schema in the key."""
        if key not in self._readings:
            try:
                schema = load(key.decode())
                self._readings[key] = reading(schema, schema, False)
            except ValueError as error:
                raise Misread(f"its key is not a schema: {str(error)[:_SHOWN]}") from None
        return self._readings[key]

    def __getstate__(self) -> dict[str, Any]:
        names = ("survey", "registry", "schemas", "scores")
        return {name: getattr(self, name) for name in names}


def records(data: memoryview) -> list[Any]:
    """Read all records of an Avro container. Raises `Misread` for a broken one."""
    packets: list[Any] = _container(data)
    return packets


_HEADER = {
    "type": "record",
    "name": "header",
    "fields": [
        {"name": "magic", "type": {"type": "fixed", "name": "magic", "size": 4}},
        {"name": "meta", "type": {"type": "map", "values": "bytes"}},
    ],
}
"""The header of a container in Avro's specification."""


def schema_name(head: bytes) -> str:
    """Return the full name of the schema in a container's header; empty if unreadable.

    The schema need not be valid Avro: TURBO's isn't.
    """
    import fastavro

    try:
        header: Any = fastavro.schemaless_reader(BytesIO(head), _HEADER, None)
        schema = json.loads(header["meta"]["avro.schema"])
        name = str(schema["name"])
    except Exception:
        return ""
    return name if "." in name else f"{schema.get('namespace', '')}.{name}".lstrip(".")


def _single(packets: list[Any]) -> Any:
    if len(packets) != 1:
        raise Misread(f"an Avro container of {len(packets)} alerts; a message is one")
    return packets[0]


def _object(data: memoryview) -> Any:
    try:
        return json.loads(bytes(data))
    except ValueError as error:
        raise Misread(f"not JSON: {error}") from None


def _build(values: list[Any]) -> pa.Array:
    return pa.array(values, PACKET)


def _frame(rows: pa.Array) -> pl.DataFrame:
    frame = pl.from_arrow(pa.Table.from_batches([pa.RecordBatch.from_struct_array(rows)]))
    assert isinstance(frame, pl.DataFrame)
    return frame
