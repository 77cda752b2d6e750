"""What killed runs without a group's name left behind is removed, and nothing else."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from streamgauge.operators.consumer.group import ephemeral_groups
from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import run, start

from ....waiting import until


@pytest.mark.kafka
def test_what_dead_runs_left_is_removed_and_nothing_else(
    kafka: Any, posts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = posts(1)
    topic.send(10)
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    now = datetime.now(UTC)
    old, young = (ephemeral_groups.group_name(topic.topic, now - timedelta(hours=h)) for h in (30, 20))
    named = f"{topic.topic}.mine.table.0"
    for name in (f"{old}.table.1", f"{young}.table.1", named):
        kafka.create_topic(name)

    def removed_by_a_run(table: str) -> bool:
        """A run whose brokers are too busy to answer in time removes nothing, and the next one does."""
        run(topic.stream, RunOptions(until="latest"))
        return table not in admin.list_topics(timeout=120).topics

    until(lambda: removed_by_a_run(f"{old}.table.1"))
    alive = start(topic.stream, RunOptions())
    until(lambda: alive.assigned == 1)
    monkeypatch.setattr(ephemeral_groups, "LEAST_AGE", timedelta(0))
    until(lambda: removed_by_a_run(f"{young}.table.1"))
    assert {named, alive.plan.table_topic} <= admin.list_topics(timeout=120).topics.keys()
    alive.stop()
    assert alive.wait(120).account.read == 10
