"""Posts counted without any sketch: every message, one by one, in plain Python.

Nothing here is shared with the engines, so that an answer that agrees was computed twice.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from streamgauge.operators.sketching.account import Account

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Post = tuple[datetime, str, list[str]]
"""When, by whom, and with which tags."""


class NaivePosts:
    """Posts, authors and tags in windows of `length`, which wait for late ones for `delay`.

    `post` gives what an event holds, None of one that is no post; what it raises makes a dead letter of it.
    """

    def __init__(
        self, post: Callable[[dict[str, Any]], Post | None], length: timedelta, delay: timedelta
    ) -> None:
        self._post, self._length, self._delay = post, length, delay
        self._latest: dict[int, datetime] = {}
        self._became: Counter[str] = Counter()
        self.posts: Counter[datetime] = Counter()
        self.authors: dict[tuple[Any, ...], Counter[str]] = defaultdict(Counter)
        self.tags: dict[tuple[Any, ...], Counter[str]] = defaultdict(Counter)

    @property
    def account(self) -> Account:
        return Account(read=self._became.total(), **self._became)

    def add(self, partition: int, value: bytes) -> None:
        """A partition's next message."""
        self._became[self._counted(partition, value)] += 1

    def _counted(self, partition: int, value: bytes) -> str:
        try:
            post = self._post(json.loads(value))
        except (ValueError, KeyError, TypeError):
            return "dead_lettered"
        if post is None:
            return "filtered"
        at, author, tags = post
        before = self._latest.get(partition, at)
        self._latest[partition] = max(before, at)
        start = at - (at - EPOCH) % self._length
        window = start, start + self._length
        if window[1] <= before - self._delay:
            return "late"
        self.posts[start] += 1
        self.authors[window][author] += 1
        self.tags[window].update({tag.lower() for tag in tags})
        return "counted"

    def read(self, servers: str, topic: str, partitions: int) -> NaivePosts:
        """All messages that are in a topic now."""
        consumer = Consumer({"bootstrap.servers": servers, "group.id": "naive", "enable.auto.commit": False})
        for partition in range(partitions):
            _, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=120)
            consumer.assign([TopicPartition(topic, partition, 0)])
            done = 0
            while done < high:
                for message in consumer.consume(10_000, timeout=1):
                    assert message.error() is None
                    self.add(partition, message.value() or b"")
                    done += 1
        consumer.close()
        return self


def own_post(event: dict[str, Any]) -> Post | None:
    """A post in the project's own shape."""
    if event["kind"] != "post":
        return None
    return datetime.fromisoformat(event["created_at"]), event["author"], event.get("tags", [])


def jetstream_post(event: dict[str, Any]) -> Post | None:
    """A creation of a post on Bluesky, at the earlier of its author's time and its arrival."""
    commit = event.get("commit", {})
    if (commit.get("operation"), commit.get("collection")) != ("create", "app.bsky.feed.post"):
        return None
    record = commit["record"]
    features = [feature for facet in record.get("facets", []) for feature in facet["features"]]
    tags = [feature["tag"] for feature in features if "tag" in feature] + record.get("tags", [])
    arrived = EPOCH + timedelta(microseconds=event["time_us"])
    return min(arrived, datetime.fromisoformat(record["createdAt"])), event["did"], tags
