"""Streams divided and merged: what each topic's rows go through, checked against plain Python."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime

import polars as pl
import pytest

from streamgauge.operators.consumer.merge.merger import Merger
from streamgauge.operators.definition.aggregates import count, first, last
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json.decoder import json
from streamgauge.operators.sketching.account import Account
from streamgauge.operators.sketching.partition_state import PartitionState
from streamgauge.operators.table.query import query
from streamgauge.operators.table.sketch_table import merge
from streamgauge.operators.testing import StreamTester
from streamgauge.operators.watermarks.position import Input

from ...cases import each

NOON = 1_767_225_600
"""2026-01-01 00:00 UTC in seconds."""

CLICKS = Stream.from_kafka(
    "clicks", value=json({"user": pl.Int64, "at": pl.Int64}), time=pl.from_epoch("at", time_unit="s")
)
ORDERS = Stream.from_kafka(
    ["orders", "refunds"],
    value=json({"buyer": pl.Int64, "ms": pl.Int64, "items": pl.List(pl.Int64)}),
    time=pl.from_epoch("ms", time_unit="ms"),
)
BOTH = CLICKS.select("user").merge(
    ORDERS.filter(pl.col("buyer") != 3).explode("items").select(user=pl.col("buyer"))
)
COUNTED = BOTH.filter(pl.col("user") != 5).group_by("user").tumbling("10s", delay="3s").agg(rows=count())


def messages(seed: int) -> list[tuple[str, int, dict]]:
    """(topic, partition, row): mostly in order, some late by seconds, some without an event time."""
    draw, collected = random.Random(seed), []
    for second in range(200):
        topic = draw.choice(["clicks", "orders", "refunds"])
        at = NOON + second - draw.choice([0, 0, 0, 1, 2, 25])
        at = None if draw.random() < 0.03 else at
        if topic == "clicks":
            row = {"user": draw.choice([*range(6), None]), "at": at}
        else:
            items = draw.choice([[], [1], [1, 2, 3]])
            row = {"buyer": draw.randrange(6), "ms": at and at * 1000, "items": items}
        collected.append((topic, draw.randrange(2), row))
    return collected


def by_hand(given: list[tuple[str, int, dict]]) -> tuple[Counter, Account]:
    """The windows' counts by (start, user), and the account, row by row."""
    windows, account, seen = Counter(), Counter(), {}
    for topic, partition, row in given:
        clicks = topic == "clicks"
        user, at = (row["user"], row["at"]) if clicks else (row["buyer"], row["ms"] and row["ms"] // 1000)
        account["read"] += 1
        # Null is not different from 5, so that a filter drops it as SQL does.
        if user in (5, None) or (not clicks and user == 3):
            account["filtered"] += 1
            continue
        if at is None:
            account["dead_lettered"] += 1
            continue
        before = seen.get((topic, partition), 0)
        seen[topic, partition] = max(before, at)
        if at // 10 * 10 + 10 <= before - 3:
            account["late"] += 1
            continue
        account["counted"] += 1
        windows[at // 10 * 10, user] += 1 if clicks else max(1, len(row["items"]))
    return windows, Account(**account)


def counts(table) -> Counter:
    rows = query(table).select(["window_start", "user", "rows"]).to_dicts()
    return Counter({(int(r["window_start"].timestamp()), r["user"]): r["rows"] for r in rows})


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_merged_streams_count_what_a_loop_over_all_rows_counts(seed: int) -> None:
    given = messages(seed)
    tester = StreamTester(COUNTED, partitions=2)
    for topic, partition, row in given:
        tester.feed([row], partition, topic)
    windows, account = by_hand(given)
    assert tester.account == account and account.late > 0 and account.dead_lettered > 0
    assert counts(merge([tester.finish().tables()])) == windows
    assert {row.topic for row in tester.refused} <= {"clicks", "orders", "refunds"}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_a_merger_that_restarts_anywhere_loses_and_repeats_nothing_of_any_topic(seed: int) -> None:
    given, draw = messages(seed), random.Random(seed + 100)
    inputs = {Input(topic, p): [] for topic in ("clicks", "orders", "refunds") for p in (0, 1)}
    for topic, partition, row in given:
        inputs[topic, partition].append(row)
    log = []
    for where, rows in inputs.items():
        # A worker dies, too: another goes on from the position that was committed with the last delta.
        progress = PartitionState(COUNTED, *where, 0, clock=lambda: NOON + 1_000)
        schema = COUNTED.reading.of_topic(where.topic).source.schema
        low = 0
        while low < len(rows):
            part = pl.DataFrame(rows[low : low + draw.randrange(1, 9)], schema=schema)
            offsets = pl.arange(low, low + part.height, eager=True).to_numpy()
            progress.add(part, None, offsets, low + part.height, lambda numbers, reason: None)
            if draw.random() < 0.2:
                at = log[-1].end if log and log[-1].input == where else None
                low = at.offset if at else 0
                progress = PartitionState(
                    COUNTED, *where, low, replace(at.time) if at else None, clock=lambda: NOON + 1_000
                )
                continue
            log.append(progress.delta())
            low += part.height
    # Any order of the partitions among each other will do.
    chains = {where: [delta for delta in log if delta.input == where] for where in inputs}
    log = []
    while any(chains.values()):
        where = draw.choice([where for where, chain in chains.items() if chain])
        log.append(chains[where].pop(0))
    merger, reported, at = Merger(COUNTED, inputs), {}, 0
    while at < len(log):
        merger.offer(log[at], at)
        at += 1
        for table in merger.close():
            reported[table.column("window_start")[0]] = table
        if draw.random() < 0.1:
            place = merger.restore_point()
            merger, at = Merger(COUNTED, inputs), place[0]
            merger.restore(*place)
    tables = [*reported.values(), *merger.close_all()]
    windows, account = by_hand(given)
    assert counts(merge(tables)) == windows and len(reported) > 5
    missed = account.counted - merger.state.account.counted
    assert merger.state.account == Account(
        account.read, account.counted - missed, account.filtered, account.late + missed, account.dead_lettered
    )
    assert missed == 0


def test_no_window_closes_before_every_topic_was_heard_of_or_was_silent() -> None:
    tester = StreamTester(COUNTED, start=datetime.fromtimestamp(NOON + 600, UTC))
    tester.feed([{"user": 1, "at": NOON + second} for second in range(60)], topic="clicks")
    assert tester.windows().height == 0
    tester.feed([{"buyer": 2, "ms": (NOON + 15) * 1000, "items": []}], topic="orders")
    assert tester.windows().height == 0
    assert tester.advance(6).windows().height == 6 + 1


def test_a_topic_that_begins_to_match_is_waited_for_from_its_first_rows_on() -> None:
    metrics = Stream.from_kafka(
        r"^metrics\.", value=json({"at": pl.Int64}), time=pl.from_epoch("at", time_unit="s")
    )
    tester = StreamTester(metrics.tumbling("10s", delay="0s").agg(rows=count()))
    at = [{"at": NOON + second} for second in range(25)]
    assert tester.feed(at, topic="metrics.cpu").counted == 25
    assert tester.windows()["rows"].to_list() == [10, 10]
    tester.feed(at[20:22], topic="metrics.disk")
    tester.feed([{"at": NOON + 45}], topic="metrics.cpu")
    assert tester.windows().height == 0
    tester.feed([{"at": NOON + 45}], topic="metrics.disk")
    assert tester.windows()["rows"].to_list() == [7]
    for wrong, message in ((None, r"name the topic"), ("posts", "doesn't read 'posts'")):
        with pytest.raises(ValueError, match=message):
            tester.feed(at, topic=wrong)
    assert tester.feed([{"at": None}], topic="metrics.cpu").dead_lettered == 1
    assert (tester.refused[0].topic, tester.refused[0].offset) == ("metrics.cpu", 26)


def test_the_first_and_last_of_one_event_time_are_the_same_in_whatever_order_topics_come() -> None:
    requested = BOTH.tumbling("10s").agg(first=first("user"), last=last("user"))
    clicks = [{"user": user, "at": NOON} for user in (1, 2)]
    orders = [{"buyer": 4, "ms": NOON * 1000, "items": [1]}]
    collected = []
    for turn in (0, 1):
        tester = StreamTester(requested)
        for topic, rows in [("clicks", clicks), ("orders", orders)][:: -1 if turn else 1]:
            tester.feed(rows, topic=topic)
        collected.append(tester.finish().windows().rows())
    assert collected[0] == collected[1]


def test_each_row_goes_to_the_first_branch_that_holds_and_nulls_to_none() -> None:
    rows = Stream.from_schema({"n": pl.Int64, "at": pl.Int64}, time=pl.from_epoch("at", time_unit="s"))
    branches = rows.branch(pl.col("n") < 3, pl.col("n") % 2 == 0)
    frame = [{"n": n, "at": NOON} for n in (None, *range(10))]
    aggregates = [
        StreamTester(branch.tumbling("1m").agg(n=count())).feed(frame).counted for branch in branches
    ]
    assert aggregates == [3, 3, 5]
    small, even, others = branches
    merged = small.with_columns(kind=pl.lit("small")).merge(
        even.with_columns(kind=pl.lit("even")), others.select("n", "at", kind=pl.lit("other"))
    )
    tester = StreamTester(merged.group_by("kind").tumbling("1m").agg(n=count()))
    assert tester.feed(frame) == Account(read=11, counted=11)
    answers = tester.finish().windows()
    assert dict(zip(answers["kind"], answers["n"])) == {"small": 3, "even": 3, "other": 5}
    assert isinstance(merged.source, type(rows.source))


def test_a_row_in_two_merged_streams_of_one_source_counts_in_both_but_is_read_once() -> None:
    one, two = CLICKS.filter(pl.col("user") < 3), CLICKS.filter(pl.col("user") < 2)
    tester = StreamTester(one.merge(two).tumbling("1m").agg(rows=count()))
    assert tester.feed([{"user": user, "at": NOON} for user in range(5)]) == Account(5, 3, 2)
    assert tester.finish().windows()["rows"].to_list() == [5]
    once = CLICKS.deduplicate("user", within="1m")
    assert len(once.filter(pl.col("user") < 3).merge(once.filter(pl.col("user") < 2)).steps) == 2


@each(
    ("wrong", "kind", "message"),
    [
        (
            lambda: CLICKS.merge(ORDERS),
            ValueError,
            r'different columns: orders, refunds has no "user".*only orders, refunds has "buyer".*by select',
        ),
        (
            lambda: CLICKS.merge(ORDERS.select(pl.col("buyer").cast(pl.String).alias("user"), at="ms")),
            ValueError,
            '"user" is Int64, and String in orders, refunds',
        ),
        (lambda: CLICKS.merge("orders"), TypeError, r"'orders' is not a stream; write a\.merge\(b, c\)"),
        (lambda: COUNTED.merge(CLICKS), ValueError, "windows already"),
        (lambda: CLICKS.merge(CLICKS.tumbling("1m")), ValueError, r"write \.merge\(\.\.\.\) before them"),
        (
            lambda: CLICKS.merge(Stream.from_kafka("clicks", value=CLICKS.source.value)),
            ValueError,
            "two of the streams read the topic 'clicks' with different",
        ),
        (
            lambda: CLICKS.merge(
                Stream.from_kafka("b", value=CLICKS.source.value, bootstrap_servers="other:9092")
            ),
            ValueError,
            "clicks and b are read from different brokers or with different settings|b and clicks are",
        ),
        (
            lambda: CLICKS.merge(Stream.from_schema(CLICKS.source.schema, time=CLICKS.time)),
            TypeError,
            "rows come from frames",
        ),
        (
            lambda: CLICKS.merge(CLICKS.deduplicate("user", within="1m")),
            ValueError,
            r"one has deduplicate.*write \.deduplicate\(\.\.\.\) before branch or after merge",
        ),
        (lambda: CLICKS.branch(), TypeError, "no predicates"),
        (lambda: CLICKS.branch("user"), TypeError, "branch: 'user' is not an expression"),
        (lambda: BOTH.reading.kafka_source, TypeError, "merges the streams of clicks and orders, refunds"),
    ],
)
def test_what_can_not_be_merged_is_refused_in_words(wrong, kind: type, message: str) -> None:
    with pytest.raises(kind, match=message):
        wrong()
