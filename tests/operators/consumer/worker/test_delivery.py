"""Nothing is lost and nothing counts twice, wherever a worker dies between its deltas and its commit."""

from __future__ import annotations

import os
import signal

import pytest
from confluent_kafka import KafkaException

from streamgauge.operators.consumer.group.committed import Places, offset_of
from streamgauge.operators.consumer.group.membership import Membership
from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import run, start
from streamgauge.operators.consumer.worker.delivery import AtMostOnce
from streamgauge.operators.sketching.account import Account
from streamgauge.operators.watermarks.position import Input

from ....waiting import until
from ..runs import DELIVERIES, Windows, run_and_ask

pytestmark = pytest.mark.kafka


@pytest.mark.parametrize(
    ("delivery", "killed"),
    [
        ("exactly_once", [1]),
        *(pytest.param(one, [1, 3], marks=pytest.mark.soak) for one in [*DELIVERIES, "effectively_once"]),
    ],
)
def test_kill_9_of_a_worker_process_loses_and_repeats_nothing(posts, same, delivery, killed) -> None:
    """`test_matrix.py` has one of the other deliveries each."""
    topic, windows = posts(4), Windows()
    options = {"delivery": delivery, "group_id": topic.topic, "on_window": windows, "checkpoint_seconds": 0.1}
    running = start(topic.stream, RunOptions(workers=2, **options))
    for round in range(2 * len(killed) + 2):
        topic.send(2_000)
        seen = running.summary().account.read
        until(lambda seen=seen: running.summary().account.read > seen)
        if round in killed:
            os.kill(running.worker_pids[round % 2], signal.SIGKILL)
    until(lambda: running.summary().account.read == sum(map(len, topic.sent)))
    running.stop()
    assert running.wait(120).account == topic.one_pass()[1]
    summary = run(topic.stream, RunOptions(until="latest", **options))
    assert summary.account == topic.one_pass()[1]
    assert summary.overlaps == 0
    same(windows.table(), topic.one_pass()[0])


@pytest.mark.parametrize("delivery", ["at_least_once", "effectively_once"])
def test_a_worker_that_dies_between_its_deltas_and_its_commit_repeats_nothing(
    posts, same, monkeypatch, delivery: str
) -> None:
    topic, windows = posts(), Windows()
    topic.send(3_000)
    options = {"delivery": delivery, "group_id": topic.topic, "on_window": windows, "until": "latest"}

    commit = Membership.commit

    def die(self: Membership, places: dict[Input, Places]) -> None:
        if all(offset_of(place) == 0 for place in places.values()):
            return commit(self, places)  # a claim
        raise SystemError("struck by lightning")

    with monkeypatch.context() as patch:
        patch.setattr(Membership, "commit", die)
        with pytest.raises(SystemError, match="lightning"):
            run(topic.stream, RunOptions(**options))
    topic.send(3_000)
    summary = run(topic.stream, RunOptions(**options))
    table, account = topic.one_pass()
    assert (summary.account, summary.duplicates, summary.overlaps) == (account, 0, 0)
    same(windows.table(), table)


def test_at_most_once_loses_what_a_dying_worker_held_and_repeats_nothing(posts, monkeypatch) -> None:
    topic = posts(1)
    topic.send(2_000)
    options = {"delivery": "at_most_once", "group_id": topic.topic, "until": "latest"}

    def die(self: AtMostOnce, messages: object) -> None:
        raise SystemError("struck by lightning")

    with monkeypatch.context() as patch:
        patch.setattr(AtMostOnce, "_send", die)
        with pytest.raises(SystemError, match="lightning"):
            run(topic.stream, RunOptions(**options))
    assert run(topic.stream, RunOptions(**options)).account == Account()
    topic.send(1_000)
    summary = run_and_ask(topic.stream, RunOptions(**options))
    account = topic.one_pass()[1]
    assert summary.account.read == 1_000 and summary.account.balanced
    assert summary.account.dead_lettered == 2 and account.read == 3_000
    assert (summary.lag, summary.overlaps) == (0, 0)


def test_a_transaction_timeout_beyond_the_brokers_own_ends_the_run_with_advice(posts) -> None:
    topic = posts(1, **{"transaction.timeout.ms": 2_000_000})
    topic.send(10)
    with pytest.raises(KafkaException, match=r"transaction\.max\.timeout\.ms \(900000"):
        run(topic.stream, RunOptions(until="latest"))
