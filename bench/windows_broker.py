"""Closing many small windows, the consumer's whole way: from a topic to windows, answers, alerts.

The broker runs on the same machine. 20,000 messages, each in a one-minute window of its own, are read exactly
once by one worker; the last side has ten keys a minute. What is printed is the wall time of a run from its
call to its end, start included, in a process that has loaded the modules and the kernels of this stream; and
the processor's time that it took of it. Each side is a process of its own; each figure is the least of two.

Windows a second in steady work stand beside Kafka Streams: a count in tumbling windows, suppressed until the
window closes. Ours is what more windows cost more: the time for 220,000 less that for 20,000. Kafka Streams
(`peers/StreamsWindows.java`) prints its own, from the window on by which its compiler has warmed up. With its
defaults it keeps windows in RocksDB, and where event time runs fast it opens a segment for each of them; so
it is asked with stores in memory too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any

import polars as pl
import pyarrow as pa
from confluent_kafka import Producer

import streamgauge as sg
from streamgauge import rules
from streamgauge.apps.dev.kafka.broker import EmbeddedKafka

from . import java_peers
from .measure import line

START = 1_767_225_600
"""The year 2026."""
RUNS = 2
WINDOWS, MORE = 20_000, 200_000
KEYS = 10
STEADY = {"RocksDB": (10, 100), "memory": (20_000, WINDOWS + MORE - 1)}
"""By the store of Kafka Streams: from which window to which it is measured."""


def filled(broker: EmbeddedKafka, name: str, windows: int, keys: int) -> str:
    """A topic with a message a window and key; returns its name."""
    broker.create_topic(name, 1)
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "linger.ms": 50,
            "batch.num.messages": 100_000,
            "queue.buffering.max.messages": 3_000_000,
            "compression.type": "lz4",
        }
    )
    for number in range(windows * keys):
        minute, key = divmod(number, keys)
        value = {"at": START + 60 * minute, "k": key, "user": number * 7_919 % 100_003, "level": number % 101}
        producer.produce(name, json.dumps(value, separators=(",", ":")), key=str(key))
    producer.flush()
    return name


def stream(bootstrap: str, topic: str, keys: int) -> sg.Stream:
    """Counts, distinct users and a mean by minute, and by key if there are several."""
    schema = {"at": pl.Int64, "k": pl.Int64, "user": pl.Int64, "level": pl.Float64}
    value, time_ = sg.json(schema), pl.from_epoch("at")
    rows = sg.Stream.from_kafka(topic, value=value, time=time_, bootstrap_servers=bootstrap)
    grouped = rows.group_by("k") if keys > 1 else rows
    return grouped.tumbling("1m", delay="0s").agg(
        posts=sg.count(), users=sg.distinct("user"), level=sg.mean("level")
    )


def alerting(topic: str) -> rules.Alerting:
    """Five rules, of which some fire in one window of a hundred."""
    return rules.Alerting(
        [
            rules.Threshold("hot", value="level", above=99),
            rules.Threshold("cold", value="level", below=1),
            rules.Threshold("many", value="posts", at_least=10),
            rules.Threshold("crowd", value="users", at_least=3),
            rules.Ratio("each", value="users", to="posts", above=1.5),
        ],
        to=[rules.AlertsToKafka(topic)],
    )


def side(bootstrap: str, topic: str, listens: str, keys: int) -> None:
    """Run one side in this process; prints its seconds by the wall, and of the processor."""
    options: dict[str, Any] = {}
    answers = []
    if listens == "callback":

        def keep(table: pa.Table) -> None:
            answers.append(sg.query(table))

        options["on_window"] = keep
    if listens == "rules":
        options["sinks"] = [alerting(f"alerts-{os.getpid()}")]
    counted = stream(bootstrap, topic, keys)
    wall, spent = time.perf_counter(), time.process_time()
    account = counted.run(until="latest", **options).account
    wall, spent = time.perf_counter() - wall, time.process_time() - spent
    assert account.counted == account.read and (not answers or len(answers) == account.read / keys)
    print(wall, spent)


def measured(bootstrap: str, topic: str, listens: str, keys: int) -> tuple[float, float]:
    """The seconds of one side in a process of its own: by the wall, and of the processor."""
    call = f"import bench.windows_broker as b; b.side({bootstrap!r}, {topic!r}, {listens!r}, {keys})"
    done = subprocess.run(
        [sys.executable, "-c", call], capture_output=True, text=True, check=True, timeout=600
    )
    wall, spent = map(float, done.stdout.split()[-2:])
    return wall, spent


def least(runs: list[tuple[float, float]]) -> tuple[float, float]:
    """The least of each."""
    return min(wall for wall, _ in runs), min(spent for _, spent in runs)


def steady(bootstrap: str, topic: str, few: tuple[float, float]) -> list[dict[str, Any]]:
    """Lines for windows a second, beside Kafka Streams."""
    wall, spent = least([measured(bootstrap, topic, "no one", 1) for _ in range(RUNS)])
    rate, of_cpu = MORE / (wall - few[0]), MORE / (spent - few[1])
    collected = []
    for store, (begin, end) in STEADY.items():
        peer = max(
            float(
                java_peers.run(
                    "StreamsWindows", java_peers.KAFKA_STREAMS, bootstrap, topic, begin, end, store
                )
            )
            for _ in range(RUNS)
        )
        target = "≥ 1" if store == "RocksDB" else "report"
        claim = f"windows a second in steady work, Kafka Streams with stores in {store}"
        ours = f"{rate:,.0f} ({of_cpu:,.0f} a second of CPU)"
        collected.append(line(claim, ours, f"{peer:,.0f}", rate / peer, target))
    return collected


def main() -> list[dict[str, Any]]:
    sides: Mapping[str, tuple[str, int, str]] = {
        "no one listens": ("no one", 1, "≤ 4 s"),
        "answers in a callback for all": ("callback", 1, "≤ 5 s"),
        "five rules, alerts to a topic": ("rules", 1, "≤ 6 s"),
        f"the same, {KEYS} keys a window": ("rules", KEYS, "≤ 10 s"),
    }
    with EmbeddedKafka() as broker:
        at = broker.bootstrap_servers
        topics = {keys: filled(broker, f"by-minute-{keys}", WINDOWS, keys) for keys in (1, KEYS)}
        runs: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
        for turn in range(RUNS + 1):
            for name, (listens, keys, _) in sides.items():
                result = measured(at, topics[keys], listens, keys)
                runs[name] += [result] if turn else []  # the first compiles
        lines = []
        for name, (_, _, target) in sides.items():
            wall, spent = least(runs[name])
            claim = f"{WINDOWS:,} one-minute windows of a message, {name}"
            lines.append(line(claim, f"{wall:.1f} s ({spent:.1f} s of CPU)", "", "", target))
        longer = filled(broker, "longer", WINDOWS + MORE, 1)
        return lines + steady(at, longer, least(runs["no one listens"]))


if __name__ == "__main__":
    for row in main():
        print(row)
