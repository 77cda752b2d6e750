"""A producer that never lets up, as a process of its own: the same block of posts again and again.

Started as ``python -m streamgauge.tests.faults.flood SERVERS TOPIC PARTITIONS``. Each line of its standard
input is a number of posts up to which it may go on; it ends when that closes.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from typing import Any

from confluent_kafka import Producer

from .posts import START_US

BLOCK = 10_000
BLOCK_MS = 10
"""Of event time; so a second has a million posts."""
TAGS = 10


def block() -> list[bytes]:
    """The posts of one block, as JSON without the event time, their first field."""
    rows = ({"user": n * 7 % 5_000, "tag": f"t{n % TAGS}", "amount": n % 97} for n in range(BLOCK))
    return [json.dumps(row).encode().removeprefix(b"{") for row in rows]


def answers() -> dict[str, tuple[int, int, int]]:
    """The exact answers to one block by tag: posts, their amount, different users."""
    by_key: dict[str, list[Any]] = defaultdict(lambda: [0, 0, set()])
    for post in (json.loads(b"{" + rest) for rest in block()):
        of_tag = by_key[post["tag"]]
        of_tag[0] += 1
        of_tag[1] += post["amount"]
        of_tag[2].add(post["user"])
    return {tag: (posts, amount, len(users)) for tag, (posts, amount, users) in by_key.items()}


def main(servers: str, topic: str, partitions: int) -> None:
    """Send blocks as far as the input allows."""
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "linger.ms": 20,
            "batch.size": 1_000_000,
            "batch.num.messages": BLOCK,
            "queue.buffering.max.messages": 20 * BLOCK,
            "compression.type": "lz4",
            "enable.idempotence": True,
        }
    )
    posts, sent = block(), 0
    for line in sys.stdin:
        while sent < int(line):
            number = sent // BLOCK
            at = b'{"at": %d, ' % (START_US // 1_000 + number * BLOCK_MS)
            while len(producer) > 10 * BLOCK:
                producer.poll(0.01)
            values = [{"value": at + post} for post in posts]
            accepted = producer.produce_batch(topic, values, partition=number % partitions)
            assert accepted == BLOCK, f"only {accepted} posts of a block were accepted"
            sent += BLOCK
    assert producer.flush(300) == 0


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
