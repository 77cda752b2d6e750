"""Messages a second joined with a table of 1 M keys, read from a compacted topic, against Quix Streams.

3 M JSON messages with a key, of 40 bytes, and a table of 1 M keys of 30 bytes, in 4 partitions; each message
finds its key, and is counted by a column of the table. Ours keeps the table in memory, reads it whole, and
counts by sketches with durable state; Quix Streams joins by ``join_asof`` with its state in RocksDB. Both
read the table first: the time for that is reported by itself, and is not in the rates.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from confluent_kafka import Producer

from streamgauge import LookupTable, Stream, count
from streamgauge import json as json_value
from streamgauge.apps.dev.kafka.broker import EmbeddedKafka
from streamgauge.operators.steps.table_reader import TableReader

from .kafka_to_sketches import PEERS, RUNS, quix_python
from .topic import MESSAGES, PARTITIONS

KEYS = int(os.environ.get("KEYS", 1_000_000))
"""Fewer only to try the script."""
OF_PEER = MESSAGES // 15
"""Messages that the peer joins, which is much slower."""


def filled(broker: EmbeddedKafka, name: str, keys: Iterable[int], value: str, compact: bool = False) -> str:
    """Create a topic with a message for each key, in the partition that the key decides."""
    broker.create_topic(name, PARTITIONS, {"cleanup.policy": "compact"} if compact else {})
    batches = {"linger.ms": 50, "batch.size": 1_000_000, "queue.buffering.max.messages": 1_000_000}
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "compression.type": "lz4", **batches})
    for at, key in enumerate(keys):
        while True:
            try:
                producer.produce(name, value % (at % 200), f"u{key}", partition=key % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.05)
    producer.flush()
    return name


def ours(bootstrap: str, posts: str, users: str) -> tuple[float, float]:
    """Seconds to read the table, and messages a second that our consumer joins."""
    address = {"bootstrap_servers": bootstrap}
    table = LookupTable.from_kafka(users, value=json_value({"country": pl.String}), **address)
    rows = Stream.from_kafka(posts, value=json_value({"n": pl.Int64}), message=["key"], **address)
    aggregates = rows.join(table, on="key").group_by("country").tumbling("1h").agg(posts=count())
    began = time.perf_counter()
    reader = TableReader(table)
    reader.load()
    loaded = time.perf_counter() - began
    assert len(reader.contents) == KEYS
    reader.close()
    began = time.perf_counter()
    run = aggregates.run(until="latest")
    seconds = time.perf_counter() - began
    assert run.account.counted == MESSAGES, run.account
    return loaded, MESSAGES / (seconds - loaded)


def peers(bootstrap: str, posts: str, users: str) -> tuple[float, float]:
    """The same of Quix Streams."""
    command = [quix_python(), str(PEERS / "quix_join.py"), bootstrap, posts, users, str(OF_PEER)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1_200, check=True)
    loaded, rate = done.stdout.split()[-2:]
    return float(loaded), float(rate)


def main() -> list[dict[str, Any]]:
    assert Path(quix_python()).exists()
    random = np.random.default_rng(1)
    with EmbeddedKafka() as broker:
        at = broker.bootstrap_servers
        users = filled(broker, "users", range(KEYS), '{"country":"c%d"}', compact=True)
        posts = filled(broker, "posts", random.integers(0, KEYS, MESSAGES).tolist(), '{"n":%d}')
        mine, theirs = [], []
        for _ in range(RUNS):
            mine.append(ours(at, posts, users))
            theirs.append(peers(at, posts, users))
    (load, rate), (slow, peer) = (
        (statistics.median(one) for one in zip(*result, strict=True)) for result in (mine, theirs)
    )
    return [
        {
            "claim": f"joined with a table of {KEYS:,} keys, against Quix Streams",
            "ours": f"{rate / 1e6:.2f} M/s",
            "peer": f"{peer / 1e6:.3f} M/s",
            "ratio": f"{rate / peer:.0f}",
            "target": "≥ 10",
        },
        {
            "claim": "the table read, before the first message",
            "ours": f"{load:.1f} s",
            "peer": f"{slow:.1f} s",
            "ratio": f"{slow / load:.0f}",
            "target": "report",
        },
    ]
