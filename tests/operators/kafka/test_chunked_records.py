"""Messages in parts are whole again, whatever comes twice, in between, or never."""

from __future__ import annotations

from dataclasses import replace

from streamgauge.operators.consumer.log.messages import decode, encode
from streamgauge.operators.consumer.log.snapshots import Snapshot, is_snapshot
from streamgauge.operators.consumer.merge.merger import Merger
from streamgauge.operators.kafka.chunked_records import ChunkAssembler
from streamgauge.operators.watermarks.position import Input, inputs_of

from ..consumer.log.records import STREAM, delta, snapshot


def test_the_state_of_a_thousand_partitions_comes_back_whole_from_messages_of_any_size() -> None:
    merger = Merger(STREAM, inputs_of({"posts": 1_000}))
    for partition in range(1_000):
        merger.offer(delta(partition, 0, 10**12 + partition), partition)
    kept = snapshot(merger)
    messages = kept.outgoing("table", 0, largest=500)
    assert len(messages) > 4 and all(len(m.value or b"") <= 500 for m in messages)
    assert len(kept.outgoing("table", 0)) == 1
    gather, collected = ChunkAssembler(), []
    for offset, message in enumerate(messages):
        _, record = gather.add(message.value, message.headers, offset)
        if record is not None:
            assert is_snapshot(record.headers)
            collected.append(Snapshot.of(record))
    assert collected == [kept]
    again = Merger(STREAM, inputs_of({"posts": 1_000}))
    again.restore(collected[0].next_offset, collected[0].state)
    assert again.state == merger.state


def test_parts_may_come_twice_and_in_any_order_with_others_between() -> None:
    one, two = (replace(delta(p, 0, 9), messages={n: n for n in range(100)}, source="id") for p in (0, 1))
    first, second = (encode(whole, "table", 1, largest=200) for whole in (one, two))
    gather, collected = ChunkAssembler(), []
    for message in [*first[1:], *second[:2], first[1], *second[2:], first[0]]:
        _, record = gather.add(message.value, message.headers, 0)
        if record is not None:
            collected.append(decode(record))
    assert collected == [two, one] and not gather.pending


def test_parts_that_will_never_be_whole_are_given_up_when_another_delta_takes_their_place() -> None:
    gather = ChunkAssembler()
    whole = replace(delta(0, 5, 9), messages={n: n for n in range(100)})
    for message in encode(whole, "table", 1, largest=200)[:-1]:
        gather.add(message.value, message.headers, 0)
    assert (
        gather.drop_overtaken(Input("posts", 1), 100) == [] == gather.drop_overtaken(Input("likes", 0), 100)
    )
    assert gather.drop_overtaken(Input("posts", 0), 5) == []
    assert len(gather.drop_overtaken(Input("posts", 0), 6)) == 1 and not gather.pending
