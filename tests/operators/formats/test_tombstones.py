"""Messages without a value, and decoded keys: one rule for all formats, each message accounted for."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from streamgauge.operators.definition.aggregates import count
from streamgauge.operators.definition.definition_diff import differences
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.avro.decoder import avro
from streamgauge.operators.formats.json.decoder import json
from streamgauge.operators.formats.messages import Messages
from streamgauge.operators.formats.retryable_error import Unavailable
from streamgauge.operators.sketching.account import Account
from streamgauge.operators.sketching.message_warnings import Remarks
from streamgauge.operators.sketching.partition_buffer import PartitionBuffer
from streamgauge.operators.sketching.partition_state import PartitionState

VALUES = [b'{"n":1}', None, b"oops", b'{"n":2}', None, b"{}"]
KEYS = [b'{"id":7}', b'{"id":8}', b'{"id":9}', b"bad", b"bad", None]


def source(**options: Any) -> Any:
    return Stream.from_kafka("t", value=json({"n": pl.Int64}), **options).reading.kafka_source


def test_a_tombstone_is_refused_or_skipped_or_kept() -> None:
    messages = Messages.of(VALUES, KEYS)
    decoded = source().decode(messages)
    assert (decoded.frame.rows(), decoded.refused.tolist()) == ([(1,), (2,), (None,)], [1, 2, 4])
    decoded = source(tombstones="skip").decode(messages)
    assert (decoded.frame.rows(), decoded.refused.tolist()) == ([(1,), (2,), (None,)], [2])
    assert decoded.skipped.tolist() == [1, 4] and decoded.rows.tolist() == [0, 3, 5]
    decoded = source(tombstones="keep", message={"k": "key"}).decode(messages)
    assert decoded.frame["n"].to_list() == [1, None, 2, None, None]
    assert decoded.frame["k"].to_list() == [None if k is None else k.decode() for k in KEYS[:2] + KEYS[3:]]


def test_the_rule_holds_for_other_formats() -> None:
    kept = Stream.from_kafka("t", value=avro("string"), tombstones="keep").reading.kafka_source
    decoded = kept.decode(Messages.of([None, b"\x02a", None]))
    assert decoded.frame["value"].to_list() == [None, "a", None] and decoded.frame.schema == {
        "value": pl.String
    }
    assert kept.decode(Messages.of([None])).frame.schema == {"value": pl.String}


def test_keys_are_decoded_beside_the_values() -> None:
    key = json({"id": pl.Int64})
    decoded = source(key=key, tombstones="keep").decode(Messages.of(VALUES, KEYS))
    assert decoded.frame.rows() == [(1, 7), (None, 8), (None, None)]
    assert decoded.refused.tolist() == [2, 3, 4]
    assert decoded.reasons == ["not JSON: byte 0", "the key: not JSON: byte 0", "the key: not JSON: byte 0"]
    decoded = source(key=key, tombstones="skip").decode(Messages.of(VALUES, KEYS))
    assert decoded.frame.rows() == [(1, 7), (None, None)]
    assert (decoded.refused.tolist(), decoded.skipped.tolist()) == ([2, 3], [1, 4])
    # Of a slice, whose keys begin in the middle of a buffer.
    part = Messages.of(VALUES, KEYS).slice(1, 4)
    assert source(key=key, tombstones="keep").decode(part).frame.rows() == [(None, 8)]


@pytest.mark.parametrize("tombstones", ["refuse", "skip", "keep"])
def test_each_message_is_accounted_for(tombstones: Any) -> None:
    rows = Stream.from_kafka("t", value=json({"n": pl.Int64}), tombstones=tombstones)
    stream = rows.tumbling("1m").agg(posts=count()).complete()
    intake = PartitionBuffer(Remarks("t", {}))
    progress = PartitionState(stream, "t", 0, 0)
    intake.add_partition(progress, [])
    intake.sketch(stream.reading.kafka_source, Messages.of(VALUES, topic="t", timestamps=[1_000] * 6))
    expected = {
        "refuse": Account(read=6, counted=3, dead_lettered=3),
        "skip": Account(read=6, counted=3, filtered=2, dead_lettered=1),
        "keep": Account(read=6, counted=5, dead_lettered=1),
    }
    assert progress.account == expected[tombstones] and progress.next_offset == 6
    assert len(intake.dead_letters) == expected[tombstones].dead_lettered


def test_they_are_in_the_definition() -> None:
    one, two, three = (
        Stream.from_kafka("t", value=json({"n": pl.Int64}), **options).tumbling("1m").agg(posts=count())
        for options in ({}, {"tombstones": "keep"}, {"key": json({"id": pl.Int64})})
    )
    assert len({one.fingerprint(), two.fingerprint(), three.fingerprint()}) == 3
    assert differences(one.definition(), two.definition()) == [
        'the source\'s tombstones changed from null to "keep"'
    ]
    assert "the decoder of keys changed from none to Json()" in differences(
        one.definition(), three.definition()
    )


def test_what_can_not_be_is_refused() -> None:
    with pytest.raises(ValueError, match="'n' is already a column of the value"):
        source(key=json({"n": pl.Int64}))
    with pytest.raises(TypeError, match="key must be a decoder"):
        source(key="id")
    with pytest.raises(ValueError, match='tombstones must be "refuse", "skip" or "keep"'):
        source(tombstones="drop")
    with pytest.raises(ValueError, match="'id' is a field of the value already"):
        source(key=json({"id": pl.Int64}), message={"id": "key"})


class Away:
    """A decoder of what can't be had for a while."""

    schema = {"n": pl.Int64}  # noqa: RUF012

    def __init__(self, times: int, passing: bool = True) -> None:
        self.times, self.passing = times, passing

    def decode(self, messages: Messages) -> Any:
        self.times -= 1
        if self.times >= 0:
            raise Unavailable("the depot is away", self.passing)
        return json(self.schema).decode(messages)


def take(decoder: Away, stopping: Any) -> tuple[Account, int]:
    stream = Stream.from_kafka("t", value=decoder).tumbling("1m").agg(posts=count()).complete()
    calls: list[int] = []
    intake = PartitionBuffer(Remarks("t", {}), None, lambda: calls.append(1), stopping)
    progress = PartitionState(stream, "t", 0, 0)
    intake.add_partition(progress, [])
    intake.sketch(
        stream.reading.kafka_source, Messages.of([b'{"n":1}', b"oops"], topic="t", timestamps=[1_000] * 2)
    )
    return progress.account, len(calls)


def test_what_is_away_is_waited_for_and_no_message_is_to_blame(caplog: pytest.LogCaptureFixture) -> None:
    account, kept = take(Away(3), lambda: False)
    assert account == Account(read=2, counted=1, dead_lettered=1)
    assert kept >= 3  # the group learns that this member is alive
    assert [record.getMessage() for record in caplog.records] == [
        "waiting to decode messages: the depot is away",
        "managed to decode messages; continuing",
    ]


def test_what_no_waiting_mends_ends_the_run_and_so_does_what_nobody_waits_for() -> None:
    with pytest.raises(Unavailable, match="the depot is away"):
        take(Away(1, passing=False), lambda: False)
    with pytest.raises(Unavailable, match="the depot is away"):
        take(Away(1), None)
