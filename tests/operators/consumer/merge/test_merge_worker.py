"""The merging worker on a real table topic whose deltas are written by hand."""

from __future__ import annotations

import pyarrow as pa
import pytest
from confluent_kafka import TopicPartition

from streamgauge.operators.consumer.log.messages import encode
from streamgauge.operators.kafka.log_faults import DeltaError
from streamgauge.operators.sketching.account import Account
from streamgauge.operators.sketching.partition_state import PartitionState

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
