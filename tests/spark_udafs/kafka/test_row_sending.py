"""Rows that Spark's tasks send on: each once and in order, whatever is run again or dies on the way."""

from __future__ import annotations

import itertools
import json as plain_json
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows

from streamgauge.operators.consumer.worker.delivery import ExactlyOnce
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json.decoder import json
from streamgauge.operators.sketching.account import Account
from streamgauge.spark_udafs.kafka import row_sending
from streamgauge.spark_udafs.merge.partials import ACCOUNT
from streamgauge.spark_udafs.streaming.run import on_spark

from ...operators.consumer.test_forwarding_options import rows_of
from .planned import Query, account

pytestmark = pytest.mark.kafka


def stream_of(kafka: Any, topic: str, key: str | tuple[()] = "user") -> Stream:
    orders = Stream.from_kafka(
        topic,
        value=json({"user": pl.String, "n": pl.Int64}),
        bootstrap_servers=kafka.bootstrap_servers,
    )
    good = orders.with_columns(twice=pl.col("n") * 2).filter(pl.col("n") % 5 != 0)
    return good.rows_to_kafka(f"{topic}-good", key=key)


def fill(send: Callable[..., None], topic: str, partitions: int, n: int) -> dict[tuple[str, int], list[Any]]:
    """Sends `n` orders to each partition, some of which can't be read; gives what must come of them."""
    wanted = {}
    for partition in range(partitions):
        rows = [{"user": f"u{number % 7}", "n": number} for number in range(n)]
        values = [b"{" if row["n"] % 50 == 49 else plain_json.dumps(row).encode() for row in rows]
        send(topic, values, partition)
        wanted[topic, partition] = [
            (at, {**row, "twice": 2 * row["n"]}, row["user"].encode())
            for at, row in enumerate(rows)
            if row["n"] % 5 and row["n"] % 50 != 49
        ]
    return wanted


@pytest.mark.slow
def test_each_row_is_sent_once_whatever_spark_runs_again(
    kafka: Any, topic: Callable[..., str], send: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = topic(2)
    wanted = fill(send, name, 2, 150)
    monkeypatch.setattr(row_sending, "_PIECE", 25)
    query, number = Query(kafka, stream=stream_of(kafka, name)), 0
    query.reader.prepareForTriggerAvailableNow()
    transact, calls = ExactlyOnce._transact, itertools.count()

    def dies_once(delivery: ExactlyOnce, producer: Any, messages: Any, *others: Any) -> None:
        if next(calls) == 4:
            producer.begin_transaction()
            producer.produce(f"{name}-good", b'{"never":"seen"}', headers=[("source", b"x/0/0")])
            producer.flush()
            raise SystemError("killed within a transaction")
        transact(delivery, producer, messages, *others)

    monkeypatch.setattr(ExactlyOnce, "_transact", dies_once)
    while True:
        try:
            batches = query.batch(ReadMaxRows(120))
        except SystemError:
            batches = query.read(len(query.log) - 1)  # as Spark does, in another process
        if batches is None:
            break
        number += 1
        if number % 2 == 0:
            assert account(query.read(number)) == account(batches)
        result = account(batches)
    with pytest.raises(RuntimeError, match="another attempt is ahead"):
        query.read(1)
    sent = rows_of(kafka.bootstrap_servers, f"{name}-good")
    assert next(calls) > 10 and number > 2
    # Rows of one partition with one key stay in order; those of other keys lie in other partitions.
    by_key = {at: sorted(rows, key=lambda row: row[2]) for at, rows in sent.items()}
    assert by_key == {at: sorted(rows, key=lambda row: row[2]) for at, rows in wanted.items()}
    dead = 2 * 150 // 50
    assert Account(**{name: result[name] for name in ACCOUNT}) == Account(
        read=300, counted=300 - 60 - dead, filtered=60, dead_lettered=dead
    )


def test_what_can_not_send_is_refused(kafka: Any) -> None:
    stream = stream_of(kafka, "orders")
    with pytest.raises(ValueError, match=r"leave streaming=False out .* write\(\.\.\., available_now=True\)"):
        on_spark(stream, None, streaming=False)
    with pytest.raises(ValueError, match="'orders-good' is also the topic of dead letters"):
        on_spark(stream, None, dead_letters="orders-good", close_at_end=True)
