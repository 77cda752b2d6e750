"""Reading Kafka alone: raw record batches against `consume()`, and how far both are from what can't be less.

3 M JSON messages, 72 bytes a record with 62 of value, lz4, in 4 partitions; the broker runs on the same
cores. A message costs so many nanoseconds of this process's processor time, of all its threads; messages
a second are by the clock on the wall, where the broker takes its share of the machine. Each figure is the
median of runs that take turns. What can't be less: to fetch the bytes and look at no record; to check them
(CRC-32C); to decompress them; to copy what came out once, which is what memory allows.

The reader that made columns by librdkafka's bulk calls, through ctypes, was deleted when this one cost 2.5 to
3 times less a message in the same minutes; so the ratio here is to `consume()`, which reads where raw batches
can't be had.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

from crc32c import crc32c

from bench.measure import line
from streamgauge.apps.dev.kafka.broker import EmbeddedKafka
from streamgauge.operators.kafka.codecs import unpacked
from streamgauge.operators.kafka.raw_source import RawSource
from streamgauge.operators.kafka.reader import Reader
from streamgauge.operators.kafka.record_batches import RecordBatch

from .topic import MESSAGES, PARTITIONS, filled

RUNS = 3


def reading(bootstrap: str, topic: str, source: Any) -> None:
    """Read everything by one of the two ways."""
    config = {"bootstrap.servers": bootstrap}
    with Reader(config, {(topic, p): 0 for p in range(PARTITIONS)}, source=source) as reader:
        assert sum(map(len, reader.read_to(reader.end_offsets(), 200_000))) == MESSAGES


def fetching(bootstrap: str, topic: str) -> list[RecordBatch]:
    """Fetch everything and look only at the batches' headers."""
    collected: list[RecordBatch] = []
    source = RawSource({"bootstrap.servers": bootstrap, "isolation.level": "read_committed"})
    source.assign({(topic, p): 0 for p in range(PARTITIONS)})
    count = 0
    while count < MESSAGES:
        for steps in source._consumer.poll(1000, 1 << 30).values():
            batches = [step.batch for step in steps if isinstance(step.batch, RecordBatch)]
            count += sum(batch.count for batch in batches)
            collected += batches
    source.close()
    return collected


def taking_turns(sides: dict[str, Callable[[], object]]) -> dict[str, tuple[float, float]]:
    """Nanoseconds of processor time a message, and messages a second, of each."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
    for turn in range(RUNS + 1):
        for name, call in sides.items():
            cpu, wall = time.process_time(), time.perf_counter()
            call()
            elapsed = time.process_time() - cpu, time.perf_counter() - wall
            if turn:  # the first compiles and fills caches
                times[name].append(elapsed)
    return {
        name: (
            statistics.median(cpu for cpu, _ in elapsed) / MESSAGES * 1e9,
            MESSAGES / statistics.median(wall for _, wall in elapsed),
        )
        for name, elapsed in times.items()
    }


def main() -> list[dict[str, Any]]:
    with EmbeddedKafka() as broker:
        at = broker.bootstrap_servers
        topic = filled(broker, "posts", MESSAGES)
        held = fetching(at, topic)
        data, _ = unpacked(held)
        result = taking_turns(
            {
                "raw": lambda: reading(at, topic, "raw"),
                "plain": lambda: reading(at, topic, "plain"),
                "fetched and checked": lambda: fetching(at, topic),
                "checked (CRC-32C)": lambda: [crc32c(batch.raw[21:]) for batch in held],
                "decompressed": lambda: [unpacked(held[i : i + 20]) for i in range(0, len(held), 20)],
                "copied once as decompressed": lambda: data.copy(),
            }
        )

    def line_of(name: str) -> str:
        cpu, rate = result[name]
        return f"{cpu:,.1f} ns, {rate / 1e6:.2f} M/s"

    ours, plain = result["raw"], result["plain"]
    cpu = "reading alone, processor time a message"
    rows = [
        line(
            f"{cpu}, against consume()", line_of("raw"), line_of("plain"), plain[0] / ours[0], "≥ 4, of CPU"
        ),
        line(
            "the same by the clock on the wall",
            line_of("raw"),
            line_of("plain"),
            ours[1] / plain[1],
            "report",
        ),
    ]
    for name in list(result)[2:]:
        least = f"what can't be less: {name}"
        rows.append(
            line(
                f"{least} (its share of ours)",
                line_of("raw"),
                line_of(name),
                f"{result[name][0] / ours[0]:.0%}",
            )
        )
    return rows
