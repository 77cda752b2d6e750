"""Runs that each read what is there and end count as one query that never stops."""

from __future__ import annotations

import json as plain_json
import logging
from typing import Any

import polars as pl
import pytest
from confluent_kafka import Producer

from streamgauge import Stream, count, json

from .planned import Query

pytestmark = pytest.mark.kafka

EACH = 150
START_US = 1_767_225_600_000_000


def send(kafka: Any, topic: str, first: int) -> None:
    """Ordered rows, one a second, over two partitions."""
    producer = Producer(
        {"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True, "linger.ms": 5}
    )
    for number in range(first, first + EACH):
        row = {"at": START_US + number * 1_000_000}
        producer.produce(topic, plain_json.dumps(row).encode(), partition=number % 2)
    assert producer.flush(60) == 0


def run(kafka: Any, topic: str, log: list[dict[str, Any]] | None, **options: str) -> Query:
    """One run of a scheduled query, up to what was there when it began."""
    value, time = json({"at": pl.Int64}), pl.from_epoch("at", time_unit="us")
    rows = Stream.from_kafka(topic, value=value, time=time, bootstrap_servers=kafka.bootstrap_servers)
    query = Query(kafka, log, rows.tumbling("1m").agg(rows=count()), **options)
    query.reader.prepareForTriggerAvailableNow()
    while query.batch() is not None:
        pass
    return query


@pytest.mark.slow
@pytest.mark.parametrize(("options", "late"), [({}, 0), ({"closeAtEnd": "true"}, 30)])
def test_two_runs_of_ordered_rows(
    kafka: Any, options: dict[str, str], late: int, caplog: pytest.LogCaptureFixture
) -> None:
    topic = f"scheduled-{late}"
    kafka.create_topic(topic, 2)
    log: list[dict[str, Any]] | None = None
    for first in (0, EACH):
        send(kafka, topic, first)
        with caplog.at_level(logging.WARNING, "streamgauge"):
            log = run(kafka, topic, log, **options).log
    account = run(kafka, topic, log, **options).last.account()
    assert (account.read, account.counted, account.late) == (2 * EACH, 2 * EACH - late, late)
    warned = [record.getMessage() for record in caplog.records if "close_at_end" in record.getMessage()]
    if late:
        (warning,) = warned
        assert f"{late} rows of this run are late" in warning and "2026-01-01T00:03:00+00:00" in warning
    else:
        assert warned == []
