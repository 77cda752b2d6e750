"""The same questions answered without any sketch: every message, one by one, in plain Python.

Nothing here is shared with the engines but the stream's definition of windows and lateness, so that an answer
that agrees was found twice. It needs memory for every author and tag; that is what sketches are for.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from ...operators.definition.stream import Stream
from ...operators.definition.windows import ByCount
from ...operators.sketching.accounting import Account
from ...operators.sketching.lateness import CONFIRMED

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class ExactWindow:
    """One window: its posts, its different authors, and how many posts carry each tag."""

    posts: int = 0
    authors: set[str] = field(default_factory=set)
    tags: Counter[str] = field(default_factory=Counter)


class Exact:
    """Exact answers to the trending stream, from its messages in each partition's order.

    `windows`, each of `length`, by their start; `account` of what became of every message; `repeated` is the
    number of posts that had come before: they count again, here as in the sketches.

    >>> from streamgauge.apps.trending.stream import trending
    >>> exact = Exact(trending(every="1m"))
    >>> exact.add(0, b'{"kind":"post","author":"ann","created_at":"2026-06-01T12:00:00Z","tags":["a"]}')
    >>> exact.add(0, b'{"kind":"like","author":"bob","created_at":"2026-06-01T12:00:01Z"}')
    >>> exact.add(0, b'{broken')
    >>> exact.account
    Account(read=3, counted=1, filtered=1, late=0, dead_lettered=1)
    """

    def __init__(self, stream: Stream) -> None:
        window = stream.complete().window
        assert window is not None and not isinstance(window, ByCount)
        self.length = timedelta(microseconds=window.pane_us)
        self._delay = timedelta(microseconds=stream.delay_us)
        self._ahead = timedelta(microseconds=stream.max_ahead_us)
        self._latest: dict[int, datetime] = {}
        self._rows: Counter[int] = Counter()
        self._jumped: dict[int, list[datetime]] = {}
        self._ids: set[str] = set()
        self._became: Counter[str] = Counter()
        self.windows: dict[datetime, ExactWindow] = {}
        self.repeated = 0

    @property
    def account(self) -> Account:
        """What became of the messages."""
        return Account(read=self._became.total(), **self._became)

    def add(self, partition: int, value: bytes | None, timestamp_ms: int = 0) -> None:
        """Take a partition's next message. A timestamp of 0 is none: then no clock is taken for broken."""
        self._became[self._take(partition, value, timestamp_ms)] += 1

    def _take(self, partition: int, value: bytes | None, timestamp_ms: int) -> str:
        post = _parse(value)
        if post is None:
            return "dead_lettered"
        if post.get("kind") != "post":
            return "filtered"
        at = _time(post)
        if at is None or (timestamp_ms and self._is_broken(at, timestamp_ms)):
            return "dead_lettered"
        latest = self._latest.get(partition)
        self._move(partition, at)
        start = at - (at - _EPOCH) % self.length
        if latest is not None and start + self.length <= latest - self._delay:
            return "late"
        self._count(self.windows.setdefault(start, ExactWindow()), post)
        return "counted"

    def _move(self, partition: int, at: datetime) -> None:
        """Move a partition's time to a row's, unless that is too far for one row to be believed."""
        latest, rows = self._latest.get(partition, at), self._rows[partition]
        self._rows[partition] += 1
        jumped = self._jumped.setdefault(partition, [])
        begins = rows < CONFIRMED
        far = self._ahead >= timedelta() and (
            at - latest > self._ahead or (begins and latest - at > self._ahead)
        )
        if not far:
            self._latest[partition] = max(latest, at)
            jumped.clear()
            return
        if begins:
            if jumped and abs(at - jumped[-1]) <= self._ahead:
                self._latest[partition] = max(at, jumped[-1])
                jumped.clear()
            else:
                jumped[:] = [at]
            return
        jumped[:] = [*(time for time in jumped if time > latest), at]
        if len(jumped) == CONFIRMED:
            close = max(jumped) - min(jumped) <= self._ahead
            self._latest[partition] = max(jumped) if close else min(jumped)
            jumped.clear()

    def _is_broken(self, at: datetime, timestamp_ms: int) -> bool:
        return (
            self._ahead >= timedelta() and at - (_EPOCH + timedelta(milliseconds=timestamp_ms)) > self._ahead
        )

    def _count(self, window: ExactWindow, post: dict[str, Any]) -> None:
        window.posts += 1
        if post.get("author"):
            window.authors.add(post["author"])
        window.tags.update(tag for tag in post.get("tags") or () if tag is not None)
        if name := post.get("id"):
            self.repeated += name in self._ids
            self._ids.add(name)


def _parse(value: bytes | None) -> dict[str, Any] | None:
    try:
        post = json.loads(value or b"")
    except ValueError:
        return None
    return post if isinstance(post, dict) else None


def _time(post: dict[str, Any] | None) -> datetime | None:
    try:
        return datetime.fromisoformat((post or {})["created_at"])
    except (KeyError, TypeError, ValueError):
        return None


def read_exact(
    stream: Stream, bootstrap_servers: str, progress: Callable[[int, int], object] = lambda done, all: None
) -> Exact:
    """The exact answers over all messages now in the stream's topic, read by a plain consumer.

    `progress` is told how many of how many are counted. Raises `KafkaException` if the topic is unknown.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "streamgauge-exact",
            "enable.auto.commit": False,
            "fetch.queue.backoff.ms": 10,
            "log_level": 0,
        }
    )
    try:
        topic = stream.source.topic  # type: ignore[union-attr]
        known = consumer.list_topics(topic, timeout=10).topics[topic]
        if known.error is not None:
            raise KafkaException(known.error)
        ends = {p: consumer.get_watermark_offsets(TopicPartition(topic, p)) for p in known.partitions}
        total = sum(high - low for low, high in ends.values())
        consumer.assign([TopicPartition(topic, p, low) for p, (low, high) in ends.items() if high > low])
        exact, done = Exact(stream), 0
        while done < total:
            for message in consumer.consume(10_000, timeout=0.5):
                if message.error() is not None:
                    raise KafkaException(message.error())
                partition, offset = message.partition(), message.offset()
                assert partition is not None and offset is not None
                if offset < ends[partition][1]:
                    exact.add(partition, message.value(), message.timestamp()[1])
                    done += 1
            progress(done, total)
        return exact
    finally:
        consumer.close()
