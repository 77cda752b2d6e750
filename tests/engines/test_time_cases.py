"""Consumer, tester and Spark report the same of each of the cases of `time_cases`, at the same times."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from streamgauge import Stream, StreamTester
from streamgauge import json as json_value
from streamgauge.spark_udafs.streaming.alerts import AlertingSink
from streamgauge.spark_udafs.streaming.run import on_spark, write

from ..waiting import until
from .test_rules import Collected
from .test_windows import send
from .time_cases import BEGIN, CASES, SCHEMA, SLOT, alerting_to, reported, rows, stream_of, wanted

TIME = pl.from_epoch("us", time_unit="us")


def source_of(topic: str, servers: str) -> Stream:
    return Stream.from_kafka(topic, value=json_value(SCHEMA), time=TIME, bootstrap_servers=servers)


def halves() -> list[list[dict[str, Any]]]:
    """The rows in two parts, cut in the middle of a case."""
    coming = rows()
    cut = next(at for at, row in enumerate(coming) if row["case"] == "a backlog out of order") + 2
    return [coming[:cut], coming[cut:]]


def test_there_are_cases_enough() -> None:
    assert len(CASES) >= 20


@pytest.mark.parametrize("every", [13, pytest.param(1, marks=pytest.mark.soak)])
def test_the_tester_reports_what_is_right(every: int) -> None:
    """With a restart before every so many rows of the cases."""
    outlet, coming = Collected(), rows()
    tester = StreamTester(
        stream_of(Stream.from_schema(SCHEMA, time=TIME)),
        sinks=[alerting_to(outlet)],
        start=datetime.fromtimestamp(BEGIN + (len(CASES) + 1) * SLOT, UTC),
    )
    cuts = [at for at, row in enumerate(coming) if row["case"]][2::every]
    for low, high in pairwise([0, *cuts, len(coming)]):
        tester.feed(coming[low:high])
        tester.restart()
    tester.finish()
    assert reported(outlet) == wanted()


@pytest.mark.kafka
def test_the_consumer_reports_the_same(kafka: Any) -> None:
    topic, outlet, sent = "time-cases", Collected(), 0
    kafka.create_topic(topic, 1)
    for part in halves():
        send(kafka, topic, [part])
        sent += len(part)
        run = stream_of(source_of(topic, kafka.bootstrap_servers)).start(
            group_id=topic, sinks=[alerting_to(outlet)], checkpoint_seconds=0.2, idle_seconds=3600
        )
        try:
            until(lambda: run.summary().account.read >= sent)  # noqa: B023
        finally:
            run.stop()
            run.wait(120)
    assert reported(outlet) == wanted()


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.spark
def test_spark_reports_the_same(spark: Any, kafka: Any, tmp_path: Path) -> None:
    """All cases are in one query, which is restarted in between."""
    topic, outlet = "time-cases-on-spark", Collected()
    kafka.create_topic(topic, 1)
    stream = stream_of(source_of(topic, kafka.bootstrap_servers))
    sink = AlertingSink(stream, alerting_to(outlet), tmp_path / "rules")
    for part in halves():
        send(kafka, topic, [part])
        table = on_spark(stream, spark, dead_letters=None, close_at_end=False)
        assert write(table, tmp_path / "state", sink, available_now=True).awaitTermination(600)
    assert reported(outlet) == wanted()
