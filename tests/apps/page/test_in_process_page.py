"""The page beside a replay: what the run has given, however often and in whatever order."""

from __future__ import annotations

import json

import httpx
import polars as pl
import pyarrow as pa

from streamgauge.apps.app import Feed
from streamgauge.apps.jobs.job import Job
from streamgauge.apps.page.in_process_page import PageBeside, ShownRun, WindowsTable
from streamgauge.apps.registry import app_of
from streamgauge.operators.definition.aggregates import count
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.rules.late_readings import LateReadings
from streamgauge.operators.sketching.account import Account
from streamgauge.operators.table.schema import schema_of
from streamgauge.operators.testing import StreamTester
from streamgauge.queries.views.view import windows_of

from .shown import NOW, alert, requests

STREAM = (
    Stream.from_schema(dict(requests().schema), time="at").tumbling("1m", delay="5s").agg(requests=count())
)


def windows() -> pa.Table:
    tester = StreamTester(STREAM, start=NOW)
    tester.feed(requests())
    return tester.finish().tables().to_arrow()


def test_a_window_that_comes_again_takes_the_place_of_the_first() -> None:
    result = WindowsTable("all", schema_of(STREAM))
    heard: list[int] = []
    end = result.watch(lambda: heard.append(len(result.view().windows)))
    whole = windows()
    assert result.view().windows == ()
    result.add(whole.slice(30))
    result.add(whole)
    end()
    result.add(whole.slice(0, 3))
    view = result.view()
    assert heard == [whole.num_rows - 30, whole.num_rows]
    assert [window.start for window in view.windows] == sorted(window.start for window in view.windows)
    assert sum(pl.from_arrow(window.table)["requests"].sum() for window in view.windows) == requests().height


def test_windows_that_fill_are_all_of_them_until_they_close() -> None:
    result, whole = WindowsTable("all", schema_of(STREAM)), windows()
    result.fill(whole.slice(0, 3))
    result.fill(whole.slice(1, 3))
    assert [window.open for window in result.view().windows] == [True] * 3
    closed = whole.slice(1, 1)
    result.add(closed)
    assert [window.open for window in result.view().windows] == [False, True, True]
    assert result.view().final_us == result.view().windows[0].end
    result.fill(whole.slice(3, 1))
    assert [window.start for window in result.view().windows] == [
        window.start for one in (closed, whole.slice(3, 1)) for window in windows_of(0, one)
    ]
    assert result.describe()["account"] is None
    result.count(Account(read=3, counted=3))
    assert result.describe()["account"]["read"] == 3


def test_it_serves_the_windows_and_alerts_of_a_run_until_it_is_stopped() -> None:
    job = Job.of(app_of("iot"), "json", {"limit": "30"})
    streams = job.streams(Feed("readings", "localhost:9092"))
    shown = ShownRun(job, streams)
    beside = PageBeside([shown], 0)
    try:
        days = schema_of(streams["days"])
        shown.take("days", days.empty_table())
        shown.alerts.write(alert("limit", "fired", 3, app="iot"))
        url = beside.url.rstrip("/")
        assert httpx.get(f"{url}/tables/iot-days/rows", timeout=120).json()["rows"] == []
        assert [e["rule"] for e in httpx.get(f"{url}/apps/iot/alerts", timeout=120).json()["events"]] == [
            "limit"
        ]
        shown.watch_late(lambda: LateReadings({'["s9"]': 3}))
        with httpx.stream("GET", f"{url}/changes?app=iot", timeout=120) as changes:
            lines = (line for line in changes.iter_lines() if line.startswith("data: "))
            state = json.loads(next(lines).removeprefix("data: "))
        assert state["apps"]["iot"]["late"] == LateReadings({'["s9"]': 3}).sentences()
        assert httpx.get(url, timeout=120).text.startswith("<!doctype html>")
    finally:
        beside.stop()
