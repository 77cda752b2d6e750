"""Members of a real group take partitions up and let them go, whatever protocol the group speaks."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaException

from streamgauge.operators.consumer.group import membership
from streamgauge.operators.consumer.group.rebalance import Rebalance
from streamgauge.operators.consumer.merge import merge_worker
from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import run, start
from streamgauge.operators.kafka.faults import Refused
from streamgauge.operators.table.sketch_table import merge

from ....waiting import until
from ..runs import run_and_ask

pytestmark = pytest.mark.kafka

COOPERATIVE = {"partition.assignment.strategy": "cooperative-sticky", "heartbeat.interval.ms": 200}
BY_BROKERS = {"group.protocol": "consumer", "session.timeout.ms": None, "heartbeat.interval.ms": None}


def settings(topic: Any, **config: Any) -> Any:
    """The topic's stream with these settings; None takes one away."""
    stream = topic.stream
    for name, value in config.items():
        stream.source.config[name] = value
        if value is None:
            del stream.source.config[name]
    return stream


@pytest.mark.slow
@pytest.mark.parametrize("protocol", [COOPERATIVE, BY_BROKERS], ids=["cooperative", "by brokers"])
def test_two_runs_hand_over(posts: Any, same: Any, protocol: dict[str, Any]) -> None:
    topic, tables = posts(4), {}
    options = {
        "group_id": topic.topic,
        "checkpoint_seconds": 0.1,
        "on_window": lambda table: tables.update({table.column("window_start")[0]: table}),
    }
    stream = settings(topic, **protocol)
    one = start(stream, RunOptions(**options))
    topic.send(1_000)
    until(lambda: one.summary().account.read > 0)
    two = start(stream, RunOptions(**options))
    until(lambda: (one.assigned, two.assigned) == (2, 2))
    topic.send(1_000)
    one.stop()
    until(lambda: max(one.summary().account.read, two.summary().account.read) == 2_000)
    two.stop()
    one.wait(120), two.wait(120)
    summary = run_and_ask(stream, RunOptions(until="latest", **options))
    assert (summary.account, summary.lag) == (topic.one_pass()[1], 0)
    same(merge(tables.values()), topic.one_pass()[0])


def test_a_setting_that_the_group_refuses_ends_the_run_by_name(posts: Any) -> None:
    with pytest.raises(Refused, match=r"session\.timeout\.ms must lie between"):
        run(settings(posts(), **{"session.timeout.ms": 900}), RunOptions(until="latest"))


@pytest.mark.parametrize(
    ("seen", "error"), [(True, KafkaException), (False, RuntimeError)], ids=["named", "unnamed"]
)
def test_what_is_raised_out_of_a_rebalance_ends_the_run(
    posts: Any, monkeypatch: pytest.MonkeyPatch, seen: bool, error: type[Exception]
) -> None:
    """The client library raises there what no `except` sees: here, as `assign` is not cooperative."""
    monkeypatch.setattr(Rebalance, "assign", lambda self, consumer, partitions: consumer.assign(partitions))
    if not seen:
        monkeypatch.setattr(membership, "as_exception", lambda ask: ask())
        monkeypatch.setattr(merge_worker, "as_exception", lambda ask: ask())
    topic = posts()
    topic.send(10)
    with pytest.raises(error, match=r"Failed to set assignment|this run failed: .*Failed to set assignment"):
        run(settings(topic, **COOPERATIVE), RunOptions(until="latest"))
