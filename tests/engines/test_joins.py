"""Joins of two streams, and of a stream with a table, give the same on both engines: what is written down."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from confluent_kafka import Producer

from streamgauge import LookupTable, Stream, StreamTester, count, query, sum
from streamgauge import json as json_value
from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import run
from streamgauge.operators.sketching.account import Account
from streamgauge.spark_udafs.frames.tables import as_table
from streamgauge.spark_udafs.streaming.run import account_of, on_spark, write

from .join_cases import BROKEN, CASES, DAY, DELAY, SIZE, TABLE_CASES, TOMBSTONE, WITHIN, Row

SIDES = "left", "right"
HOWS = "inner", "left", "outer"
PARTITIONS = 3
APART = 1_000
"""Seconds of event time from one case to the next."""


def paired(how: Any, topics: Mapping[str, str], **where: Any) -> Any:
    left, right = (
        Stream.from_kafka(
            topics[side],
            value=json_value({"case": pl.Int64, "key": pl.String, "at": pl.Int64}),
            time=pl.from_epoch("at"),
            tombstones="skip",
            **where,
        ).select("case", "key", pl.lit(1).alias(side))
        for side in SIDES
    )
    return left.join(right, on=("case", "key"), within=f"{WITHIN}s", how=how).group_by("case")


def counted(windows: Any) -> Stream:
    return windows.agg(rows=count(), left=sum("left"), right=sum("right"))


def joined(how: Any, topics: Mapping[str, str], **where: Any) -> Stream:
    return counted(paired(how, topics, **where).tumbling(f"{SIZE}s", delay=f"{DELAY}s", max_ahead=None))


def fed(stream: Stream) -> StreamTester:
    tester = StreamTester(stream, partitions=PARTITIONS)
    for side, of_cases in messages().items():
        for partition, values in enumerate(of_cases):
            if values:
                tester.feed_messages(values, topic=side, partition=partition)
    return tester


def message(case: int, row: Row) -> bytes | None:
    if row is TOMBSTONE:
        return None
    if row == BROKEN:
        return b"{"
    second, key = row
    return json.dumps({"case": case, "key": key, "at": DAY + APART * case + second}).encode()


def messages() -> dict[str, list[list[bytes | None]]]:
    """By side and partition: the messages of each case, far in event time from the one before."""
    partitions: dict[str, list[list[bytes | None]]] = {
        side: [[] for _ in range(PARTITIONS)] for side in SIDES
    }
    for at, case in enumerate(CASES):
        for side in SIDES:
            partitions[side][at % PARTITIONS] += [message(at, row) for row in getattr(case, side)]
    return partitions


def expected(how: str) -> tuple[dict[str, Any], Account]:
    sent = [value for side in messages().values() for values in side for value in values]
    dead, late = sent.count(b"{"), sum_of(case.late for case in CASES)
    filtered = sum_of(case.filtered(how) for case in CASES)
    account = Account(len(sent), len(sent) - dead - late - filtered, filtered, late, dead)
    return {case.name: windows for case in CASES if (windows := case.windows(how))}, account


def sum_of(numbers: Any) -> int:
    return int(pl.Series(list(numbers)).sum())


def joined_in(table: pa.Table) -> dict[str, dict[int, tuple[int, int, int]]]:
    """By case and window: rows, and those with a left and with a right side."""
    windows: dict[str, dict[int, tuple[int, int, int]]] = defaultdict(dict)
    answers = query(table)
    starts = (answers["window_start"].dt.epoch("s") - DAY).to_list()
    for case, start, *cells in zip(answers["case"], starts, *(answers[n] for n in ("rows", *SIDES))):
        name, start = CASES[case].name, start - APART * case
        assert start not in windows[name]
        windows[name][start] = tuple(int(cell or 0) for cell in cells)  # type: ignore[assignment]
    return windows


def test_cases_are_what_they_are_for() -> None:
    assert len({case.name for case in CASES}) == len(CASES)
    for case in CASES[-2:]:
        assert case.late > 5 and min(map(len, (case.pairs, case.lone_left, case.lone_right))) > 10


@pytest.mark.parametrize("how", HOWS)
def test_the_consumers_parts_join_as_written_down(how: str) -> None:
    tester = fed(joined(how, {side: side for side in SIDES}))
    wanted, account = expected(how)
    assert joined_in(tester.finish().tables()) == wanted
    assert tester.account == account


@pytest.fixture(scope="module")
def topics(kafka: Any) -> dict[str, str]:
    """A topic of each side."""
    producer = Producer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "enable.idempotence": True,
            "linger.ms": 5,
            "log_level": 0,
        }
    )
    for side, of_cases in messages().items():
        kafka.create_topic(f"joins-{side}", PARTITIONS)
        for partition, values in enumerate(of_cases):
            for value in values:
                producer.produce(f"joins-{side}", value, partition=partition)
    assert producer.flush(120) == 0
    return {side: f"joins-{side}" for side in SIDES}


@pytest.mark.kafka
@pytest.mark.parametrize("how", HOWS)
def test_the_consumer_joins_as_written_down(how: str, kafka: Any, topics: dict[str, str]) -> None:
    summary = run(joined(how, topics, bootstrap_servers=kafka.bootstrap_servers), RunOptions(until="latest"))
    wanted, account = expected(how)
    assert joined_in(summary.table.to_arrow()) == wanted
    assert summary.account == account


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.parametrize(("how", "most"), [("inner", 0), ("left", 0), ("outer", 400)])
def test_spark_joins_as_written_down(
    how: str, most: int, spark: Any, kafka: Any, topics: dict[str, str], tmp_path: Path
) -> None:
    """The inner join is read once, as a DataFrame; the outer one in several micro-batches."""
    stream = joined(how, topics, bootstrap_servers=kafka.bootstrap_servers)
    wanted, account = expected(how)
    if how == "inner":
        table = on_spark(stream, spark, streaming=False, dead_letters=None)
        assert joined_in(as_table(table).to_arrow()) == wanted
        return
    tables: list[pa.Table] = []
    table = on_spark(stream, spark, dead_letters=None, max_per_trigger=most or None, close_at_end=True)
    running = write(table, tmp_path, lambda part, _: tables.append(part.to_arrow()), available_now=True)
    assert running.awaitTermination(600)
    assert joined_in(pa.concat_tables(tables)) == wanted
    assert account_of(running) == account


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.parametrize("kind", ["session", "sliding"])
def test_spark_has_joined_rows_in_windows_of_other_kinds(
    kind: str, spark: Any, kafka: Any, topics: dict[str, str]
) -> None:
    """The same as the consumer's parts; no row is late, whatever the order in which a batch reads them."""

    def of(topics: Mapping[str, str], **where: Any) -> Stream:
        windows = getattr(paired("inner", topics, **where), kind)
        return counted(windows(f"{SIZE}s", delay="1d", max_ahead=None))

    stream = of(topics, bootstrap_servers=kafka.bootstrap_servers)
    table = as_table(on_spark(stream, spark, streaming=False, dead_letters=None))
    result, wanted = (
        query(one).sort("case", "window_start", "window_end")
        for one in (table, fed(of({side: side for side in SIDES})).finish().tables())
    )
    assert result.to_dicts() == wanted.to_dicts() and len(wanted) > 10


def looked_up(how: Any, posts: str = "posts", users: str = "users", **where: Any) -> Stream:
    table = LookupTable.from_kafka(users, value=json_value({"city": pl.String}), **where)
    schema = {"case": pl.Int64, "user": pl.String, "at": pl.Int64}
    rows = Stream.from_kafka(posts, value=json_value(schema), time=pl.from_epoch("at"), **where)
    joined_rows = rows.join(table, on="user", how=how).group_by("case", "city")
    return joined_rows.tumbling("1m", delay="0s", max_ahead=None).agg(n=count())


def table_rows(later: bool) -> tuple[list[tuple[str, bytes | None]], list[dict[str, Any]]]:
    """By case the table's messages in their order, with its keys; and the rows that come after them."""
    updates = [
        (f"{at}/{key}", city)
        for at, case in enumerate(TABLE_CASES)
        for key, city in (case.later_updates if later else case.updates)
    ]
    rows = [
        {"case": at, "user": None if key is None else f"{at}/{key}", "at": DAY + 61 * later}
        for at, case in enumerate(TABLE_CASES)
        for key in (case.later_keys if later else case.keys)
    ]
    return [(key, _city(city)) for key, city in updates], rows


def _city(city: str | None) -> bytes | None:
    return b"{" if city == BROKEN else None if city is None else json.dumps({"city": city}).encode()


def cities_in(table: pa.Table) -> dict[str, dict[str | None, int]]:
    cities: dict[str, dict[str | None, int]] = defaultdict(lambda: defaultdict(int))
    for row in query(table).iter_rows(named=True):
        cities[TABLE_CASES[row["case"]].name][row["city"]] += row["n"]
    return cities


@pytest.mark.parametrize("how", ["left", "inner"])
def test_the_consumers_parts_find_rows_as_written_down(how: str) -> None:
    tester = StreamTester(looked_up(how))
    for later in (False, True):
        updates, rows = table_rows(later)
        for key, value in updates:
            known = None if value in (None, b"{") else json.loads(value or b"")
            tester.feed_lookup("users", {key: known})
        tester.feed(rows)
    wanted = {case.name: dict(case.cities) for case in TABLE_CASES}
    if how == "inner":
        known = ((name, {city: n for city, n in own.items() if city}) for name, own in wanted.items())
        wanted = {name: own for name, own in known if own}
    assert cities_in(tester.finish().tables()) == wanted


@pytest.mark.kafka
@pytest.mark.spark
def test_both_engines_find_rows_of_a_table_that_changes(spark: Any, kafka: Any, tmp_path: Path) -> None:
    posts, users, group = "joins-posts", "joins-users", "joins-with-a-table"
    kafka.create_topic(posts, 2)
    kafka.create_topic(users, 2)
    producer = Producer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "enable.idempotence": True,
            "linger.ms": 5,
            "log_level": 0,
        }
    )
    tables: list[pa.Table] = []
    for later in (False, True):
        updates, rows = table_rows(later)
        for key, value in updates:
            producer.produce(users, value, key)
        for number, row in enumerate(rows):
            producer.produce(posts, json.dumps(row).encode(), partition=number % 2)
        assert producer.flush(120) == 0
        stream = looked_up("left", posts, users, bootstrap_servers=kafka.bootstrap_servers)
        table = on_spark(stream, spark, dead_letters=None, close_at_end=later)
        running = write(table, tmp_path, lambda part, _: tables.append(part.to_arrow()), available_now=True)
        assert running.awaitTermination(600)
        # Windows that its first run leaves open come again in the second, whole.
        by_consumer = run(stream, RunOptions(until="latest", group_id=group)).table.to_arrow()
    wanted = {case.name: dict(case.cities) for case in TABLE_CASES}
    assert cities_in(pa.concat_tables(tables)) == wanted
    assert cities_in(by_consumer) == wanted
    n = len(table_rows(False)[1]) + len(table_rows(True)[1])
    assert account_of(running) == Account(read=n, counted=n)
