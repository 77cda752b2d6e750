"""A topic of posts with everything in it that a topic can have, or two, and the streams over them."""

from __future__ import annotations

import json
import random
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import polars as pl
from confluent_kafka import Message, Producer
from confluent_kafka.admin import AdminClient, NewPartitions

from streamgauge import Stream, count, distinct_set
from streamgauge import json as json_value
from streamgauge import sum as sum_of

Place = tuple[str, int]
"""A topic and a partition's number."""

SLICE = 100
"""Posts of one second: with their lag of up to a second no more than the shortest delay."""
START_US = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp() * 1e6)
WITHIN_US = 3_000_000
DAY_US = 86_400_000_000
FILTERED = 13
"""The user whose posts are filtered out."""
POISON: dict[str, bytes | None] = {
    "cut off": b'{"at": 1767225600000000, "user": 1, "tag',
    "empty": b"",
    "a tombstone": None,
    "not UTF-8": b'{"at": 1767225600000000, "user": 1, "tag": "\xff\xfe", "amount": 1}',
    "another type": b'{"at": 1767225600000000, "user": "ann", "tag": "a", "amount": 1}',
    "no event time": b'{"user": 1, "tag": "a", "amount": 1}',
    "a time before all time": b'{"at": -9223372036854775808, "user": 1, "tag": "a", "amount": 1}',
    "a number too large": b'{"at": 1767225600000000, "user": 99999999999999999999, "tag": "a", "amount": 1}',
    "an array": b'[{"at": 1767225600000000, "user": 1, "tag": "a", "amount": 1}]',
    "deeply nested": b'{"tag": ' + b"[" * 5_000 + b"]" * 5_000 + b"}",
    "large and broken": b'{"tag": "' + b"x" * 500_000,
    "Avro": b"\x00\x00\x00\x00\x07\x02\x0eann",
}
"""Messages that can't be counted; one more, of a clock that is ahead of ours, is made as it is sent."""
AHEAD = "a clock ahead of ours"
OF_TIME = {"no event time", "a time before all time", AHEAD}
"""Those that only windows can't count: they are rows, and are sent on."""


@dataclass(frozen=True)
class StreamCase:
    """A question about the posts: the seconds of its windows and of their delay, whom it leaves out.

    With `rows_to` it has no windows: its rows are sent on to that topic.
    """

    window: int = 10
    delay: int = 2
    without: int = FILTERED
    rows_to: str = ""

    @property
    def window_us(self) -> int:
        """The length of its windows in microseconds."""
        return self.window * 1_000_000

    @property
    def delay_us(self) -> int:
        """Their delay in microseconds."""
        return self.delay * 1_000_000


ALONE = {"": StreamCase()}
"""The options of a run of one stream."""
TOGETHER = {"tags": StreamCase(), "wide": StreamCase(window=25, delay=4, without=FILTERED + 1)}
"""The options of two streams that share one reading."""


def stream_of(
    requested: StreamCase, topics: Sequence[str], bootstrap_servers: str, config: Mapping[str, Any]
) -> Stream:
    """The stream of it: each answer can be recomputed without a sketch's error.

    Posts of two topics are joined by their user, and those of either that find no partner are there as well.
    """
    value = json_value({"at": pl.Int64, "user": pl.Int64, "tag": pl.String, "amount": pl.Int64})
    time = pl.from_epoch("at", time_unit="us")
    if requested.rows_to:
        (topic,) = topics
        return (
            Stream.from_kafka(
                topic, value=value, time=time, bootstrap_servers=bootstrap_servers, config=config
            )
            .filter(pl.col("user") != requested.without)
            .rows_to_kafka(requested.rows_to, key="tag")
        )
    rows, *others = (
        Stream.from_kafka(
            topic, value=value, time=time, bootstrap_servers=bootstrap_servers, config=config
        ).filter(pl.col("user") != requested.without)
        for topic in topics
    )
    for other in others:
        rows = rows.join(other, on="user", within="3s", how="outer").with_columns(
            tag=pl.coalesce("tag", "tag_right"),
            amount=pl.col("amount").fill_null(0) + 3 * pl.col("amount_right").fill_null(0),
        )
    windows = rows.group_by("tag").tumbling(f"{requested.window}s", delay=f"{requested.delay}s")
    return windows.agg(posts=count(), amount=sum_of("amount"), users=distinct_set("user"))


class Posts:
    """Writes posts, 10 ms of event time apart, in turn to all partitions but those that are `idle`.

    The clock of the partitions that are `ahead` is a day ahead of the others'. One post in fifty is late; no
    other is, however long the broker lets one partition wait: each post of a slice is in the log before the
    next slice is sent.
    Several topics have equally many partitions, and those of one number are alike.
    """

    def __init__(
        self, broker: Any, topics: Sequence[str], partitions: int, seed: int, idle: int = 0, ahead: int = 0
    ) -> None:
        self.broker = broker
        self.topics = tuple(topics)
        self.partitions = partitions
        self.ends: dict[Place, int] = {
            (topic, partition): 0 for partition in range(partitions) for topic in topics
        }
        self.sent = 0
        self.made: list[tuple[int, int, str]] = []
        """The event time, user and tag of each post, before it is sent."""
        self._random = random.Random(seed)
        self._idle, self._ahead = idle, range(partitions - ahead, partitions)
        self._number = 0
        for topic in topics:
            broker.create_topic(topic, partitions=partitions)
        self._producer = self._made()

    def send(self, n: int, poison: int = 0) -> None:
        """Write the next `n` posts, and `poison` messages among them that can't be counted."""
        at = set(self._random.sample(range(n), poison))
        self._write(self._producer, n, at, self._delivered)
        _flush(self._producer)

    def send_aborted(self, n: int) -> None:
        """Write posts in a transaction that is aborted: nobody may count them."""
        producer = self._made(**{"transactional.id": f"aborted-{uuid.uuid4()}"})
        producer.init_transactions(60)
        producer.begin_transaction()
        number, random_state = self._number, self._random.getstate()
        made, self.made = self.made, []
        self._write(producer, n, set(), lambda error, message: None)
        self.made = made
        _flush(producer)
        producer.abort_transaction(60)
        self._number = number
        self._random.setstate(random_state)

    def add_partition(self) -> None:
        """Add one partition."""
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap_servers})
        for topic in self.topics:
            with self.broker.calm():
                admin.create_partitions([NewPartitions(topic, self.partitions + 1)])[topic].result(120)
            self.ends[topic, self.partitions] = 0
        self.partitions += 1
        self._producer = self._made()  # one that knows of it

    def _made(self, **more: Any) -> Producer:
        return Producer(
            {
                "bootstrap.servers": self.broker.bootstrap_servers,
                "linger.ms": 5,
                "enable.idempotence": True,  # retries keep their order
                "message.timeout.ms": 0 if not more else 60_000,
                "log_level": 0,
                **more,
            }
        )

    def _write(self, producer: Producer, n: int, poison: set[int], accepted: Any) -> None:
        busy = [place for place in self.ends if place[1] >= self._idle]
        for at in range(n):
            place = busy[at % len(busy)]
            # The last post of each partition is on time: all end at the same event time.
            value = self._post(place[1], on_time=at >= n - len(busy))
            if at in poison:
                kind = self._random.choice([*POISON, AHEAD])
                reported = POISON.get(kind, self._ahead_of_ours())
                self._produce(producer, reported, place, accepted, [("poison", kind.encode())])
            self._produce(producer, value, place, accepted)
            if (at + 1) % SLICE == 0:
                _flush(producer)

    def _post(self, partition: int, on_time: bool) -> bytes:
        self._number += 1
        clock = START_US + self._number * 10_000 + DAY_US * (partition in self._ahead)
        lag = 0 if on_time else self._random.randrange(1_000_000)
        if not on_time and self._random.random() < 0.02:
            lag += 15_000_000
        user = self._random.randrange(200)
        tag = "abcdefg"[user % 7]
        self.made.append((clock - lag, user, tag))
        post = {"at": clock - lag, "user": user, "tag": tag, "amount": self._number % 1_000}
        return json.dumps(post).encode()

    def _ahead_of_ours(self) -> bytes:
        at = int(time.time() * 1e6) + DAY_US
        return json.dumps({"at": at, "user": 1, "tag": "a", "amount": 1}).encode()

    def _produce(
        self, producer: Producer, value: bytes | None, place: Place, accepted: Any, headers: Any = ()
    ) -> None:
        topic, partition = place
        producer.produce(topic, value, partition=partition, headers=list(headers), on_delivery=accepted)
        producer.poll(0)

    def _delivered(self, error: object, message: Message) -> None:
        assert error is None, error
        self.sent += 1
        place, offset = (message.topic(), message.partition()), message.offset()
        self.ends[place] = max(self.ends[place], offset + 1)


def _flush(producer: Producer) -> None:
    assert producer.flush(300) == 0, "the broker accepted no messages for five minutes"
