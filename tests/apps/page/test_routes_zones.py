"""The page in Chromium: every time of it in the zone that was chosen."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import streamgauge as sg
from streamgauge.apps.page.routes import OPEN_TO_ALL, page_routes
from streamgauge.queries.server.http.service import Service
from streamgauge.queries.views.file_table import FileTable

from ...queries.server.http.served import serving
from ...waiting import until
from .drawn import Tab

SEARCH = "return location.search"
CHOOSE = (
    "const zone = document.querySelector('select.zone'); zone.value = arguments[0];"
    "zone.dispatchEvent(new Event('change'))"
)


@pytest.fixture
def tab(browser: Any, site: str) -> Iterator[Tab]:
    yield Tab(browser, site)
    browser.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": ""})
    browser.execute_script("localStorage.clear()")


@pytest.mark.slow
def test_all_times_are_in_the_zone_of_the_address(tab: Tab) -> None:
    tab.open("/app/yard?span=1h&zone=Asia/Kolkata")
    assert "2026-01-01 05:44 – 06:44 (1 h)" in tab.panel("Requests")
    tab.run("document.querySelector('.lines-panel .chart').focus()")
    tab.press("ArrowLeft")
    assert tab.text(".lines-panel .legend .when")[0].startswith("2026-01-01 06:4")
    times = tab.text(".alerts time")
    utc = tab.run("return [...document.querySelectorAll('.alerts time')].map((one) => one.dateTime)")
    assert times and utc[0].startswith("2026-01-01T0") and times[0][11:16] != utc[0][11:16]
    assert tab.text(".status")[0].count("2026-01-01 06:34:59") == 1
    assert "Asia/Kolkata (UTC+5:30)" in tab.text("footer")[0]
    assert "zone=Asia" in tab.run("return document.querySelector('#top nav a').href")
    assert tab.complaints() == []


@pytest.mark.slow
def test_a_zone_is_chosen_and_kept(tab: Tab) -> None:
    tab.browser.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": "America/New_York"})
    tab.open("/app/yard?span=1h")
    assert "2026-01-01 00:14 – 01:14" in tab.panel("Requests")
    assert tab.run("return document.querySelectorAll('select.zone option').length") > 300
    tab.run(CHOOSE, "local")
    until(lambda: "2025-12-31 19:14 – 20:14" in tab.panel("Requests"))
    assert tab.run(SEARCH) == "?span=1h&zone=local"
    tab.browser.get(tab.run("return location.origin") + "/app/yard?span=1h")
    tab.drawn()
    assert "2025-12-31 19:14 – 20:14" in tab.panel("Requests")
    tab.run(CHOOSE, "UTC")
    until(lambda: "2026-01-01 00:14 – 01:14" in tab.panel("Requests"))
    assert tab.run(SEARCH) == "?span=1h"


def test_a_zone_that_there_is_not_is_left_alone(tab: Tab) -> None:
    tab.open("/app/yard?span=1h&zone=Nowhere/Land")
    assert "2026-01-01 00:14 – 01:14" in tab.panel("Requests")
    assert tab.complaints() == []


def test_a_table_of_days_of_a_zone_is_shown_there(browser: Any, tmp_path: Path) -> None:
    frame = pl.DataFrame({"at": [datetime(2026, 3, 28, 12), datetime(2026, 3, 29, 12)]})
    rows = sg.Stream.from_schema(frame.schema, time="at")
    rows.tumbling("1d", zone="Europe/Helsinki").agg(n=sg.count()).over(frame).write(tmp_path / "days.parquet")
    service = Service({"days": FileTable("days", tmp_path / "days.parquet", look=None)})
    with serving(service, routes=page_routes(service, []), open_to_all=OPEN_TO_ALL) as server:
        tab = Tab(browser, server.url)
        try:
            tab.open("/app/days?span=all")
            assert "Europe/Helsinki (UTC+" in tab.text("footer")[0]
            tab.run(CHOOSE, "UTC")
            until(lambda: "Europe/Helsinki" not in tab.text("footer")[0])
            tab.open("/app/days?span=all")
            assert "Europe/Helsinki" not in tab.text("footer")[0]
            assert tab.complaints() == []
        finally:
            browser.execute_script("localStorage.clear()")
