"""Random schemas of Avro and records of them, from a seed, and what their rows are in Polars."""

from __future__ import annotations

import io
import random
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import fastavro

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

LEAVES: dict[str, tuple[Any, Any]] = {
    "boolean": ("boolean", lambda r: r.random() < 0.5),
    "int": ("int", lambda r: r.choice([0, 1, -1, 2**31 - 1, -(2**31), r.randrange(-1000, 1000)])),
    "long": ("long", lambda r: r.choice([0, 2**63 - 1, -(2**63), r.randrange(-(10**9), 10**9)])),
    "float": ("float", lambda r: r.choice([0.0, -1.5, 0.25, float(r.randrange(1 << 20))])),
    "double": ("double", lambda r: r.choice([0.0, r.random(), -r.random() * 1e300])),
    "string": ("string", lambda r: "".join(r.choice("aé漢😀 \n\0") for _ in range(r.randrange(12)))),
    "bytes": ("bytes", lambda r: r.randbytes(r.randrange(6))),
    "date": (
        {"type": "int", "logicalType": "date"},
        lambda r: date(2000, 1, 1) + timedelta(r.randrange(9999)),
    ),
    "time": ({"type": "int", "logicalType": "time-millis"}, lambda r: time(r.randrange(24), 5, 9, 123_000)),
    "micro_time": (
        {"type": "long", "logicalType": "time-micros"},
        lambda r: time(r.randrange(24), 5, 9, 123_456),
    ),
    "millis": (
        {"type": "long", "logicalType": "timestamp-millis"},
        lambda r: EPOCH + timedelta(milliseconds=r.randrange(-(10**12), 2 * 10**12)),
    ),
    "micros": (
        {"type": "long", "logicalType": "timestamp-micros"},
        lambda r: EPOCH + timedelta(microseconds=r.randrange(-(10**15), 2 * 10**15)),
    ),
    "local": (
        {"type": "long", "logicalType": "local-timestamp-micros"},
        lambda r: datetime(2020, 1, 1) + timedelta(microseconds=r.randrange(10**15)),
    ),
    "decimal": (
        {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 3},
        lambda r: Decimal(r.randrange(-(10**15), 10**15)).scaleb(-3),
    ),
}


class Maker:
    """Schemas and values of them; `seed` decides everything."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self._names = 0

    def record(self, depth: int = 2) -> dict[str, Any]:
        """A record's schema of some random fields."""
        fields = [{"name": f"f{i}", "type": self.type(depth)} for i in range(self.random.randrange(1, 7))]
        return {"type": "record", "name": self._name(), "fields": fields}

    def type(self, depth: int) -> Any:
        choice = self.random.randrange(10)
        if depth and choice == 0:
            return self.record(depth - 1)
        if depth and choice == 1:
            return {"type": "array", "items": self.type(depth - 1)}
        if depth and choice == 2:
            return {"type": "map", "values": self.type(depth - 1)}
        if choice == 3:
            return {"type": "enum", "name": self._name(), "symbols": ["RED", "GREEN"]}
        if choice == 4:
            return {"type": "fixed", "name": self._name(), "size": 3}
        leaf = LEAVES[self.random.choice(list(LEAVES))][0]
        return ["null", leaf] if choice < 8 else leaf

    def value(self, kind: Any) -> Any:
        """A random value of a schema, as fastavro takes it."""
        if isinstance(kind, list):
            return None if self.random.random() < 0.3 else self.value(kind[1])
        if isinstance(kind, str) or "logicalType" in kind:
            return next(make for reported, make in LEAVES.values() if reported == kind)(self.random)
        if kind["type"] == "record":
            return {field["name"]: self.value(field["type"]) for field in kind["fields"]}
        if kind["type"] == "array":
            return [self.value(kind["items"]) for _ in range(self.random.randrange(4))]
        if kind["type"] == "map":
            return {f"k{i}": self.value(kind["values"]) for i in range(self.random.randrange(4))}
        return self.random.choice(kind["symbols"]) if kind["type"] == "enum" else self.random.randbytes(3)

    def _name(self) -> str:
        self._names += 1
        return f"T{self._names}"


def written(schema: Any, value: Any) -> bytes:
    """A value in plain Avro."""
    file = io.BytesIO()
    fastavro.schemaless_writer(file, fastavro.parse_schema(schema), value)
    return file.getvalue()


def row(kind: Any, value: Any) -> Any:
    """A value as Polars gives it."""
    if isinstance(kind, list):
        return None if value is None else row(kind[1], value)
    if isinstance(kind, dict) and kind["type"] == "record":
        return {field["name"]: row(field["type"], value[field["name"]]) for field in kind["fields"]}
    if isinstance(kind, dict) and kind["type"] == "array":
        return [row(kind["items"], one) for one in value]
    if isinstance(kind, dict) and kind["type"] == "map":
        return [{"key": key, "value": row(kind["values"], one)} for key, one in value.items()]
    return value
