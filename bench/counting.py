"""What a message costs from Kafka to a count: nanoseconds of processor time, beside reading alone.

3 M JSON messages of 62 bytes, lz4, in 4 partitions; the broker runs on the same cores. A side is a run from
earliest to latest in this process, all its threads counted: reading by raw batches and nothing else; counting
with one field of each message decoded, its time; counting with all four; three sketches. Each is the least of
three runs that take turns, the first left out: what a process spends once, to load modules and kernels, is a
line of its own. Decoding alone, of one field and of four, needs no broker.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import polars as pl

import streamgauge as sg
from streamgauge.apps.dev.kafka.broker import EmbeddedKafka
from streamgauge.operators.formats.messages import Messages
from streamgauge.operators.kafka.reader import Reader

from .measure import line
from .topic import MESSAGES, PARTITIONS, SCHEMA, filled, posts

RUNS = 3
DECODED, DECODINGS = 65_536, 20
ONE = {"ts": pl.Int64}
SKETCHES = {
    "users": sg.distinct("user"),
    "prices": sg.kll_quantiles("price"),
    "tags": sg.top_k("tag"),
}


def reading(bootstrap: str, topic: str) -> None:
    """Read everything, and look at nothing."""
    config = {"bootstrap.servers": bootstrap}
    with Reader(config, {(topic, p): 0 for p in range(PARTITIONS)}, source="raw") as reader:
        assert sum(map(len, reader.read_to(reader.end_offsets(), 200_000))) == MESSAGES


def counting(bootstrap: str, topic: str, schema: Mapping[str, Any], aggregates: Mapping[str, Any]) -> None:
    """A run to the end of the topic, of one window."""
    rows = sg.Stream.from_kafka(
        topic,
        value=sg.json(schema),
        time=pl.from_epoch("ts", time_unit="ms"),
        bootstrap_servers=bootstrap,
    )
    rows.tumbling("1h").agg(**aggregates).run(until="latest")


def spent(call: Callable[[], None]) -> float:
    """The seconds of processor time of a call."""
    begun = time.process_time()
    call()
    return time.process_time() - begun


def decoding() -> dict[str, Any]:
    """Nanoseconds a message that decoding takes alone, one field beside four."""
    messages = Messages.of([line.encode() for line in posts(DECODED).to_list()])
    decoders = {"one": sg.json(ONE), "four": sg.json(SCHEMA)}
    least = dict.fromkeys(decoders, float("inf"))
    for _ in range(DECODINGS):
        for name, decoder in decoders.items():
            seconds = spent(lambda decode=decoder.decode: decode(messages))
            least[name] = min(least[name], 1e9 * seconds / DECODED)
    one, four = least["one"], least["four"]
    claim = "decoding a message, one JSON field beside four"
    return line(claim, f"{one:.0f} ns", f"{four:.0f} ns, four", one / four, "≤ 1")


def main() -> list[dict[str, Any]]:
    count = {"posts": sg.count()}
    with EmbeddedKafka() as broker:
        at = broker.bootstrap_servers
        topic = filled(broker, "posts", MESSAGES)
        few = filled(broker, "few", 1_000)
        sides: dict[str, tuple[Callable[[], None], str]] = {
            "counting, one JSON field": (lambda: counting(at, topic, ONE, count), "≤ 250 ns"),
            "counting, four JSON fields": (lambda: counting(at, topic, SCHEMA, count), ""),
            "three sketches, four JSON fields": (lambda: counting(at, topic, SCHEMA, SKETCHES), "≤ 400 ns"),
        }
        first = spent(lambda: counting(at, few, ONE, count))
        again = spent(lambda: counting(at, few, ONE, count))
        for call, _ in sides.values():
            call()
        alone: list[float] = []
        runs: dict[str, list[float]] = {name: [] for name in sides}
        for _ in range(RUNS):
            alone.append(spent(lambda: reading(at, topic)))
            for name, (call, _) in sides.items():
                runs[name].append(spent(call))
    read = 1e9 * min(alone) / MESSAGES
    lines = []
    for name, (_, target) in sides.items():
        each = 1e9 * min(runs[name]) / MESSAGES
        lines.append(
            line(f"a message, {name}", f"{each:,.0f} ns", f"{read:,.0f} ns, reading", each / read, target)
        )
    claim = "a run of 1,000 messages, the first in its process beside the next"
    return [*lines, decoding(), line(claim, f"{first:.2f} s of CPU", f"{again:.2f} s", first / again)]


if __name__ == "__main__":
    for row in main():
        print(row)
