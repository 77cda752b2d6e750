"""The fastest one would write without streamgauge: tuned confluent-kafka, JSON by Polars, `datasketches`.

Usage: ``python plain_polars.py BOOTSTRAP TOPIC MESSAGES``; prints messages a second.
"""

from __future__ import annotations

import sys
import time

import datasketches
import polars as pl
from confluent_kafka import Consumer, TopicPartition
from plain_confluent import TUNED

SCHEMA = {"user": pl.String, "tag": pl.String, "price": pl.Float64}


def main(bootstrap: str, topic: str, messages: int) -> None:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "peer", "enable.auto.commit": False, **TUNED}
    )
    partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
    consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
    users = datasketches.hll_sketch(12, datasketches.HLL_8)
    prices = datasketches.kll_doubles_sketch(200)
    tags = datasketches.frequent_strings_sketch(10)
    read, start = 0, time.perf_counter()
    while read < messages:
        batch = consumer.consume(100_000, 1.0)
        if not batch:
            continue
        read += len(batch)
        rows = pl.read_ndjson(b"\n".join([message.value() for message in batch]), schema=SCHEMA)
        prices.update(rows["price"].to_numpy())
        for user in rows["user"].to_list():
            users.update(user)
        for tag, count in rows["tag"].value_counts().iter_rows():
            tags.update(tag, count)
    print(read / (time.perf_counter() - start))
    consumer.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
