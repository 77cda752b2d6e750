"""Distinct users by one-second window and tag: tens of thousands of groups, whose state outlives the process.

3 M JSON messages, lz4, in 4 partitions, read from earliest to latest; the broker runs on the same machine.
Ours delivers exactly once, a checkpoint a second, and keeps open windows' sketches on Kafka. The peer is what
one would write with confluent-kafka, Polars and a dictionary of `datasketches` sketches, and keeps nothing.
Each figure is the median of three runs, taking turns.

In a trial of 33,764 groups, a run of other engines on two cores gave, where that dictionary gave 0.62 M/s:
Spark 0.21, Flink SQL 0.20 (exact), Pathway 0.20, Kafka Streams 0.12, Quix Streams 0.006, Bytewax 0.002.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import polars as pl

from streamgauge import Stream, distinct
from streamgauge import json as json_value
from streamgauge.apps.dev.kafka.broker import EmbeddedKafka

from .measure import line
from .topic import MESSAGES, filled

RUNS = 3
ZIPF = 1.8
"""3 M posts then have 34,331 pairs of a second and a tag."""
PEER = Path(__file__).parent / "peers" / "plain_dictionary.py"


def ours(bootstrap: str, topic: str, group: str) -> tuple[int, float]:
    """The number of groups, and messages a second from the call to the closed windows."""
    stream = (
        Stream.from_kafka(
            topic,
            value=json_value({"user": pl.String, "tag": pl.String, "ts": pl.Int64}),
            time=pl.from_epoch("ts", time_unit="ms"),
            bootstrap_servers=bootstrap,
        )
        .group_by("tag")
        .tumbling("1s")
        .agg(users=distinct("user"))
    )
    start = time.perf_counter()
    run = stream.run(until="latest", group_id=group)
    seconds = time.perf_counter() - start
    assert run.account.counted == MESSAGES, run.account
    return run.table.num_rows, MESSAGES / seconds


def dictionary(bootstrap: str, topic: str) -> tuple[int, float]:
    """The same of the dictionary, without its start-up."""
    command = [sys.executable, str(PEER), bootstrap, topic, str(MESSAGES)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    groups, rate = done.stdout.split()
    return int(groups), float(rate)


def main() -> list[dict[str, Any]]:
    rates: tuple[list[float], list[float]] = [], []
    with EmbeddedKafka() as broker:
        at = broker.bootstrap_servers
        topic = filled(broker, "posts", MESSAGES, ZIPF)
        for number in range(RUNS):
            groups, rate = ours(at, topic, f"ours-{number}")
            rates[0].append(rate)
            theirs, rate = dictionary(at, topic)
            rates[1].append(rate)
            assert groups == theirs, (groups, theirs)
    mine, peer = map(statistics.median, rates)
    return [
        line(
            f"distinct users by second and tag, {groups:,} groups, durable, against a dictionary in memory",
            f"{mine / 1e6:.2f} M/s",
            f"{peer / 1e6:.2f} M/s",
            mine / peer,
            "≥ 1.6, or 1 M/s",
        )
    ]
