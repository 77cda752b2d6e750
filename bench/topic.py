"""A topic full of small JSON messages, for every benchmark that reads from Kafka."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
from confluent_kafka import Producer

from streamgauge import Stream, distinct, kll_quantiles, top_k
from streamgauge import json as json_value
from streamgauge.apps.dev.kafka.broker import EmbeddedKafka

PARTITIONS = 4
MESSAGES = int(os.environ.get("MESSAGES", 3_000_000))
"""Fewer only to try a script."""
BY_CONSUME = {"sasl.kerberos.kinit.cmd": "true"}
"""A setting that says nothing here, and that only librdkafka has: with it, reading is by `consume()`."""
SCHEMA = {"user": pl.String, "tag": pl.String, "price": pl.Float64, "ts": pl.Int64}


def posts(n: int, seed: int = 1, zipf: float = 1.3, minutes: int = 1) -> pl.Series:
    """`n` posts of about 70 bytes as JSON lines, over `minutes` of event time; tags follow a Zipf law."""
    rng = np.random.default_rng(seed)
    columns = {
        '{"user":"u': rng.integers(100_000, 600_000, n),
        '","tag":"t': np.minimum(rng.zipf(zipf, n), 100_000),
        '","price":': np.round(rng.lognormal(3, 1, n), 2),
        ',"ts":': 1_700_000_000_000 + np.arange(n) * 60_000 * minutes // n,
    }
    parts = [part for text, column in columns.items() for part in (pl.lit(text), pl.Series(column))]
    return pl.select(pl.concat_str([*parts, pl.lit("}")])).to_series()


def sketched(bootstrap: str, topic: str, config: Mapping[str, Any] = {}) -> Stream:
    """Three sketches of such a topic in windows of a minute."""
    rows = Stream.from_kafka(
        topic,
        value=json_value(SCHEMA),
        time=pl.from_epoch("ts", time_unit="ms"),
        bootstrap_servers=bootstrap,
        config=config,
    )
    return rows.tumbling("1m").agg(users=distinct("user"), prices=kll_quantiles("price"), tags=top_k("tag"))


def filled(broker: EmbeddedKafka, name: str, n: int, zipf: float = 1.3, minutes: int = 1) -> str:
    """Create the topic `name` with `n` posts spread over its partitions; returns the name."""
    broker.create_topic(name, PARTITIONS)
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "linger.ms": 50,
            "batch.size": 1_000_000,
            "batch.num.messages": 100_000,
            "queue.buffering.max.messages": 1_000_000,
            "compression.type": "lz4",
        }
    )
    for i, line in enumerate(posts(n, zipf=zipf, minutes=minutes).to_list()):
        while True:
            try:
                producer.produce(name, line, partition=i % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.05)
    producer.flush()
    return name
