"""All apps say the same on both engines: every alert, every account, every count of what is shown."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from streamgauge import query
from streamgauge.apps.app import App, Feed
from streamgauge.apps.demo.synthetic import MadeUp
from streamgauge.apps.dev.replay.sender import send
from streamgauge.apps.jobs.job import Job
from streamgauge.apps.jobs.outcome import Outcome
from streamgauge.apps.registry import APPS, app_of
from streamgauge.apps.running import local, spark
from streamgauge.operators.table.schema import END, START, aggregates_of, keys_of

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

NOW_MS = 1_780_315_200_000
"""Noon, so that days are the same days whenever this runs."""
NAMES = [app.name for app in map(app_of, APPS) if app.example is not None]


def run_on_both(app: App, servers: str, kafka: Any) -> tuple[Outcome, Outcome]:
    """What each engine makes of messages that are there before it begins."""
    assert app.example is not None
    job = Job.of(app, app.example.format, app.example.settings)
    feed = Feed(f"apps-{app.name}-{uuid.uuid4().hex[:6]}", servers, {"log_level": 0})
    kafka.create_topic(feed.topic, 1)
    sent = send(MadeUp(app.example, 0, NOW_MS, 5.0), feed.topic, servers, pace=False)
    assert sent > 100
    by_consumer, by_spark = (engine.replay(job, feed, lambda: sent, True, []) for engine in (local, spark))
    return by_consumer, by_spark


@pytest.fixture(scope="module")
def outcomes(kafka: Any, spark: Any) -> dict[str, Any]:
    """Of all apps, which run side by side: on Spark as queries of one application."""
    with ThreadPoolExecutor(len(NAMES)) as pool:
        running = {
            name: pool.submit(run_on_both, app_of(name), kafka.bootstrap_servers, kafka) for name in NAMES
        }
    return {name: one.result() for name, one in running.items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_both_engines_report_the_same_events(name: str, outcomes: dict[str, Any]) -> None:
    by_consumer, by_spark = outcomes[name]
    one, other = (list(map(str, outcome.alerts)) for outcome in (by_consumer, by_spark))
    assert other == one
    assert one


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_both_engines_count_the_same(name: str, outcomes: dict[str, Any]) -> None:
    by_consumer, by_spark = outcomes[name]
    assert by_spark.accounts == by_consumer.accounts
    assert by_spark.account.counted > 100
    assert by_spark.tables.keys() == by_consumer.tables.keys()
    for part, table in by_spark.tables.items():
        assert exact_in(table) == exact_in(by_consumer.tables[part]), part


def exact_in(table: pa.Table) -> list[dict[str, Any]]:
    """A table's windows and keys in order, with the answers that are exact numbers."""
    numbers = {"count", "min", "max"}
    exact = [name for name, one in aggregates_of(table.schema).items() if one.name in numbers]
    columns = table.select([START, END, *keys_of(table.schema), *exact])
    # Without an aggregate it is no table of sketches, but has windows and keys all the same.
    answers = query(columns) if exact else pl.DataFrame(columns)
    return answers.sort(START, END, *keys_of(table.schema), nulls_last=True).to_dicts()
