"""What one of several streams holds in a worker, and how far it is at each checkpoint."""

from __future__ import annotations

import polars as pl
import pytest

from streamgauge.operators.consumer.log.log_scan import Ends
from streamgauge.operators.consumer.merge.limits import StateLimitError
from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.run_plan import Plan
from streamgauge.operators.consumer.worker.idle_detector import HighWatermarks
from streamgauge.operators.consumer.worker.stream_task import StreamTask
from streamgauge.operators.definition.aggregates import count
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json.decoder import json
from streamgauge.operators.formats.messages import Messages
from streamgauge.operators.watermarks.position import Input, Position

WHERE, OTHER = Input("posts", 0), Input("posts", 1)


ROWS = Stream.from_kafka("posts", value=json({"n": pl.Int64}))
TUMBLING = ROWS.tumbling("1m").agg(posts=count())


def share(stream: Stream = TUMBLING, **options: object) -> StreamTask:
    plan = Plan(stream, "group", "table", {"posts": 2}, options=RunOptions(**options), name="a")
    ends = HighWatermarks(lambda: None)
    return StreamTask(plan, stream, lambda: None, lambda: False, ends, lambda: 0.0, set())


def take(result: StreamTask, messages: Messages) -> None:
    result.intake.sketch(result.stream.reading.kafka_source, messages)


def messages(partition: int, first: int, *values: bytes) -> Messages:
    stamps = [1_700_000_000_000] * len(values)
    return Messages.of(
        list(values), topic="posts", partition=partition, first_offset=first, timestamps=stamps
    )


def test_deltas_of_chosen_partitions_say_that_others_follow_and_of_what_they_are() -> None:
    result = share()
    result.recover({WHERE: Ends(Position(3), [5]), OTHER: Ends(Position(0))})
    result.intake.sketch(
        result.stream.reading.kafka_source, messages(0, 3, b'{"n": 1}', b'{"n": 2}', b'{"n": 3}', b"oops")
    )
    take(result, messages(1, 0, b'{"n": 4}', b"oops"))
    reported = result.deltas([WHERE], {"posts": "id"}, {WHERE: 7})
    assert [(d.first_offset, d.next_offset, d.more, d.source, d.epoch) for d in reported] == [
        (3, 5, True, "id", 7),
        (5, 7, False, "id", 7),
    ]
    assert [letter.offset for letter in result.dead_letters([WHERE])] == [6]
    assert [letter.input for letter in result.dead_letters(None)] == [WHERE, OTHER]
    assert (result.at(WHERE), result.at(OTHER)) == (Position(3), Position(0))
    result.delivered([WHERE], {delta.input: delta.end for delta in reported})
    assert (result.at(WHERE).offset, result.at(WHERE).time.rows) == (7, 3)
    assert result.dead_letters([WHERE]) == [] and [letter.input for letter in result.dead_letters(None)] == [
        OTHER
    ]
    # Of the other partition nothing was said, nor is it lost.
    (rest,) = result.deltas(None, {}, {})
    assert (rest.input, rest.first_offset, rest.next_offset, rest.account.read) == (OTHER, 0, 2, 2)
    assert result.deltas(None, {}, {}) == []


def test_a_partition_is_read_where_the_stream_is_and_rests_at_its_end() -> None:
    result = share(until="latest")
    result.recover({WHERE: Ends(Position(4))})
    assert result.all_read  # a run without an end sends no request
    result = StreamTask(
        Plan(result.plan.stream, "group", "table", {"posts": 2}, ends={WHERE: 6}, name="a"),
        result.stream,
        lambda: None,
        lambda: False,
        HighWatermarks(lambda: None),
        lambda: 0.0,
        set(),
    )
    result.recover({WHERE: Ends(Position(4)), OTHER: Ends(Position(0))})
    assert not result.all_read
    take(result, messages(0, 4, b'{"n": 1}'))
    result.pass_gaps({("posts", 0): 5, ("posts", 1): 9})
    assert result.progress[WHERE].next_offset == 5 and not result.all_read
    result.pass_gaps({("posts", 0): 6})
    assert result.progress[WHERE].next_offset == 6 and result.all_read


def test_what_windows_by_count_need_in_memory_is_within_the_limit_of_the_state() -> None:
    by_count = ROWS.group_by("n").count_window(10).agg(posts=count())
    result = share(by_count, state_bytes=1_000_000, at_limit="spill")
    result.recover({WHERE: Ends(Position(0))})
    result.keep_within()
    take(result, messages(0, 0, *(b'{"n": %d}' % n for n in range(50_000))))
    with pytest.raises(StateLimitError, match=r"open count windows take [0-9,]+ bytes of a worker"):
        result.keep_within()
    # Groups between two windows don't count: nine rows more of each, and their windows are full.
    full = share(by_count, state_bytes=1_000_000)
    full.recover({WHERE: Ends(Position(0))})
    for n in range(100):
        take(full, messages(0, n * 5_000, *(b'{"n": %d}' % (n * 500 + m // 10) for m in range(5_000))))
        full.deltas(None, {}, {})
    full.keep_within()
