"""Two streams joined on a real broker: workers killed, runs started again, partitions handed over."""

from __future__ import annotations

import json as plain_json
import os
import signal
import uuid
from typing import Any

import pytest
from confluent_kafka import Producer

from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import run, start
from streamgauge.operators.consumer.worker import worker
from streamgauge.operators.definition.joining import MOST_ROWS, Between
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.kafka.topics import TopicError
from streamgauge.operators.sketching.account import Account
from streamgauge.operators.table.query import query

from ...faulty_proxy import IMPATIENT
from ...waiting import until
from ..consumer.runs import Windows
from .orders import START_US
from .pairs import Answer, Row, answer, joined, random_rows

pytestmark = pytest.mark.kafka

NOW_US = START_US + 20 * 60 * 1_000_000
N = 1_200


class Topics:
    """Two topics of two partitions each, sent piece by piece."""

    def __init__(self, kafka: Any, how: Between, limit: int = MOST_ROWS) -> None:
        self.limit = limit
        suffix = uuid.uuid4().hex[:8]
        self.names = f"left-{suffix}", f"right-{suffix}"
        self.address, self.how = kafka.bootstrap_servers, how
        for name in self.names:
            kafka.create_topic(name, partitions=2)
        self.rows = [random_rows(70 + partition, N) for partition in range(2)]
        self.share = 0.0
        self.producer = Producer({"bootstrap.servers": self.address, "enable.idempotence": True})

    @property
    def stream(self) -> Stream:
        where = {"bootstrap_servers": self.address, "config": IMPATIENT}
        return joined(self.how, False, self.names, self.limit, **where)

    def send(self, share: float) -> int:
        """Send up to a share of all rows; gives how many have been sent."""
        sent = 0
        for partition, sides in enumerate(self.rows):
            for name, rows in zip(self.names, sides):
                for row in rows[int(self.share * len(rows)) : int(share * len(rows))]:
                    self._produce(name, partition, row)
                sent += int(share * len(rows))
        self.share = share
        assert self.producer.flush(120) == 0
        return sent

    def _produce(self, name: str, partition: int, row: Row) -> None:
        value = plain_json.dumps(row).encode()
        self.producer.produce(name, value, partition=partition, timestamp=NOW_US // 1_000)

    def check(self, windows: Windows, account: Account) -> None:
        wanted = [
            answer(_up_to(self.share, sides), self.how, False, NOW_US, ended=True) for sides in self.rows
        ]
        assert account == sum((one.account for one in wanted), Account())
        cells = query(windows.table()).select("window_start", "rows", "n", "m").iter_rows()
        result = {int(start.timestamp() * 1e6): (rows, n or 0, m or 0) for start, rows, n, m in cells}
        assert result == _added(wanted)


def _up_to(share: float, sides: tuple[list[Row], list[Row]]) -> tuple[list[Row], list[Row]]:
    left, right = (rows[: int(share * len(rows))] for rows in sides)
    return left, right


def _added(answers: list[Answer]) -> dict[int, tuple[int, ...]]:
    starts = {at for one in answers for at in one.windows}
    return {
        at[0]: tuple(map(sum, zip(*(one.windows.get(at, (0, 0, 0)) for one in answers)))) for at in starts
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    "moves", [False, pytest.param(True, marks=pytest.mark.soak)], ids=["killed", "moved"]
)
def test_a_join_is_exact_while_workers_are_killed_and_partitions_handed_over(kafka: Any, moves: bool) -> None:
    topics, windows = Topics(kafka, "outer"), Windows()
    options: dict[str, Any] = {
        "group_id": topics.names[0],
        "on_window": windows,
        "checkpoint_seconds": 0.1,
        "idle_seconds": 600.0,
    }
    running = start(topics.stream, RunOptions(workers=2, **options))
    for share, kill in ((0.2, True), (0.4, moves), (0.5, False)):
        sent = topics.send(share)
        until(lambda sent=sent: running.summary().account.read == sent)
        if kill:
            os.kill(running.worker_pids[0], signal.SIGKILL)
    running.stop()
    running.wait(120)
    if moves:
        _hand_over(topics, options)
    topics.send(0.9)
    topics.check(windows, run(topics.stream, RunOptions(until="latest", **options)).account)
    topics.check(windows, run(topics.stream, RunOptions(until="latest", **options)).account)
    topics.send(1.0)
    topics.check(windows, run(topics.stream, RunOptions(until="latest", **options)).account)


def _hand_over(topics: Topics, options: dict[str, Any]) -> None:
    """Two runs of a group: the second takes up half, and then the rest."""
    one = start(topics.stream, RunOptions(**options))
    until(lambda: one.assigned == 4)
    two = start(topics.stream, RunOptions(**options))
    until(lambda: two.assigned == 2)
    sent = topics.send(0.6)
    until(lambda: max(one.summary().account.read, two.summary().account.read) == sent)
    one.stop()
    one.wait(120)
    sent = topics.send(0.8)
    until(lambda: two.summary().account.read == sent)
    two.stop()
    two.wait(120)


def test_a_side_with_less_to_read_waits_for_the_other(kafka: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nine of ten messages on the left are filtered: read as fast, the right would be ten times ahead."""
    monkeypatch.setattr(worker, "_BATCH_MESSAGES", 100)
    topics, windows = Topics(kafka, "inner", limit=200), Windows()
    for left, right in topics.rows:
        del left[N // 4 :], right[N // 4 :]
        left[:] = [one for row in left for one in (row, *[{**row, "n": 3}] * 9)]
    topics.send(1.0)
    topics.check(windows, run(topics.stream, RunOptions(until="latest", on_window=windows)).account)


def test_topics_of_different_numbers_of_partitions_are_refused(kafka: Any) -> None:
    topics = Topics(kafka, "inner")
    kafka.create_topic("three-" + topics.names[1], partitions=3)
    topics.names = topics.names[0], "three-" + topics.names[1]
    with pytest.raises(TopicError, match=r"has 2 partitions and .* has 3"):
        run(topics.stream, RunOptions(until="latest"))
