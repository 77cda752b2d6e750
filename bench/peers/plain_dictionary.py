"""The plain way to count users by second and tag: a dictionary of `datasketches` HLLs that nothing keeps.

Tuned confluent-kafka, JSON by Polars, one update a message. Usage: ``python plain_dictionary.py BOOTSTRAP
TOPIC MESSAGES``; prints the number of groups and messages a second.
"""

from __future__ import annotations

import sys
import time

import polars as pl
from confluent_kafka import Consumer, TopicPartition
from datasketches import HLL_8, hll_sketch
from plain_confluent import TUNED

SCHEMA = {"user": pl.String, "tag": pl.String, "ts": pl.Int64}


def main(bootstrap: str, topic: str, messages: int) -> None:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "peer", "enable.auto.commit": False, **TUNED}
    )
    partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
    consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
    users: dict[tuple[int, str], hll_sketch] = {}
    read, start = 0, time.perf_counter()
    while read < messages:
        batch = consumer.consume(100_000, 1.0)
        if not batch:
            continue
        read += len(batch)
        rows = pl.read_ndjson(b"\n".join([message.value() for message in batch]), schema=SCHEMA)
        seconds = (rows["ts"] // 1_000).to_list()
        for second, tag, user in zip(seconds, rows["tag"].to_list(), rows["user"].to_list(), strict=True):
            group = second, tag
            sketch = users.get(group)
            if sketch is None:
                sketch = users[group] = hll_sketch(12, HLL_8)
            sketch.update(user)
    print(len(users), read / (time.perf_counter() - start))
    consumer.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
