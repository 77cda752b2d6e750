"""Each app's streams give over an archive what they gave live: windows, answers and account."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal, assert_series_equal

from streamgauge.agents.archive.archiver import Archiver
from streamgauge.apps.app import Feed
from streamgauge.apps.demo.synthetic import MadeUp
from streamgauge.apps.dev.replay.sender import send
from streamgauge.apps.jobs.job import Job
from streamgauge.apps.registry import APPS, app_of
from streamgauge.operators.archive.archive_run import run_archive
from streamgauge.operators.archive.store import LocalStore
from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import run_together
from streamgauge.operators.table.schema import END, START, aggregates_of, keys_of
from streamgauge.operators.table.sketch_table import SketchTable

NOW_MS = 1_780_315_200_000
NAMES = [app.name for app in map(app_of, APPS) if app.example is not None]
DRAWN = {"sample", "weighted_sample", "decayed_sample", "stratified_sample", "kll_quantiles"}
"""Aggregates that draw random numbers, which depend on how a stream was cut into batches."""


def answers_of(table: SketchTable) -> pl.DataFrame:
    """A table's windows in order, with the answers that don't depend on chance."""
    merged = table.merge()
    schema = merged.to_arrow().schema
    keys = [START, END, *keys_of(schema)]
    steady = [name for name, one in aggregates_of(schema).items() if one.name not in DRAWN]
    return merged.answers().select(*keys, *steady).sort(*keys, nulls_last=True)


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.parametrize("name", NAMES)
def test_an_archive_gives_what_the_live_run_gave(name: str, kafka: Any, tmp_path: Path) -> None:
    app = app_of(name)
    assert app.example is not None
    job = Job.of(app, app.example.format, app.example.settings)
    feed = Feed(f"archived-{name}-{uuid.uuid4().hex[:6]}", kafka.bootstrap_servers, {"log_level": 0})
    kafka.create_topic(feed.topic, 2)
    send(MadeUp(app.example, 0, NOW_MS, 5.0), feed.topic, kafka.bootstrap_servers, pace=False)
    config = {"bootstrap.servers": kafka.bootstrap_servers}
    archived = Archiver(config, [feed.topic], LocalStore(tmp_path)).run_once()
    streams = job.streams(feed)
    live = run_together(streams, dict.fromkeys(streams, RunOptions(until="latest")), progress=False)
    assert archived.messages > 100
    for part, stream in streams.items():
        again = run_archive(stream.over_archive(str(tmp_path)), RunOptions())
        assert again.account == live[part].account, part
        assert_alike(answers_of(again.table), answers_of(live[part].table))


def assert_alike(one: pl.DataFrame, other: pl.DataFrame) -> None:
    """Equal but for estimates, which are no farther apart than their bounds are.

    A distinct count is estimated otherwise of a sketch that was merged than of one that saw all values, and
    how a run has cut its stream depends on the machine.
    """
    fields = ["estimate", "lower", "upper"]
    estimates = [
        name
        for name, kind in one.schema.items()
        if isinstance(kind, pl.Struct) and [field.name for field in kind.fields] == fields
    ]
    # Sums of fractions depend on their order in the last digits.
    assert_frame_equal(one.drop(estimates), other.drop(estimates), rel_tol=1e-12)
    for name in estimates:
        assert_series_equal(one[name].is_null(), other[name].is_null())
        (mine, lower, upper), (theirs, *_) = (
            [column.struct.field(field) for field in fields] for column in (one[name], other[name])
        )
        # What is exact is equal, but for the last digits.
        most = (upper - lower) + mine.abs() * 1e-12
        assert ((mine - theirs).abs() <= most).fill_null(True).all(), name
