"""Several streams fed from one reading: each gets its rows, and a message is decoded once for all alike."""

from __future__ import annotations

import traceback
from collections import Counter
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import polars as pl
import pytest

from streamgauge.operators.consumer.error_context import in_words
from streamgauge.operators.consumer.worker.shared_decoding import SharedDecoding
from streamgauge.operators.definition.aggregates import count, sum
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.decode import Decoded
from streamgauge.operators.formats.messages import Broken, Messages, from_objects
from streamgauge.operators.formats.text.csv import csv
from streamgauge.operators.sketching.message_warnings import Remarks
from streamgauge.operators.sketching.partition_buffer import PartitionBuffer
from streamgauge.operators.sketching.partition_state import PartitionState
from streamgauge.operators.watermarks.position import Input

NOW_MS = 1_700_000_000_000


@dataclass(frozen=True)
class Numbers:
    """Whole numbers as text; notes how often each was decoded."""

    seen: Counter[bytes] = field(default_factory=Counter)
    schema: ClassVar = {"n": pl.Int64}

    def definition(self) -> dict[str, int]:
        return {"version": 1}

    def decode(self, messages: Messages) -> Decoded:
        self.seen.update(messages.value.to_pylist())
        numbers = messages.text.cast(pl.Int64, strict=False)
        return Decoded(pl.DataFrame({"n": numbers})).without(numbers.is_null().to_numpy(), "not a number")


def of(
    streams: dict[str, Stream], inputs: dict[Input, int]
) -> tuple[SharedDecoding, dict[str, PartitionBuffer]]:
    """The intakes of streams that have each of these partitions from an offset on, if they read its topic."""
    result = {name: PartitionBuffer(Remarks("", {})) for name, stream in streams.items()}
    for name, stream in streams.items():
        for where, first in inputs.items():
            if stream.reading.reads_topic(where.topic):
                result[name].add_partition(PartitionState(stream, *where, first), [])
    return SharedDecoding(streams, result), result


def messages_of(values: dict[Input, list[bytes]], seed: int) -> Messages:
    """The messages of several partitions, mixed as brokers might give them."""
    topics = tuple(dict.fromkeys(where.topic for where in values))
    order = np.repeat(np.arange(len(values)), [len(own) for own in values.values()])
    order = np.random.default_rng(seed).permutation(order)
    inputs, following = list(values), Counter[int]()
    rows: list[tuple[Input, int]] = []
    for at in order.tolist():
        rows.append((inputs[at], following[at]))
        following[at] += 1
    return from_objects(
        topics,
        np.array([topics.index(where.topic) for where, _ in rows], np.int32),
        np.array([where.partition for where, _ in rows], np.int32),
        np.array([offset for _, offset in rows]),
        np.full(len(rows), NOW_MS),
        [values[where][offset] for where, offset in rows],
        [None] * len(rows),
        None,
    )


@pytest.mark.slow
@pytest.mark.parametrize("length", [5, 400])
def test_each_stream_gets_its_rows_and_a_message_is_decoded_once_for_all_that_read_it_alike(
    length: int,
) -> None:
    decoder, other = Numbers(), Numbers()
    rows = Stream.from_kafka("numbers", value=decoder)
    even, odd = rows.branch(pl.col("n") % 2 == 0)
    both = rows.merge(Stream.from_kafka("more", value=other)).filter(pl.col("n") > 2)
    plain = Stream.from_kafka("^num", value=csv({"n": pl.Int64}))
    streams = {
        "even": even.tumbling("1m").agg(n=count(), total=sum("n")),
        "odd": odd.tumbling("1h").agg(n=count(), total=sum("n")),
        "both": both.tumbling("1m").agg(n=count(), total=sum("n")),
        "plain": plain.tumbling("1m").agg(n=count(), total=sum("n")),
    }
    random = np.random.default_rng(7)
    inputs = [Input("numbers", 0), Input("more", 0), Input("numbers", 1)]
    values = {w: [b"%d" % n for n in random.integers(0, 90, length)] + [b"oops"] for w in inputs}
    intakes, result = of(streams, dict.fromkeys(inputs, 0))
    messages = messages_of(values, seed=length)
    for low in range(0, len(messages), 97):
        intakes.sketch(messages.slice(low, min(low + 97, len(messages))))

    wanted = {
        "even": lambda where, n: where.topic == "numbers" and n % 2 == 0,
        "odd": lambda where, n: where.topic == "numbers" and n % 2 == 1,
        "both": lambda where, n: n > 2,
        "plain": lambda where, n: where.topic == "numbers",
    }
    for name, chosen in wanted.items():
        for where, own in values.items():
            if not streams[name].reading.reads_topic(where.topic):
                assert where not in result[name].progress
                continue
            counted = [int(v) for v in own if v.isdigit() and chosen(where, int(v))]
            delta = result[name].progress[where].delta()
            assert (delta.first_offset, delta.next_offset, delta.account.read) == (0, length + 1, length + 1)
            assert (delta.account.counted, delta.account.dead_lettered) == (len(counted), 1)
            table = delta.table
            assert (
                table is None if not counted else table.column("total").to_pylist() == [int(np.sum(counted))]
            )
    assert len(result["even"].dead_letters) == 2 and len(result["both"].dead_letters) == 3
    assert result["even"].dead_letters == result["odd"].dead_letters != result["plain"].dead_letters
    assert decoder.seen == Counter(v for w, own in values.items() if w.topic == "numbers" for v in own)
    assert other.seen == Counter(values["more", 0])


def test_streams_may_be_at_different_offsets_and_have_different_partitions() -> None:
    rows = Stream.from_kafka("numbers", value=Numbers())
    streams = {name: rows.tumbling("1m").agg(total=sum("n")) for name in ("a", "b", "c")}
    intakes, result = of(streams, {})
    result["a"].add_partition(PartitionState(streams["a"], "numbers", 0, 0), [])
    result["b"].add_partition(PartitionState(streams["b"], "numbers", 0, 3), [5])
    intakes.sketch(Messages.of([b"%d" % n for n in range(8)], topic="numbers", timestamps=[NOW_MS] * 8))
    assert result["a"].progress["numbers", 0].delta().table.column("total").to_pylist() == [28]
    first, last = [*result["b"].ready, result["b"].progress["numbers", 0].delta()]
    assert [(d.first_offset, d.next_offset, d.table.column("total").to_pylist()) for d in (first, last)] == [
        (3, 5, [7]),
        (5, 8, [18]),
    ]
    assert not result["c"].progress
    intakes.sketch(Messages.skipped(Broken("numbers", 0, 8, 10, "its checksum is wrong", b"bytes")))
    assert [own.progress["numbers", 0].account.dead_lettered for own in list(result.values())[:2]] == [2, 2]


def test_what_a_stream_fails_with_says_which_stream_it_was() -> None:
    def twice(rows: pl.DataFrame) -> pl.DataFrame:
        return pl.concat([rows, rows])

    rows = Stream.from_kafka("numbers", value=Numbers())
    aggregates = {"n": count()}
    streams = {
        "fine": rows.tumbling("1m").agg(**aggregates),
        "broken": rows.map_batches(twice, {"n": pl.Int64}).tumbling("1m").agg(**aggregates),
    }
    intakes, _ = of(streams, {Input("numbers", 0): 0})
    with pytest.raises(Exception, match="twice") as failed:
        intakes.sketch(Messages.of([b"1", b"2"], topic="numbers", timestamps=[NOW_MS] * 2))
    assert in_words(failed.value).endswith("(in the stream 'broken')")
    assert "in the stream 'broken'" in "".join(traceback.format_exception(failed.value))
