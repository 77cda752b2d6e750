"""Decoders of one's own: what becomes of their rows and refusals, and of them in other processes."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import start
from streamgauge.operators.definition.aggregates import count
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.decode import Decoded
from streamgauge.operators.formats.json.decoder import json
from streamgauge.operators.formats.messages import Messages
from streamgauge.operators.sketching.message_warnings import Remarks
from streamgauge.operators.sketching.partition_buffer import PartitionBuffer
from streamgauge.operators.sketching.partition_state import PartitionState


class Lines:
    """Numbers as text; what is odd is refused."""

    schema = {"n": pl.Int64}  # noqa: RUF012

    def decode(self, messages: Messages) -> Decoded:
        result = messages.text.cast(pl.Int64, strict=False)
        odd = Decoded(pl.DataFrame({"n": result})).without(result.is_null().to_numpy(), "not a number")
        return odd.without((odd.frame["n"] % 2 == 1).to_numpy(), "odd")


def stream(value: object) -> Stream:
    source = Stream.from_kafka("lines", value=value)
    return source.tumbling("1m", max_ahead=None).agg(rows=count())


def test_rows_are_counted_and_refused_messages_become_dead_letters_with_their_reasons() -> None:
    requested = stream(Lines())
    intake = PartitionBuffer(Remarks("posts", {}))
    intake.add_partition(PartitionState(requested, "lines", 0, 0), [])
    intake.sketch(
        requested.reading.kafka_source,
        Messages.of([b"2", b"x", b"3", b"4", None, bytes([255])], topic="lines", timestamps=[1_000] * 6),
    )
    assert [(letter.offset, letter.reason) for letter in intake.dead_letters] == [
        (1, "not a number"),
        (2, "odd"),
        (4, "not a number"),
        (5, "not a number"),
    ]
    account = intake.progress["lines", 0].account
    assert (account.read, account.counted, account.dead_lettered) == (6, 2, 4)


def test_rows_refused_later_keep_their_place_among_those_refused_before() -> None:
    first = Decoded(pl.DataFrame({"n": [0, 2, 3]}), np.array([0, 2, 3]), np.array([1]), ["early"])
    result = first.without(np.array([True, False, True]), ["zero", "three"])
    assert result.frame["n"].to_list() == [2] and result.rows is not None and result.rows.tolist() == [2]
    assert (result.refused.tolist(), result.reasons) == ([0, 1, 3], ["zero", "early", "three"])
    assert first.without(np.zeros(3, bool), "none") is first


def test_a_decoder_that_worker_processes_cannot_import_is_refused_before_they_start() -> None:
    class Local(Lines):
        pass

    with pytest.raises(TypeError, match=r"the decoder Local is defined where .* or run with workers=1"):
        start(stream(Local()), RunOptions(workers=2))


def test_what_is_not_a_decoder_is_refused() -> None:
    with pytest.raises(TypeError, match="must be a decoder"):
        stream(json)
