"""Messages a second of two topics joined with each other in event time, against Quix Streams.

2.1 M JSON messages with a key, of about 30 bytes, in 2 × 4 partitions: ads, 500 a second of event time, and
the clicks on two of five of them within a minute. Ours holds the rows that wait in memory, counts pairs by
sketches with durable state, and gives the same pairs whichever topic is read first; Quix Streams' interval
join keeps its rows in RocksDB. The peer, which is much slower, joins the first part of the same two topics.
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from confluent_kafka import Producer

from streamgauge import Stream, count, quantiles
from streamgauge import json as json_value
from streamgauge.apps.dev.kafka.broker import EmbeddedKafka

from .kafka_to_sketches import RUNS, peer, quix_python
from .topic import MESSAGES, PARTITIONS

ADS = MESSAGES // 2
OF_PEER = ADS // 15
"""Ads that the peer joins."""
WITHIN_MS = 60_000
START_MS, STEP_MS = 1_767_225_600_000, 2


class Filled(NamedTuple):
    """Two topics, and how many messages and pairs they have."""

    ads: str
    clicks: str
    messages: int
    pairs: int


def filled(broker: EmbeddedKafka, name: str, ads: int) -> Filled:
    """Two topics of so many ads and the clicks on them; messages' timestamps are the event times."""
    random = np.random.default_rng(1)
    at = START_MS + STEP_MS * np.arange(ads)
    clicked = np.flatnonzero(random.random(ads) < 0.4)
    later = at[clicked] + random.integers(0, WITHIN_MS, len(clicked))
    order = np.argsort(later, kind="stable")
    topics = f"{name}-ads", f"{name}-clicks"
    rows = (np.arange(ads), at, '{"page":"p%d"}'), (clicked[order], later[order], '{"button":%d}')
    for topic, (keys, times, value) in zip(topics, rows, strict=True):
        broker.create_topic(topic, PARTITIONS, {"retention.ms": "-1"})
        _fill(broker, topic, keys.tolist(), times.tolist(), value)
    return Filled(*topics, ads + len(clicked), len(clicked))


def _fill(broker: EmbeddedKafka, topic: str, keys: list[int], times: list[int], value: str) -> None:
    batches = {"linger.ms": 50, "batch.size": 1_000_000, "queue.buffering.max.messages": 1_000_000}
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "compression.type": "lz4", **batches})
    for key, at in zip(keys, times, strict=True):
        while True:
            try:
                producer.produce(topic, value % (key % 50), f"a{key}", key % PARTITIONS, timestamp=at)
                break
            except BufferError:
                producer.poll(0.05)
    producer.flush()


def ours(bootstrap: str, topics: Filled) -> float:
    """Messages a second that our consumer joins."""
    ads, clicks = (
        Stream.from_kafka(
            topic,
            value=json_value(schema),
            message={"ad": "key", stamp: "timestamp"},
            bootstrap_servers=bootstrap,
        )
        for topic, schema, stamp in (
            (topics.ads, {"page": pl.String}, "shown"),
            (topics.clicks, {"button": pl.Int64}, "clicked"),
        )
    )
    pairs = ads.join(clicks, on="ad", within=f"{WITHIN_MS // 1_000}s")
    waited = (pl.col("clicked") - pl.col("shown")).dt.total_milliseconds()
    requested = pairs.with_columns(waited=waited).group_by("page").tumbling("1m")
    began = time.perf_counter()
    run = requested.agg(clicks=count(), waited=quantiles("waited")).run(until="latest")
    seconds = time.perf_counter() - began
    assert run.account.counted == 2 * topics.pairs, run.account
    assert run.windows()["clicks"].sum() == topics.pairs
    return topics.messages / seconds


def peers(bootstrap: str, topics: Filled) -> float:
    """The same of Quix Streams."""
    requested = bootstrap, topics.ads, topics.clicks, topics.pairs, WITHIN_MS
    return topics.messages / topics.pairs * peer(quix_python(), "quix_interval_join.py", *requested)


def main() -> list[dict[str, Any]]:
    assert Path(quix_python()).exists()
    with EmbeddedKafka() as broker:
        at = broker.bootstrap_servers
        all_of_them, some = filled(broker, "all", ADS), filled(broker, "some", OF_PEER)
        mine, theirs = [], []
        for _ in range(RUNS):
            mine.append(ours(at, all_of_them))
            theirs.append(peers(at, some))
    rate = statistics.median(mine)
    slow = statistics.median(theirs)
    return [
        {
            "claim": "two topics joined within a minute, against Quix Streams",
            "ours": f"{rate / 1e6:.2f} M/s",
            "peer": f"{slow / 1e6:.3f} M/s",
            "ratio": f"{rate / slow:.0f}",
            "target": "report",
        },
    ]
