"""What one would write with confluent-kafka and `datasketches`: a message at a time, as their pages show.

Usage: ``python plain_confluent.py BOOTSTRAP TOPIC MESSAGES tuned|defaults``; prints messages a second.
"""

from __future__ import annotations

import json
import sys
import time

import datasketches
from confluent_kafka import Consumer, TopicPartition

TUNED = {
    "fetch.queue.backoff.ms": 10,
    "queued.min.messages": 1_000_000,
    "queued.max.messages.kbytes": 1_000_000,
}


def main(bootstrap: str, topic: str, messages: int, setting: str) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "peer",
            "enable.auto.commit": False,
            **(TUNED if setting == "tuned" else {}),
        }
    )
    partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
    consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
    users = datasketches.hll_sketch(12, datasketches.HLL_8)
    prices = datasketches.kll_doubles_sketch(200)
    tags = datasketches.frequent_strings_sketch(10)
    read, start = 0, time.perf_counter()
    while read < messages:
        for message in consumer.consume(10_000, 1.0):
            row = json.loads(message.value())
            users.update(row["user"])
            prices.update(row["price"])
            tags.update(row["tag"])
            read += 1
    print(read / (time.perf_counter() - start))
    consumer.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
