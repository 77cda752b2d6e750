"""From producing a message to an answer that counts it: 100,000 messages a second through a run and a server.

A producer sends at that rate and notes when it handed each batch to its client; a run sketches them with a
checkpoint every 200 ms; a server follows the run's table topic and is asked for the count over HTTP, again
and again. The answer n says that the first n messages are queryable by then.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from typing import Any

import httpx
import numpy as np
import polars as pl

from streamgauge import Stream, count, distinct
from streamgauge import json as json_value
from streamgauge.apps.dev.kafka.broker import EmbeddedKafka
from streamgauge.queries.server.http.server import QueryServer
from streamgauge.queries.server.http.service import Service
from streamgauge.queries.views.live import LiveTable
from streamgauge.queries.views.table_follower import TableFollower

RATE = int(os.environ.get("BENCH_RATE", "100000"))
SECONDS = float(os.environ.get("BENCH_SECONDS", "20"))
BATCH_SECONDS = 0.01
GROUP, TOPIC = "delay", "posts"

PRODUCE = """
import json, sys, time
from confluent_kafka import Producer
address, topic, rate, seconds, step = sys.argv[1], sys.argv[2], *map(float, sys.argv[3:])
producer = Producer({"bootstrap.servers": address, "linger.ms": 5, "queue.buffering.max.messages": 1_000_000})
size, sent, reports, due = int(rate * step), 0, [], time.time()
until = due + seconds
while time.time() < until:
    value = json.dumps({"user": sent % 9973, "at": int(time.time() * 1e6)})
    for number in range(size):
        producer.produce(topic, value, partition=number % 4)
    sent += size
    reports.append((sent, time.time()))
    producer.poll(0)
    due += step
    time.sleep(max(0.0, due - time.time()))
producer.flush()
print(json.dumps(reports))
"""


def main() -> list[dict[str, Any]]:
    """One row."""
    with EmbeddedKafka() as kafka:
        kafka.create_topic(TOPIC, 4)
        config = {"bootstrap.servers": kafka.bootstrap_servers}
        stream = (
            Stream.from_kafka(
                TOPIC,
                value=json_value({"user": pl.Int64, "at": pl.Int64}),
                time=pl.from_epoch("at", time_unit="us"),
                bootstrap_servers=kafka.bootstrap_servers,
            )
            .tumbling("1s", delay="1s")
            .agg(posts=count(), users=distinct("user"))
        )
        run = stream.start(group_id=GROUP, checkpoint_seconds=0.2)
        table = LiveTable(GROUP)
        follower = TableFollower(GROUP, config, table)
        server = QueryServer(Service({GROUP: table}), port=0)
        thread = server.start()
        try:
            # The first second loads the kernels and finds the topics.
            before, _ = produced(kafka.bootstrap_servers, server.url, 0, RATE // 100, 1.0)
            sent, seen = produced(kafka.bootstrap_servers, server.url, before[-1][0], RATE, SECONDS)
        finally:
            follower.close()
            server.stop()
            thread.join()
            run.stop()
            run.wait(60)
    measured = delays(sent, seen)
    p50, p99 = np.quantile(measured, 0.5) * 1e3, np.quantile(measured, 0.99) * 1e3
    rate = sent[-1][0] / (sent[-1][1] - sent[0][1])
    return [
        {
            "claim": "from producing to a queryable answer, 200 ms checkpoints",
            "ours": f"p50 {p50:.0f} ms, p99 {p99:.0f} ms",
            "peer": f"{rate:,.0f} messages/s",
            "ratio": f"{len(seen):,} answers",
            "target": "p50 under 300 ms, p99 under 1 s",
        }
    ]


def produced(
    address: str, url: str, before: int, rate: int, seconds: float
) -> tuple[list[Any], list[tuple[int, float]]]:
    """How many messages were sent by when, with those before, and how many were in an answer by when."""
    ended = threading.Event()
    seen: list[tuple[int, float]] = []

    def ask() -> None:
        question = f"{url}/tables/{GROUP}/rows?every=span&by=none&columns=posts"
        with httpx.Client(timeout=60.0) as client:
            while not ended.is_set():
                response = client.get(question)
                rows = response.json().get("rows") if response.status_code == 200 else None
                if rows and (not seen or rows[0]["posts"] > seen[-1][0]):
                    seen.append((rows[0]["posts"], time.time()))
                time.sleep(0.01)

    asker = threading.Thread(target=ask)
    asker.start()
    given = [address, TOPIC, str(rate), str(seconds), str(BATCH_SECONDS)]
    done = subprocess.run([sys.executable, "-c", PRODUCE, *given], capture_output=True, text=True, check=True)
    sent = [(before + count, at) for count, at in json.loads(done.stdout)]
    deadline = time.monotonic() + 120.0
    while (not seen or seen[-1][0] < sent[-1][0]) and time.monotonic() < deadline:
        time.sleep(0.05)
    ended.set()
    asker.join()
    assert seen and seen[-1][0] == sent[-1][0], (seen[-1:], sent[-1])
    return sent, seen


def delays(sent: list[Any], seen: list[tuple[int, float]]) -> np.ndarray:
    """The delay of each batch in seconds, without those of the first two, when all gets going."""
    counts, times = np.array([n for n, _ in seen]), np.array([at for _, at in seen])
    begin = sent[0][1] + 2.0
    return np.array([times[np.searchsorted(counts, n)] - at for n, at in sent if at >= begin])


if __name__ == "__main__":
    for row in main():
        print(row)
