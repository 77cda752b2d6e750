"""Two streams joined in Spark's tasks: as pair by pair in plain Python, whichever worker comes next."""

from __future__ import annotations

import json as plain_json
from collections.abc import Callable
from itertools import count
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows

from streamgauge.operators.definition.joining import Between
from streamgauge.operators.kafka.topics import TopicError
from streamgauge.operators.sketching.account import Account
from streamgauge.spark_udafs.kafka import workers
from streamgauge.spark_udafs.kafka.cluster import Cluster
from streamgauge.spark_udafs.merge.partials import ACCOUNT

from ...operators.steps.orders import START_US
from ...operators.steps.pairs import answer, joined, random_rows
from .planned import Query, account

pytestmark = pytest.mark.kafka

NOW_US = START_US + 20 * 60 * 1_000_000
N = 500


def windows_of(batches: list[pa.RecordBatch]) -> dict[int, tuple[int, int, int]]:
    """By the start of each window: rows and both sums, of all partial rows together."""
    windows: dict[int, tuple[int, int, int]] = {}
    table = pa.Table.from_batches(batches)
    starts = table.column("window_start").cast(pa.int64()).to_pylist()
    for start, *cells in zip(starts, *(table.column(name).to_pylist() for name in ("rows", "n", "m"))):
        if cells[0] is not None:
            before = windows.get(start, (0, 0, 0))
            windows[start] = tuple(a + (b or 0) for a, b in zip(before, cells))  # type: ignore[assignment]
    return windows


@pytest.mark.slow
@pytest.mark.parametrize("how", ["inner", "left", "outer"])
def test_pairs_are_exact_wherever_ranges_are_cut_and_whoever_reads_them(
    kafka: Any, topic: Callable[..., str], send: Callable[..., None], how: Between
) -> None:
    names, sides = (topic(), topic()), random_rows(71, N)
    for name, rows in zip(names, sides):
        send(name, [plain_json.dumps(row).encode() for row in rows], timestamp=NOW_US // 1_000)
    stream = joined(how, topics=names, bootstrap_servers=kafka.bootstrap_servers)
    query, read, number = Query(kafka, stream=stream, closeAtEnd="true"), list[pa.RecordBatch](), 0
    query.reader.prepareForTriggerAvailableNow()
    while (batches := query.batch(ReadMaxRows(70))) is not None:
        number += 1
        if number % 3 == 0:
            # Another process has the ranges: it has seen nothing.
            workers._joins = type(workers._joins)(8, lambda sides: None)
            again = query.read(number)
            assert account(again) == account(batches) and windows_of(again) == windows_of(batches)
        if number % 4 == 0:
            # A batch that is made again comes to a process that is ahead of it.
            assert windows_of(query.read(number)) == windows_of(batches)
        read += batches
        result = account(batches)
    wanted = answer(sides, how, False, NOW_US, ended=True)
    windows = {start: cells for (start, _), cells in wanted.windows.items()}
    assert windows_of(read) == windows
    assert Account(**{name: result[name] for name in ACCOUNT}) == wanted.account
    assert number > 6 and wanted.account.late > 5
    bounded = Query(kafka, stream=stream, closeAtEnd="true")  # what a query reads at once is the same
    bounded.reader.prepareForTriggerAvailableNow()
    whole = [batch for _ in range(2) for batch in bounded.batch() or []]
    assert windows_of(whole) == windows


@pytest.mark.slow
@pytest.mark.parametrize("lost", [0, 1])
def test_both_partitions_are_read_again_where_the_report_of_one_is_lost(
    kafka: Any,
    topic: Callable[..., str],
    send: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    lost: int,
) -> None:
    names, sides = (topic(), topic()), random_rows(72, 200)
    for name, rows in zip(names, sides):
        send(name, [plain_json.dumps(row).encode() for row in rows], timestamp=NOW_US // 1_000)
    stream = joined("outer", topics=names, bootstrap_servers=kafka.bootstrap_servers)
    query, read = Query(kafka, stream=stream, closeAtEnd="true"), list[pa.RecordBatch]()
    reports, calls = Cluster.reports, count()

    def some(cluster: Cluster, *arguments: Any) -> Any:
        left_out = names[lost] if next(calls) % 2 else ""
        return {at: one for at, one in reports(cluster, *arguments).items() if at[0] != left_out}

    monkeypatch.setattr(Cluster, "reports", some)
    query.reader.prepareForTriggerAvailableNow()
    while (batches := query.batch(ReadMaxRows(70))) is not None:
        read += batches
        result = account(batches)
        if query.last.last:
            break  # if that report is lost, too, the same rows come once more, and their windows are closed
    wanted = answer(sides, "outer", False, NOW_US, ended=True)
    assert windows_of(read) == {start: cells for (start, _), cells in wanted.windows.items()}
    assert Account(**{name: result[name] for name in ACCOUNT}) == wanted.account


def test_topics_of_other_numbers_of_partitions_are_refused(kafka: Any, topic: Callable[..., str]) -> None:
    stream = joined("inner", topics=(topic(1), topic(2)), bootstrap_servers=kafka.bootstrap_servers)
    with pytest.raises(TopicError, match=r"has 1 partitions and .* has 2; rows are matched only between"):
        Query(kafka, stream=stream, closeAtEnd="true")
