"""Offsets that somebody sets back by hand are read again, and counted once."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import run

from ..runs import DELIVERIES, Windows, run_and_ask

pytestmark = pytest.mark.kafka


@pytest.mark.slow
@pytest.mark.parametrize("delivery", DELIVERIES)
def test_input_that_is_read_twice_counts_once(kafka: Any, posts, same, delivery: Any) -> None:
    topic, windows = posts(2), Windows()
    options: Any = {
        "delivery": delivery,
        "group_id": topic.topic,
        "on_window": windows,
        "until": "latest",
        "table_partitions": 2,
    }
    topic.send(3_000)
    run(topic.stream, RunOptions(**options))
    back = [TopicPartition(topic.topic, partition, offset) for partition, offset in ((0, 700), (1, 0))]
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(topic.topic, back)])[topic.topic].result(
        60
    )
    topic.send(1_000)
    summary = run_and_ask(topic.stream, RunOptions(**options))
    table, account = topic.one_pass()
    assert (summary.account, summary.overlaps, summary.lag) == (account, 0, 0)
    same(windows.table(), table)
