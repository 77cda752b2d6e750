"""The page at its edges: one window, names of 3,000 letters, medians, spans too long for one question."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import polars as pl
import pytest

from streamgauge.apps.app import App, AppPart
from streamgauge.apps.page.routes import OPEN_TO_ALL, page_routes
from streamgauge.apps.page.served_app import ServedApp, tables_of
from streamgauge.apps.panels import LinesPanel, NumberPanel, RankedPanel, RowsPanel, SpreadPanel
from streamgauge.operators.definition.aggregates import count, quantiles
from streamgauge.operators.definition.aggregates import max as max_
from streamgauge.operators.definition.aggregates import min as min_
from streamgauge.operators.definition.stream import Stream
from streamgauge.queries.answers.answers import Limits
from streamgauge.queries.server.http.service import Service

from ...queries.server.http.served import serving
from ...waiting import until
from .drawn import PHONE, Tab
from .shown import START, YARD, table

LONG = "n" * 3_000
MINUTES = 90


def _night(rows: Stream) -> Stream:
    return rows.tumbling("1d", delay="5s").agg(alerts=count())


def _names(rows: Stream) -> Stream:
    return (
        rows.group_by("name")
        .tumbling("1m", delay="5s")
        .agg(seen=count(), low=min_("value"), high=max_("value"), spread=quantiles("value"))
    )


EDGES = App(
    name="edges",
    title="Edges",
    formats=YARD.formats,
    parts=(AppPart("nights", _night), AppPart("names", _names)),
    panels=(
        LinesPanel("Alerts a night", "nights", "alerts"),
        LinesPanel("Seen by name", "names", "seen", by="name"),
        RankedPanel("Names", "names", "seen", by="name"),
        SpreadPanel("Values", "names", "spread", unit="mm"),
        NumberPanel("Seen in all", "names", "seen"),
        RowsPanel(
            "Rows",
            "names",
            {"name": "name", "low": "lowest", "spread.p50": "median", "high": "highest"},
            units={"low": "mm", "spread.p50": "mm", "high": "mm"},
            between={"spread.p50": ("low", "high")},
        ),
    ),
)


def seen() -> pl.DataFrame:
    times = [START + timedelta(minutes=minute) for minute in range(MINUTES)]
    rows = [
        {"at": at, "name": name, "value": value}
        for at in times
        for name, value in ((LONG, 100.0), ("b", 7.0))
    ]
    return pl.DataFrame(rows)


@pytest.fixture(scope="module")
def edges(browser: Any) -> Iterator[str]:
    """The address of a server whose questions may be of fewer windows than the page has."""
    served = ServedApp.of_run(EDGES, tables_of(EDGES, "edges"))
    tables = {
        "edges.nights": table("edges.nights", seen(), _night)[0],
        "edges.names": table("edges.names", seen(), _names)[0],
    }
    service = Service(tables, limits=Limits(windows=40))
    with serving(service, routes=page_routes(service, [served]), open_to_all=OPEN_TO_ALL) as server:
        yield server.url
        browser.get("about:blank")
        browser.get_log("browser")


@pytest.fixture
def tab(browser: Any, edges: str) -> Tab:
    return Tab(browser, edges)


def opened(tab: Tab) -> None:
    """Open the tables behind all charts."""
    tab.run("document.querySelectorAll('.behind').forEach(e => { e.open = true; })")


def test_one_window_is_written_out_instead_of_a_point_in_an_empty_box(tab: Tab) -> None:
    tab.open("/app/edges?span=")
    night = tab.panel("Alerts a night")
    assert "180" in night and "No rows" not in night
    panel = "[...document.querySelectorAll('.panel')].find(e => e.innerText.startsWith('Alerts a night'))"
    assert tab.run(
        f"return [{panel}.querySelectorAll('canvas').length, {panel}.querySelectorAll('.alone').length]"
    ) == [0, 1]


@pytest.mark.slow
@pytest.mark.parametrize("size", [(1100, 900), PHONE, (800, 375)], ids=["desk", "phone", "sideways"])
def test_a_name_of_3_000_letters_breaks_nothing(tab: Tab, size: tuple[int, int]) -> None:
    tab.open("/app/edges?span=", size)
    assert tab.run("return document.documentElement.scrollWidth") <= size[0]
    heights = tab.run("return [...document.querySelectorAll('.legend, .ranked li')].map(e => e.offsetHeight)")
    assert heights and max(heights) < 200
    widths = tab.run("return [...document.querySelectorAll('.legend b')].map(e => e.offsetWidth)")
    assert widths and max(widths) < size[0]
    labels = tab.run(
        "return [...document.querySelectorAll('[role=group]')].map(e => e.ariaLabel?.length ?? 0)"
    )
    assert max(labels) < 400
    # The whole name is there for who wants it.
    assert tab.run("return [...document.querySelectorAll('.legend b')].some(e => e.title.length === 3000)")


def test_a_median_is_between_the_lowest_and_the_highest(tab: Tab) -> None:
    tab.open("/app/edges?span=")
    assert "100 mm\t100 mm\t100 mm" in tab.panel("Rows") and "7 mm\t7 mm\t7 mm" in tab.panel("Rows")


def test_no_panel_asks_for_a_shorter_span(tab: Tab) -> None:
    tab.open("/app/edges?span=")
    assert [text for text in tab.text(".panel .warning") if text] == []
    # What is drawn in parts is all there: 90 minutes of two names.
    opened(tab)
    panel = "[...document.querySelectorAll('.panel')].find(e => e.innerText.startsWith('Seen by name'))"
    until(lambda: tab.run(f"return {panel}.querySelectorAll('tbody tr').length") == MINUTES)
    # A count is of all of it; quantiles can't be put together, are of the latest windows, and say so.
    assert "180" in tab.panel("Seen in all") and "latest" not in tab.panel("Seen in all")
    assert "latest" in tab.panel("Values") and "latest" in tab.panel("Rows")


def test_each_chart_has_a_table_behind_it(tab: Tab) -> None:
    tab.open("/app/edges?span=")
    opened(tab)
    until(lambda: all(tab.text(".behind .scroll")))
    heads = tab.text(".behind thead")
    assert any("time" in head and LONG[:40] in head for head in heads)
    assert any("median" in head for head in heads) and any(
        "from" in head and "share" in head for head in heads
    )
    # A browser logs each question that asked for too much, though the page then asks in parts.
    assert [one for one in tab.complaints() if "status of 422" not in one] == []
