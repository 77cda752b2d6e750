"""What a member keeps while others come and go: its other partitions; all of them if it is static."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import start
from streamgauge.operators.consumer.worker.worker import Worker
from streamgauge.operators.watermarks.position import Input

from ....waiting import until
from ..runs import Windows, run_and_ask
from .test_rebalance import BY_BROKERS, COOPERATIVE, settings

pytestmark = pytest.mark.kafka


@pytest.fixture
def moved(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, list[Any]]]:
    """What each worker took up and let go, by the group's name and in order."""
    seen: dict[str, list[Any]] = {"taken": [], "let go": []}
    take_up, lost = Worker._recover, Worker._lost

    def taking_up(self: Worker, inputs: set[Input]) -> None:
        seen["taken"] += [(id(self), where.partition) for where in inputs]
        take_up(self, inputs)

    def losing(self: Worker, inputs: list[Input]) -> None:
        seen["let go"] += [(id(self), where.partition) for where in inputs if not self._stopping()]
        lost(self, inputs)

    monkeypatch.setattr(Worker, "_recover", taking_up)
    monkeypatch.setattr(Worker, "_lost", losing)
    yield seen


@pytest.mark.slow
@pytest.mark.parametrize(
    "protocol",
    [
        pytest.param(COOPERATIVE, id="cooperative", marks=pytest.mark.soak),
        pytest.param(BY_BROKERS, id="by brokers"),
    ],
)
def test_only_partitions_that_move_are_let_go_and_taken_up(
    posts: Any, same: Any, moved: dict[str, list[Any]], protocol: dict[str, Any]
) -> None:
    topic, windows = posts(4), Windows()
    options = {"group_id": topic.topic, "checkpoint_seconds": 0.1, "on_window": windows}
    stream = settings(topic, **protocol)
    one = start(stream, RunOptions(**options))
    until(lambda: one.assigned == 4 and len(set(moved["taken"])) == 4)
    two = start(stream, RunOptions(**options))
    sent = 0
    while (one.assigned, two.assigned) != (2, 2):
        topic.send(500)
        sent += 500
        until(lambda sent=sent: max(r.summary().account.read for r in (one, two)) == sent)
    first = moved["taken"][0][0]
    let_go = sorted(partition for worker, partition in moved["let go"] if worker == first)
    assert len(let_go) == 2
    # Four at its start, and none again that it had kept.
    assert sorted(p for worker, p in moved["taken"] if worker == first) == [0, 1, 2, 3]
    two.stop()
    two.wait(120)
    until(lambda: one.assigned == 4)
    topic.send(500)
    until(lambda: one.summary().account.read == sent + 500)
    assert [p for worker, p in moved["let go"] if worker == first] == let_go
    one.drain(120)
    summary = run_and_ask(stream, RunOptions(until="latest", **options))
    assert (summary.account, summary.lag) == (topic.one_pass()[1], 0)
    same(windows.table(), topic.one_pass()[0])


@pytest.mark.slow
def test_a_static_member_that_comes_back_in_time_moves_nothing(
    posts: Any, moved: dict[str, list[Any]]
) -> None:
    topic = posts(4)
    options = RunOptions(group_id=topic.topic, checkpoint_seconds=0.1)

    def begun(name: str) -> Any:
        # Longer than any machine takes to start the run again.
        return start(settings(topic, **{"group.instance.id": name, "session.timeout.ms": 60_000}), options)

    one, two = begun("one"), begun("two")
    until(lambda: (one.assigned, two.assigned) == (2, 2))
    topic.send(1_000)
    until(lambda: max(r.summary().account.read for r in (one, two)) == 1_000)
    before = {where.partition for where in one._workers.own.assigned}
    one.stop()
    one.wait(120)
    topic.send(1_000)
    let_go, accepted = len(moved["let go"]), len(moved["taken"])
    again = begun("one")
    until(lambda: max(r.summary().account.read for r in (again, two)) == 2_000)
    assert {where.partition for where in again._workers.own.assigned} == before
    assert len(moved["let go"]) == let_go
    assert sorted(p for _, p in moved["taken"][accepted:]) == sorted(before)
    for running in (again, two):
        running.stop()
    accounts = [running.wait(120).account for running in (again, two)]
    assert max(accounts, key=lambda account: account.read) == topic.one_pass()[1]


@pytest.mark.soak
def test_two_runs_under_one_static_name_are_refused(posts: Any) -> None:
    topic = posts(1)
    stream = settings(topic, **{"group.instance.id": "box"})
    options = RunOptions(group_id=topic.topic, checkpoint_seconds=0.1)
    one = start(stream, options)
    until(lambda: one.assigned == 1)
    two = start(stream, options)
    until(lambda: not (one.running and two.running))
    ended, left = (one, two) if not one.running else (two, one)
    left.stop()
    with pytest.raises(Exception, match=r"another process has the same group\.instance\.id"):
        ended.wait(120)
    left.wait(120)
