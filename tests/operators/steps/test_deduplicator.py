"""Each id counts once: the same as row by row in plain Python, cut anywhere and restarted anywhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import polars as pl
import pytest

from streamgauge.operators.consumer.group.committed import Committed, metadata_of, places_of
from streamgauge.operators.consumer.log.log_scan import Tail, follow
from streamgauge.operators.definition.aggregates import count, sum
from streamgauge.operators.definition.definition_diff import differences
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json.decoder import json
from streamgauge.operators.formats.messages import Messages
from streamgauge.operators.sketching.account import Account
from streamgauge.operators.sketching.delta import Delta
from streamgauge.operators.sketching.message_warnings import Remarks
from streamgauge.operators.sketching.partition_buffer import PartitionBuffer
from streamgauge.operators.sketching.partition_state import PartitionState
from streamgauge.operators.table.query import query
from streamgauge.operators.table.sketch_table import merge
from streamgauge.operators.testing import StreamTester
from streamgauge.operators.watermarks.partition_watermark import PartitionTime
from streamgauge.operators.watermarks.position import Input, Position

from ...cases import each
from .orders import FILTER, SCHEMA, START_US, Expected, cuts, expected, orders, random_orders

NOW_US = START_US + 5 * 60 * 1_000_000
NOW = datetime.fromtimestamp(START_US / 1e6 + 1_200, UTC)


class Restarted:
    """One partition's worker, which may die at any message: only what was delivered stays."""

    def __init__(self, rows: list[dict[str, Any]], stream: Stream) -> None:
        self.frame = pl.DataFrame(rows, schema=SCHEMA)
        self.stream = stream
        self.deltas: list[Delta] = []
        self.recalled = 0
        self.begin()

    def begin(self) -> None:
        """Take the partition up where the last delta left it, in batches of any size."""
        end = self.deltas[-1].end if self.deltas else None
        offset = end.offset if end else 0
        time = replace(end.time) if end else None
        replay = end.replay if end else None
        self.progress = PartitionState(
            self.stream, "orders", 0, offset, time, clock=lambda: NOW_US / 1e6, replay=replay
        )
        random = np.random.default_rng(len(self.deltas))
        self.deliver()  # a place may be committed before anything is recalled, and while it is
        for low, high in cuts(random, offset - self.progress.recall_offset, 2):
            first = self.progress.recall_offset
            part = self.frame.slice(first, high - low)
            self.recalled += part.height
            if random.random() < 0.2:
                return self.begin()
            self.progress.recall(
                part, self.stamps(part), np.arange(first, first + part.height), first + part.height
            )
        assert self.progress.recall_offset == offset

    def stamps(self, part: pl.DataFrame) -> np.ndarray:
        return np.full(part.height, NOW_US // 1000, np.int64)

    def read(self, low: int, high: int) -> None:
        part = self.frame.slice(low, high - low)
        self.progress.add(part, self.stamps(part), np.arange(low, high), high, lambda rows, why: None)

    def deliver(self) -> None:
        self.deltas.append(self.progress.delta())

    def result(self) -> Expected:
        windows = query(merge([delta.table for delta in self.deltas if delta.table is not None]))
        starts = windows["window_start"].dt.epoch("us")
        rows = zip(starts, windows["rows"], windows["total"])
        account = reduce(add, (delta.account for delta in self.deltas), Account())
        return Expected(account, {start: [n, total] for start, n, total in rows})


LAST = ((8, 60), (10, 7), (11, 2_000))


@pytest.mark.slow
@each(
    ("seed", "last", "filtered"),
    [(0, None, False), (1, None, False), *((seed, last, False) for seed, last in LAST), (12, None, True)],
)
def test_each_id_counts_once_wherever_batches_are_cut_and_workers_die(
    seed: int, last: int | None, filtered: bool
) -> None:
    each_once(seed, last, filtered)


@pytest.mark.soak
@each(
    ("seed", "last", "filtered"),
    [
        *((seed, None, False) for seed in range(2, 8)),
        (9, 60, False),
        *((seed, None, True) for seed in range(13, 18)),
    ],
)
def test_so_it_does_for_more_seeds(seed: int, last: int | None, filtered: bool) -> None:
    each_once(seed, last, filtered)


def each_once(seed: int, last: int | None, filtered: bool) -> None:
    random = np.random.default_rng(1_000 + seed)
    rows = random_orders(seed, 700)
    worker, done = Restarted(rows, orders(last=last, **(FILTER if filtered else {}))), 0
    while done < len(rows):
        for low, high in cuts(random, int(random.integers(1, 60)), 2):
            worker.read(min(done + low, len(rows)), min(done + high, len(rows)))
            if high < len(rows) and random.random() < 0.2:
                break
        if random.random() < 0.7:
            worker.deliver()
            done = worker.deltas[-1].next_offset
        if random.random() < 0.5:
            worker.begin()
            done = worker.progress.next_offset
        else:
            done = worker.progress.next_offset
    worker.deliver()
    wanted = expected(rows, NOW_US, last, filtered)
    assert worker.result() == wanted
    account = wanted.account
    assert min(account.counted, account.filtered) > 120 and min(account.late, account.dead_lettered) > 3
    assert worker.recalled > 0


def test_what_must_be_read_again_grows_with_the_stretch_and_not_with_the_stream() -> None:
    """A bit more than the ids' reach, the delay and a window: with 2.5 rows a second about 150 rows."""
    rows = [row for row in random_orders(3, 4_000) if row["at"] is None or row["at"] < NOW_US + 3600 * 10**6]
    worker = Restarted(rows, orders())
    for low in range(0, len(rows), 100):
        worker.read(low, low + 100)
        worker.deliver()
        end = worker.deltas[-1].end
        assert end.replay is not None and end.offset - end.replay < 400
    assert worker.progress._sketcher._once is not None
    assert len(worker.progress._sketcher._once._seen) <= 256  # of more than 2,000


@pytest.mark.slow
@pytest.mark.parametrize("last", [1, 2, 3, 7])
def test_a_row_is_compared_with_exactly_the_last_so_many_messages(last: int) -> None:
    keys = np.random.default_rng(last).integers(0, 4, 300).tolist()
    unseen = [key not in keys[max(0, at - last) : at] for at, key in enumerate(keys)]
    tester = StreamTester(
        Stream.from_schema({"id": pl.Int64, "at": pl.Datetime("us")}, time="at")
        .deduplicate("id", last=last)
        .tumbling("1d")
        .agg(rows=count())
    )
    counted = [tester.feed([{"id": key, "at": datetime(2026, 1, 1)}]).counted == 1 for key in keys]
    assert counted == unseen and 20 < np.count_nonzero(unseen) < 280


def test_the_last_messages_are_all_that_is_kept_and_read_again_however_long_windows_are() -> None:
    rows = [{"id": number, "n": 0, "at": START_US + number} for number in range(5_000)]
    source = Stream.from_schema(SCHEMA, time=pl.from_epoch("at", time_unit="us"))
    worker = Restarted(
        rows, source.deduplicate("id", last=100).tumbling("1d").agg(rows=count(), total=sum("n"))
    )
    for low in range(0, len(rows), 50):
        worker.read(low, low + 50)
        worker.deliver()
        end = worker.deltas[-1].end
        assert end.replay is not None and end.offset - end.replay <= 100 + 100 // 8 + 1
    assert worker.progress._sketcher._once is not None
    assert len(worker.progress._sketcher._once._seen) <= 256


def test_a_message_of_which_one_row_fails_after_its_ids_were_compared_is_refused_whole() -> None:
    def fragile(n: int) -> int:
        if n == 2:
            raise ValueError("no twos")
        return n

    rows = Stream.from_schema({"ns": pl.List(pl.Int64), "at": pl.Datetime("us")}, time="at").explode("ns")
    failing = pl.col("ns").map_elements(fragile, return_dtype=pl.Int64)
    stream = rows.deduplicate("ns", within="1m").with_columns(ns=failing).tumbling("1m")
    frame = pl.DataFrame({"ns": [[1, 2, 3], [4, 1], [2, 1], [1, 3], [2, 2]]}).with_columns(
        at=pl.from_epoch(pl.lit(START_US // 1_000_000)).dt.cast_time_unit("us")
    )
    progress = PartitionState(stream.agg(rows=count("ns")), "orders", 0, 0, clock=lambda: NOW_US / 1e6)
    refused: list[tuple[list[int], str]] = []
    stamps = np.full(5, NOW_US // 1000)
    progress.add(frame, stamps, np.arange(5), 5, lambda at, why: refused.append((at.tolist(), why)))
    assert progress.account == Account(5, counted=1, filtered=3, dead_lettered=1)
    assert refused == [([0], "ValueError: no twos")]
    assert query(progress.delta().table)["rows"].to_list() == [1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "windowed",
    [
        lambda rows: rows.hopping("20s", every="5s", delay="3s"),
        lambda rows: rows.sliding("20s", step="5s", delay="3s"),
        lambda rows: rows.session("6s", delay="3s"),
    ],
    ids=["hopping", "sliding", "session"],
)
def test_every_kind_of_window_is_as_if_only_the_first_rows_had_come(
    windowed: Callable[[Stream], Any],
) -> None:
    random, at, rows = np.random.default_rng(9), START_US, list[dict[str, Any]]()
    for number in range(400):
        at += int(random.exponential(2) * 1e6)
        rows.append(
            {"id": number, "n": int(random.integers(0, 3)), "at": at - int(random.integers(0, 9)) * 10**6}
        )
        if random.random() < 0.5:
            rows.append({**rows[-int(random.integers(1, min(len(rows), 5) + 1))]})
    first = [row for number, row in enumerate(rows) if row not in rows[:number]]
    source = Stream.from_schema(SCHEMA, time=pl.from_epoch("at", time_unit="us"))
    once, plain = (
        StreamTester(windowed(stream).group_by("n").agg(rows=count(), ids=sum("id")), start=NOW)
        for stream in (source.deduplicate("id", within="1h"), source)
    )
    for low, high in cuts(random, len(rows), 20):
        once.feed(rows[low:high])
    plain.feed(first)
    assert once.account.counted == plain.account.counted > 350
    assert once.account.filtered + once.account.late == len(rows) - once.account.counted > 100
    result, wanted = (
        tester.finish().windows().sort("window_start", "window_end", "n") for tester in (once, plain)
    )
    assert result.height > 50 and result.equals(wanted)


VALUE = json({"id": pl.Int64, "at": pl.Int64})
MESSAGES = [b'{"id": %d, "at": %d}' % (at % 4, START_US // 1_000 + at) for at in range(12)]


@each("cut", range(13))
def test_messages_from_before_a_place_are_recalled_and_nothing_of_them_counts(cut: int) -> None:
    """Of 12 messages with four ids the first seven were counted, and the first three are out of reach."""
    rows = Stream.from_kafka("orders", value=VALUE, time=pl.from_epoch("at", time_unit="ms"))
    stream = rows.deduplicate("id", within="1m").tumbling("1m").agg(rows=count())
    values = [*MESSAGES[:4], b"broken", *MESSAGES[5:8], b"broken", *MESSAGES[9:]]
    messages = Messages.of(values, timestamps=[START_US // 1_000 + at for at in range(12)], topic="orders")
    intake = PartitionBuffer(Remarks("orders", {}))
    own = PartitionState(stream, "orders", 0, 7, replay=3)
    intake.add_partition(own, [])
    assert own.recall_offset == 3
    for low, high in ((0, cut), (cut, 12)):
        before = own.recall_offset
        if low < high:
            intake.sketch(stream.reading.kafka_source, messages.slice(low, high))
        assert own.recall_offset == (before if low == high else max(before, high))
    # 3, 5 and 6 are recalled, with the ids 3, 1 and 2; then 7, 9, 10 and 11 are duplicates of those.
    assert own.account == Account(5, counted=0, filtered=4, dead_lettered=1)
    assert [letter.offset for letter in intake.dead_letters] == [8]


def test_where_to_recall_from_is_committed_and_unknown_where_nobody_knew() -> None:
    for replay in (None, 7, 3, 0):
        place = Committed(Position(7, PartitionTime(5), replay), (4,), "abc", "t", "u")
        assert places_of(7, metadata_of({"": place})) == {"": place}
    before = '["abc","t","u",[5,0,0,0,0,0],4]'
    assert places_of(7, before)[""].position.replay == 7  # by a version without ids to recall
    assert follow(Position(7, PartitionTime(), 3), Input("orders", 0), {0: Tail()}).position.replay == 3


@each(
    ("make", "reported"),
    [
        (lambda rows: rows.deduplicate("nope", within="1m"), "no column 'nope'"),
        (lambda rows: rows.deduplicate(within="1m"), "name the column of the id"),
        (lambda rows: rows.deduplicate(pl.col("id"), within="1m"), "is not a name"),
        (lambda rows: rows.deduplicate("id", within="0s"), "within must be a duration above 0"),
        (lambda rows: rows.deduplicate("id"), "set the largest distance between duplicates"),
        (
            lambda rows: rows.deduplicate("id", within="1m", last=9),
            "set the largest distance between duplicates",
        ),
        (
            lambda rows: rows.deduplicate("id", last=0),
            "last must be a number of messages from 1 to the limit, 10,000,000, got 0",
        ),
        (lambda rows: rows.deduplicate("id", within="1m", limit=0), "limit must be an integer ≥ 1, got 0"),
        (lambda rows: rows.deduplicate("id", within="1m", fpp=0.01), "fpp and capacity go together"),
        (lambda rows: rows.deduplicate("id", within="1m", capacity=9), "fpp and capacity go together"),
        (lambda rows: rows.deduplicate("id", last=9, fpp=0.01, capacity=9), "last keeps exact ids"),
        (
            lambda rows: rows.deduplicate("id", within="1m", limit=9, fpp=0.01, capacity=9),
            "fix the memory; leave out limit",
        ),
        (
            lambda rows: rows.deduplicate("id", within="1m", fpp=0.5, capacity=9),
            "fpp must be a number from 1e-9 to 0.1, got 0.5",
        ),
        (
            lambda rows: rows.deduplicate("id", within="1m", fpp=0.01, capacity=1 << 30),
            "capacity must be an integer from 1 to 20,000,000, got 1073741824",
        ),
        (lambda rows: rows.deduplicate("id", within="soon"), "is not a duration"),
        (
            lambda rows: rows.deduplicate("id", within="1m").deduplicate("n", within="1m"),
            "the stream is deduplicated already",
        ),
        (lambda rows: rows.with_columns(id=pl.struct("n")).deduplicate("id", within="1m"), "name its parts"),
        (lambda rows: rows.group_by("id").deduplicate("n", within="1m"), "before group_by and agg"),
    ],
)
def test_a_wrong_id_is_refused_where_it_is_written(make: Callable[[Stream], Stream], reported: str) -> None:
    with pytest.raises((TypeError, ValueError), match=reported):
        make(Stream.from_schema(SCHEMA, time=pl.from_epoch("at", time_unit="us")))


def test_another_id_or_stretch_is_a_change_of_the_definition() -> None:
    requested = orders().definition()
    other = {
        **requested,
        "steps": [
            [*step[:2], 'within="1m"'] if step[0] == "deduplicate" else step for step in requested["steps"]
        ],
    }
    assert differences(requested, other) == [
        'step 2 changed from deduplicate("id", within="30s") to deduplicate("id", within="1m")'
    ]
    assert differences(requested, orders(fpp=0.01, capacity=100).definition()) == [
        'step 2 changed from deduplicate("id", within="30s") to deduplicate("id", within="30s", fpp=0.01)'
    ]
    assert orders(fpp=0.01, capacity=100).definition() == orders(fpp=0.01, capacity=200).definition()


def test_rows_that_a_filter_drops_by_mistake_are_counted_as_filtered() -> None:
    source = Stream.from_schema(SCHEMA, time=pl.from_epoch("at", time_unit="us"))
    once = source.deduplicate("id", within="1m", fpp=0.1, capacity=2_000)
    tester = StreamTester(once.tumbling("1m", max_ahead=None).agg(rows=count(), total=sum("n")))
    for low in range(0, 20_000, 2_000):  # 2,000 a minute
        at = range(low, low + 2_000)
        tester.feed([{"id": one, "n": 1, "at": START_US + 30_000 * one} for one in at])
    windows = tester.finish().windows()
    account = tester.account
    assert windows["rows"].sum() == account.counted and account.counted + account.filtered == account.read
    assert account.read == 20_000 and 0.05 < account.filtered / 18_000 < 0.115
