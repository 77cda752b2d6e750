"""The merging worker on a real table topic whose deltas are written by hand."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import OFFSET_END, TopicPartition

from streamgauge.operators.consumer.log.messages import encode
from streamgauge.operators.consumer.merge.checkpoint_store import CheckpointStore
from streamgauge.operators.consumer.merge.closed_windows import ClosedWindows
from streamgauge.operators.consumer.merge.merge_worker import MergeWorker
from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.kafka.log_faults import DeltaError
from streamgauge.operators.sketching.account import Account
from streamgauge.operators.sketching.partition_state import PartitionState
from streamgauge.operators.table.schema import schema_of

from .logs import Log

pytestmark = pytest.mark.kafka


def test_a_window_whose_callback_fails_comes_again_and_the_log_is_trimmed_behind_it(kafka) -> None:
    log = Log(kafka, 1)
    log.write(log.delta(0, minute) for minute in range(5))

    def fail(table: pa.Table) -> None:
        if len(log.emitted) == 2:
            raise LookupError("no room on the wall")

    with pytest.raises(LookupError, match="no room"):
        log.merge(4, fail)
    assert log.emitted == [(0, 1), (1, 1)]
    assert log.begin == 2
    log.merge(4)
    assert log.emitted == [(0, 1), (1, 1), (2, 1), (3, 1)]
    assert log.begin >= 4
    log.write([log.delta(0, minute) for minute in (5, 6)])
    later = log.merge(6)
    assert log.emitted[4:] == [(4, 1), (5, 1)]
    assert later.states()[0].account.read == 7 and later.states()[0].duplicates == 0

    place = TopicPartition(log.plan.table_topic, 0, log.begin + 1)
    log.client.delete_records([place])[place].result(120)
    with pytest.raises(DeltaError, match=r"begins at offset \d+, but the oldest open window .*new group_id"):
        log.merge(7)
    assert len(log.emitted) == 6


@pytest.mark.slow
def test_a_window_that_silence_closed_is_kept_in_the_log_and_comes_again_whole(kafka) -> None:
    log = Log(kafka, 1)
    log.write([log.delta(0, 0, (1, 2)), log.silence(0, 60)])
    log.merge(1)
    log.write([log.silence(0, 61)])
    log.merge(1)  # nothing was added: a restart doesn't emit it again
    assert log.emitted == [(0, 2)]
    assert log.begin == 0
    log.write([log.delta(0, 0, (3,)), log.delta(0, 1), log.delta(0, 2)])
    again = log.merge(3)
    assert log.emitted == [(0, 2), (0, 3), (1, 1)]
    assert again.states()[0].account == Account(read=5, counted=5)
    assert again._closed.table().select(["posts"]).to_pydict() == {"posts": [3, 1]}
    assert log.begin >= 4


def test_deltas_in_parts_count_whole_or_not_at_all(kafka) -> None:
    log = Log(kafka, 2)
    topic = log.plan.table_topic
    one, two = (encode(log.delta(p, 0, range(300)), topic, 1, largest=400) for p in (0, 1))
    assert len(one) > 3 and len(two) > 3
    log.send(one[:-1])  # its sender dies, and a successor sends all of it
    log.inputs[0] = PartitionState(log.plan.stream, "posts", 0, 0, clock=lambda: 2e9)
    one = encode(log.delta(0, 0, range(300)), topic, 1, largest=400)
    log.send([message for pair in zip(one, two, strict=True) for message in pair])
    log.write([log.delta(p, 1) for p in (0, 1)])
    merger = log.merge(1)
    assert log.emitted == [(0, 600)]
    assert merger.states()[0].account.read == 602


@pytest.mark.parametrize("passed", [False, True], ids=["deleted by hand", "trimmed by another member"])
def test_deltas_that_another_member_has_merged_and_trimmed_are_not_missing(
    kafka, monkeypatch: pytest.MonkeyPatch, passed: bool
) -> None:
    log, questions = Log(kafka, 1), list[int]()
    log.write(log.delta(0, minute) for minute in range(2))

    def is_passed(store: CheckpointStore, consumer: Any, partition: int, offset: int) -> bool:
        questions.append(offset)
        return passed

    def trim(table: pa.Table) -> None:
        """What the other one does while this one hands over a window."""
        place = TopicPartition(log.plan.table_topic, 0)
        worker._consumer.pause([place])
        log.write([log.delta(0, 2)])
        end = TopicPartition(log.plan.table_topic, 0, OFFSET_END)
        log.client.delete_records([end])[end].result(120)
        worker._consumer.resume([place])

    monkeypatch.setattr(CheckpointStore, "is_passed", is_passed)
    plan = replace(log.plan, options=RunOptions(on_window=trim))
    closed = ClosedWindows(schema_of(plan.stream), 100)
    worker = MergeWorker(plan, closed, lambda: bool(questions), lambda: False)
    with nullcontext() if passed else pytest.raises(DeltaError, match="was to be read next"):
        worker.run()
    assert len(questions) == 1 and questions[0] >= 2 and not (passed and worker.mergers)
