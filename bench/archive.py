"""A topic into Parquet files: messages of 200 bytes a second of one processor, all threads counted.

Ours archives all of the topic, exactly once; Quix Streams' file sink, which decodes the values as text, a
tenth of it. Each in a process of its own, the embedded broker beside, in turns; medians of three. Both count
the time of processors of the process that writes, start-up left out. Asked: 1 M messages/s, 3 × Quix Streams.

`MESSAGES` in the environment is how many there are (3 M); fewer only to try the script.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from streamgauge.apps.dev.kafka.broker import EmbeddedKafka

from .kafka_to_sketches import PEERS, quix_python
from .topic import MESSAGES, PARTITIONS

SIZE = 200
ROUNDS = 3


def filled(broker: EmbeddedKafka, name: str) -> str:
    """A topic of lines of `SIZE` bytes, which are text that compresses as logs do."""
    broker.create_topic(name, PARTITIONS)
    settings = {"linger.ms": 50, "batch.size": 1_000_000, "compression.type": "lz4"}
    more = {"batch.num.messages": 100_000, "queue.buffering.max.messages": 500_000}
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, **settings, **more})
    for number in range(MESSAGES):
        line = f"{number:09d} host{number % 97} GET /path/{number * 7919 % 100_003}/index.html 200 "
        value = line.ljust(SIZE, "abcdefghij"[number % 10]).encode()
        while True:
            try:
                producer.produce(name, value, partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.05)
    producer.flush()
    return name


def ours(bootstrap: str, topic: str, folder: str) -> float:
    """Messages a second of processor time, in this process."""
    from streamgauge.agents.archive.archiver import Archiver
    from streamgauge.operators.archive.store import LocalStore

    archiver = Archiver({"bootstrap.servers": bootstrap}, [topic], LocalStore(Path(folder)))
    begun = time.process_time()
    account = archiver.run_once()
    seconds = time.process_time() - begun
    assert account.messages == MESSAGES, account
    return MESSAGES / seconds


def measured(command: list[str]) -> float:
    """The number that a process prints last."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    return float(done.stdout.split()[-1])


def main() -> list[dict[str, Any]]:
    quix = quix_python()
    rates: dict[str, list[float]] = {"ours": [], "Quix Streams": []}
    with EmbeddedKafka() as broker:
        topic, at = filled(broker, "lines"), broker.bootstrap_servers
        for _ in range(ROUNDS):
            with tempfile.TemporaryDirectory() as folder:
                rates["ours"].append(measured([sys.executable, "-m", "bench.archive", at, topic, folder]))
            with tempfile.TemporaryDirectory() as folder:
                script = str(PEERS / "quix_file_sink.py")
                count = str(MESSAGES // 10)
                rates["Quix Streams"].append(measured([quix, script, at, topic, count, folder]))
    median = {name: statistics.median(values) for name, values in rates.items()}
    ratio = median["ours"] / median["Quix Streams"]
    row = {"ours": f"{median['ours'] / 1e6:.2f} M/s", "peer": f"{median['Quix Streams'] / 1e6:.3f} M/s"}
    return [
        {"claim": "Kafka → Parquet, 200 bytes, of a core", **row, "ratio": f"{ratio:.1f}", "target": "≥ 3"}
    ]


if __name__ == "__main__":
    os.environ.setdefault("MESSAGES", str(MESSAGES))
    print(ours(*sys.argv[1:]))
