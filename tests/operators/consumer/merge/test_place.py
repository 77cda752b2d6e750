"""Where mergers are in the table topic: kept without a group, and refused once its deltas are gone."""

from __future__ import annotations

import pytest
from confluent_kafka import TopicPartition

from streamgauge.operators.consumer.log.faults import DeltaError

from .logs import Log

pytestmark = pytest.mark.kafka


def test_the_state_of_many_input_partitions_is_kept_and_needs_no_group(kafka) -> None:
    log = Log(kafka, 300)
    log.write(log.delta(p, minute) for minute in (0, 1) for p in range(300))
    log.merge(1)
    assert log.told == [(0, 300)]
    assert log.begin == 300
    # As after offsets.retention.minutes, the group is forgotten.
    log.client.delete_consumer_groups([log.plan.merger_group])[log.plan.merger_group].result(30)
    log.write(log.delta(p, 2) for p in range(300))
    again = log.merge(2)
    assert log.told == [(0, 300), (1, 300)]
    assert again.states()[0].account.read == 900 and again.states()[0].duplicates == 0


def test_a_log_of_which_the_head_is_gone_is_refused(kafka) -> None:
    log = Log(kafka, 1)
    log.write(log.delta(0, minute) for minute in range(3))
    place = TopicPartition(log.plan.table_topic, 0, 1)
    log.client.delete_records([place])[place].result(30)
    with pytest.raises(DeltaError, match=r"begins at offset 1, but no merger's state is left"):
        log.merge(1)
    assert log.told == []
