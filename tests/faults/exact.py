"""The exact answer, recomputed from the input by the rules as the documentation has them."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition

from streamgauge.operators.sketching.accounting import Account

from .posts import DELAY_US, FILTERED, WINDOW_US


@dataclass
class Cell:
    """What is known of one window and tag."""

    posts: int = 0
    amount: int = 0
    users: set[int] = field(default_factory=set)

    @property
    def answer(self) -> tuple[int, int, int]:
        """Posts, their amount, different users."""
        return self.posts, self.amount, len(self.users)


@dataclass
class Exact:
    """The cells by the window's start (int64 microseconds) and tag, the account, the poison's places."""

    cells: dict[tuple[int, str], tuple[int, int, int]]
    account: Account
    poison: dict[tuple[int, int], bytes | None]


def exact(bootstrap_servers: str, topic: str) -> Exact:
    """The exact answer to what `posts.asked` asks, from one read of the whole topic."""
    cells: dict[tuple[int, str], Cell] = defaultdict(Cell)
    poison: dict[tuple[int, int], bytes | None] = {}
    read = filtered = late = 0
    seen: dict[int, float] = defaultdict(lambda: -math.inf)
    for message in messages(bootstrap_servers, topic):
        read += 1
        partition, value = message.partition(), message.value()
        if message.headers():
            poison[partition, message.offset()] = value
            continue
        post: dict[str, Any] = json.loads(value)
        start = post["at"] - post["at"] % WINDOW_US
        if post["user"] == FILTERED:
            filtered += 1
        elif start + WINDOW_US <= seen[partition] - DELAY_US:
            late += 1
        else:
            cell = cells[start, post["tag"]]
            cell.posts += 1
            cell.amount += post["amount"]
            cell.users.add(post["user"])
            seen[partition] = max(seen[partition], post["at"])
    counted = read - filtered - late - len(poison)
    account = Account(read, counted, filtered, late, len(poison))
    return Exact({key: cell.answer for key, cell in cells.items()}, account, poison)


def messages(bootstrap_servers: str, topic: str) -> Iterator[Message]:
    """All committed messages of a topic, each partition in order."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "the exact answer",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    try:
        known = consumer.list_topics(topic, timeout=60).topics[topic].partitions
        consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in known])
        left = set(known)
        while left:
            message = consumer.poll(60)
            assert message is not None, f"the topic {topic} gave nothing for a minute"
            if message.error() is None:
                yield message
            elif message.error().code() == KafkaError._PARTITION_EOF:
                left.discard(message.partition())
    finally:
        consumer.close()
