"""Where mergers are in the table topic: kept without a group, and refused once its deltas are gone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import OFFSET_INVALID, Consumer, KafkaError, KafkaException, TopicPartition

from streamgauge.operators.consumer.log.log_scan import Tail
from streamgauge.operators.consumer.log.merger_state import EMPTY_STATE
from streamgauge.operators.consumer.log.snapshots import Snapshot
from streamgauge.operators.consumer.merge import checkpoint_store
from streamgauge.operators.consumer.merge.checkpoint_store import CheckpointStore
from streamgauge.operators.consumer.merge.outbox import Outbox
from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.kafka.client_config import member_config
from streamgauge.operators.kafka.log_faults import DeltaError
from streamgauge.operators.sinks.answers_to_kafka import AnswersToKafka

from .logs import Log

pytestmark = pytest.mark.kafka


@pytest.mark.slow
def test_the_state_of_many_input_partitions_is_kept_and_needs_no_group(kafka) -> None:
    log = Log(kafka, 300)
    log.write(log.delta(p, minute) for minute in (0, 1) for p in range(300))
    log.merge(1)
    assert log.emitted == [(0, 300)]
    assert log.begin == 300
    # As after offsets.retention.minutes, the group is forgotten.
    log.client.delete_consumer_groups([log.plan.merger_group])[log.plan.merger_group].result(120)
    log.write(log.delta(p, 2) for p in range(300))
    again = log.merge(2)
    assert log.emitted == [(0, 300), (1, 300)]
    assert again.states()[0].account.read == 900 and again.states()[0].duplicates == 0


def test_a_log_of_which_the_head_is_gone_is_refused(kafka) -> None:
    log = Log(kafka, 1)
    log.write(log.delta(0, minute) for minute in range(3))
    place = TopicPartition(log.plan.table_topic, 0, 1)
    log.client.delete_records([place])[place].result(120)
    with pytest.raises(DeltaError, match=r"begins at offset 1, but no merger's state is left"):
        log.merge(1)
    assert log.emitted == []


@pytest.mark.slow
def test_a_damaged_state_is_left_out_but_for_sinks_that_might_get_windows_twice(kafka) -> None:
    log = Log(kafka, 1)
    log.write(log.delta(0, minute) for minute in range(2))
    log.merge(1)
    (sent,) = Snapshot(
        log.plan.stream.fingerprint(), {"posts": "one"}, 1, EMPTY_STATE, log.plan.stream.definition()
    ).outgoing(log.plan.table_topic, 0)
    log.send([replace(sent, value=sent.value[:-1])])
    log.write([log.delta(0, 2)])
    plan = replace(log.plan, options=RunOptions(sinks=[AnswersToKafka("answers")]))
    consumer = Consumer(member_config(plan.config, "a reader"))
    with pytest.raises(DeltaError, match="damaged, so it isn't known which windows the sinks have"):
        CheckpointStore(plan, Outbox(plan)).find(consumer, [0])
    consumer.close()
    log.merge(2)
    assert log.emitted == [(0, 1), (1, 1)]


@pytest.mark.slow
def test_a_state_behind_an_open_transaction_is_waited_for(kafka) -> None:
    log = Log(kafka, 1)
    log.write(log.delta(0, minute) for minute in range(2))
    log.merge(1)
    log.write([log.delta(0, 2)])
    still = log.stand_still()
    log.merge(2, drains=False)
    assert log.emitted == [(0, 1), (1, 1)]
    assert log.begin > 0
    consumer = Consumer(member_config(log.plan.config, log.plan.merger_group))
    with pytest.raises(KafkaException, match="still open, and the merger's state may lie behind it"):
        CheckpointStore(log.plan, Outbox(log.plan)).find(consumer, [0])
    consumer.close()
    still.abort_transaction(120)
    log.write([log.delta(0, 3)])
    log.merge(3)
    assert log.emitted == [(0, 1), (1, 1), (2, 1)]


def test_a_state_that_can_be_read_only_now_is_not_taken_for_lost(kafka, monkeypatch) -> None:
    """A transaction that hid it may end between the read of the log and the check that none is open."""
    log = Log(kafka, 1)
    log.write(log.delta(0, minute) for minute in range(2))
    log.merge(1)
    read, reads = checkpoint_store.read_tail, list[object]()

    def hidden_at_first(*given: Any) -> dict[int, Tail]:
        tails = read(*given)
        reads.append(given)
        return {p: replace(tail, snapshot=None) for p, tail in tails.items()} if len(reads) == 1 else tails

    monkeypatch.setattr(checkpoint_store, "read_tail", hidden_at_first)
    consumer = Consumer(member_config(log.plan.config, log.plan.merger_group))
    (snapshot,) = CheckpointStore(log.plan, Outbox(log.plan)).find(consumer, [0]).values()
    assert snapshot is not None and len(reads) > 1
    consumer.close()


class Committed:
    """A consumer whose group has committed this."""

    def __init__(self, answer: int | KafkaException) -> None:
        self.answer = answer

    def committed(self, partitions: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        if isinstance(self.answer, KafkaException):
            raise self.answer
        (place,) = partitions
        return [TopicPartition(place.topic, place.partition, self.answer)]


def test_another_member_has_a_partition_that_is_stored_further_on(kafka) -> None:
    store = CheckpointStore((log := Log(kafka, 1)).plan, Outbox(log.plan))
    unknown = KafkaException(KafkaError(KafkaError.UNKNOWN_MEMBER_ID))
    answers: list[Any] = [7, 3, OFFSET_INVALID, unknown]
    passed = [store.is_passed(Committed(answer), 0, 3) for answer in answers]  # type: ignore[arg-type]
    assert passed == [True, False, False, True]
    silent: Any = Committed(KafkaException(KafkaError(KafkaError._TIMED_OUT)))
    with pytest.raises(KafkaException):
        store.is_passed(silent, 0, 3)
