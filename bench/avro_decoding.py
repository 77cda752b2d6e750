"""Avro records of 200 bytes, decoded: the decoder beside fastavro alone, and through a whole stream.

fastavro alone is the limit of a decoder that stands on it: `schemaless_reader` called for each message, with
nothing made of what it gives. The records are orders of nine fields, two of them nested, in Confluent's wire
format; the registry is asked once. Sides take turns, and it is the processor's time that is reported.
"""

from __future__ import annotations

import io
import os
from typing import Any

import fastavro
import numpy as np

from streamgauge import Stream, StreamTester, avro, distinct, quantiles, top_k
from streamgauge.formats import Messages
from streamgauge.tests.operators.formats.schema_registry import SmallRegistry, framed

from .measure import line, medians

MESSAGES = int(os.environ.get("MESSAGES", 100_000))
"""Fewer only to try a script."""

ADDRESS = {"city": "string", "zip": "string", "lat": "double", "lon": "double"}
SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "user", "type": "string"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "amount", "type": "double"},
        {"name": "currency", "type": {"type": "enum", "name": "Currency", "symbols": ["EUR", "USD", "GBP"]}},
        {"name": "note", "type": ["null", "string"]},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {
            "name": "address",
            "type": {
                "type": "record",
                "name": "Address",
                "fields": [{"name": name, "type": kind} for name, kind in ADDRESS.items()],
            },
        },
        {"name": "agent", "type": "string"},
    ],
}
AGENT = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/128.0.0.0 Safari"
AGENT += "/537.36 Edg/128"


def records(n: int, seed: int = 1) -> list[bytes]:
    """`n` orders in plain Avro, 200 bytes each on average, over a minute of event time."""
    rng = np.random.default_rng(seed)
    users, tags = rng.integers(0, 500_000, n).tolist(), rng.zipf(1.3, n).tolist()
    amounts = rng.lognormal(3, 1, n).tolist()
    parsed = fastavro.parse_schema(SCHEMA)
    address = {"city": "Reykjavík", "zip": "101", "lat": 64.15, "lon": -21.94}
    collected = []
    for i in range(n):
        file = io.BytesIO()
        order = {
            "id": i,
            "user": f"user-{users[i]}",
            "at": 1_700_000_000_000 + i * 60_000 // n,
            "amount": amounts[i],
            "currency": "EUR",
            "note": None if i % 2 else "a note of some words for the courier",
            "tags": ["new", f"t{min(tags[i], 10_000)}"],
            "address": address,
            "agent": AGENT,
        }
        fastavro.schemaless_writer(file, parsed, order)
        collected.append(file.getvalue())
    return collected


def main() -> list[dict[str, Any]]:
    plain = records(MESSAGES)
    size = sum(map(len, plain)) / len(plain)
    registry = SmallRegistry()
    number = registry.add("orders-value", SCHEMA)
    values = [framed(number, value) for value in plain]
    messages = Messages.of(values)
    parsed = fastavro.parse_schema(SCHEMA)

    def alone() -> None:
        for value in plain:
            fastavro.schemaless_reader(io.BytesIO(value), parsed)

    with registry.served():
        whole = avro(SCHEMA, registry=registry.url)
        some = avro(SCHEMA, registry=registry.url, columns=["user", "amount", "tags"])
        stream = (
            Stream.from_kafka("orders", value=avro(SCHEMA, registry=registry.url), time="at")
            .tumbling("1m")
            .agg(users=distinct("user"), amounts=quantiles("amount"), tags=top_k("tags", k=10))
        )

        def streamed() -> None:
            assert StreamTester(stream).feed_messages(values).counted == MESSAGES

        calls = (
            alone,
            lambda: whole.decode(messages),
            lambda: some.decode(messages),
            streamed,
        )
        limit, *rates = [MESSAGES / seconds / 1e6 for seconds in medians(*calls)]
    names = ["all 9 columns", "3 columns", "9 columns, through a stream with three sketches"]
    return [
        line(
            f"Avro of {size:.0f} bytes, {name}, against fastavro alone",
            f"{rate:.2f} M/s",
            f"{limit:.2f} M/s",
            rate / limit,
            "report",
        )
        for name, rate in zip(names, rates, strict=True)
    ]
