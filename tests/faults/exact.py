"""The exact answer, recomputed from the input by the rules as the documentation has them."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition

from streamgauge.operators.sketching.account import Account

from .posts import OF_TIME, WITHIN_US, Place, StreamCase

MessageAt = tuple[str, int, int]
"""A message's topic, partition and offset."""


@dataclass
class Post:
    """One that is on time; `partners` are those in the other topic."""

    at: int
    user: int
    tag: str
    amount: int
    partners: int = 0


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
    """The cells by the window's start (int64 microseconds) and tag, the account, the poison's places.

    If the stream sends its rows on, `rows` holds them by the place of their message, and there are no cells.
    """

    cells: dict[tuple[int, str], tuple[int, int, int]]
    account: Account
    poison: dict[MessageAt, bytes | None]
    rows: dict[MessageAt, dict[str, Any]]


def exact(bootstrap_servers: str, topics: Sequence[str], requested: StreamCase, ended: bool = True) -> Exact:
    """The exact answer to a question about the posts, from one read of each topic, whole.

    Once a bounded run has `ended`, posts of joined topics that still waited for a partner are counted.
    """
    poison: dict[MessageAt, bytes | None] = {}
    on_time: dict[Place, list[Post]] = defaultdict(list)
    seen: dict[Place, float] = defaultdict(lambda: -math.inf)
    rows: dict[MessageAt, dict[str, Any]] = {}
    read = late = 0
    for topic in topics:
        for message in messages(bootstrap_servers, topic):
            read += 1
            place, value = (topic, message.partition()), message.value()
            headers = message.headers()
            if headers and not (requested.rows_to and headers[0][1].decode() in OF_TIME):
                poison[*place, message.offset()] = value
                continue
            row = {"at": None, **json.loads(value)}
            if row["user"] == requested.without:
                continue
            if requested.rows_to:
                rows[*place, message.offset()] = row
                continue
            post = Post(**row)
            if _end(post.at, requested) <= seen[place] - requested.delay_us:
                late += 1
            else:
                on_time[place].append(post)
                seen[place] = max(seen[place], post.at)
    cells: dict[tuple[int, str], Cell] = defaultdict(Cell)
    counted = len(rows)
    if len(topics) == 1:
        for post in (post for posts in on_time.values() for post in posts):
            counted += 1
            _add(cells, requested, post.at, post, post.amount)
    else:
        counted = _pair(requested, on_time, seen, topics, cells, ended)
    account = Account(read, counted, read - counted - late - len(poison), late, len(poison))
    return Exact({key: cell.answer for key, cell in cells.items()}, account, poison, rows)


def _pair(
    requested: StreamCase,
    on_time: dict[Place, list[Post]],
    seen: dict[Place, float],
    topics: Sequence[str],
    cells: dict[tuple[int, str], Cell],
    ended: bool,
) -> int:
    """Count pairs, and posts for which no partner can come any more; gives how many posts are in any."""
    counted = 0
    for number in {number for _, number in on_time}:
        left, right = ((topic, number) for topic in topics)
        by_user: dict[int, list[Post]] = defaultdict(list)
        for post in on_time[right]:
            by_user[post.user].append(post)
        for one in on_time[left]:
            for two in by_user[one.user]:
                if abs(one.at - two.at) <= WITHIN_US:
                    one.partners += 1
                    two.partners += 1
                    _add(cells, requested, max(one.at, two.at), one, one.amount + 3 * two.amount)
        for own, other, weight in ((left, right, 1), (right, left, 3)):
            for post in on_time[own]:
                over = _end(post.at + WITHIN_US, requested) <= seen[other] - requested.delay_us
                alone = not post.partners and (over or ended)
                if alone:
                    _add(cells, requested, post.at, post, weight * post.amount)
                counted += alone or post.partners > 0
    return counted


def _end(at: int, requested: StreamCase) -> int:
    return at - at % requested.window_us + requested.window_us


def _add(cells: dict[tuple[int, str], Cell], requested: StreamCase, at: int, post: Post, amount: int) -> None:
    cell = cells[at - at % requested.window_us, post.tag]
    cell.posts += 1
    cell.amount += amount
    cell.users.add(post.user)


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
        known = consumer.list_topics(topic, timeout=120).topics[topic].partitions
        consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in known])
        left = set(known)
        while left:
            message = consumer.poll(120)
            assert message is not None, f"the topic {topic} gave nothing for a minute"
            if message.error() is None:
                yield message
            elif message.error().code() == KafkaError._PARTITION_EOF:
                left.discard(message.partition())
    finally:
        consumer.close()
