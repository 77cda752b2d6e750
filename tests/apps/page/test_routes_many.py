"""The page in Chromium with 10,000 keys and 1,000 alerts: it draws what is seen, and again what changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import polars as pl
import pytest

from streamgauge.apps.app import App, AppPart
from streamgauge.apps.page.routes import OPEN_TO_ALL, page_routes
from streamgauge.apps.page.served_app import ServedApp, log_of, tables_of
from streamgauge.apps.panels import LinesPanel, NumberPanel, RankedPanel, RowsPanel
from streamgauge.operators.definition.aggregates import count, distinct
from streamgauge.operators.definition.stream import Stream
from streamgauge.queries.server.http.service import Service

from ...queries.server.http.served import serving
from ...waiting import until
from .drawn import Tab
from .shown import START, YARD, alert, table

KEYS, ALERTS = 10_000, 1_000


def readings() -> pl.DataFrame:
    """One of every key, and a second one of the last hundred."""
    numbers = [*range(KEYS), *range(KEYS - 100, KEYS)]
    times = [START + timedelta(milliseconds=10 * place) for place in range(len(numbers))]
    return pl.DataFrame({"at": times, "key": [f"k{number:05}" for number in numbers], "user": numbers})


def _keys(rows: Stream) -> Stream:
    return rows.group_by("key").tumbling("1m", delay="5s").agg(readings=count(), users=distinct("user"))


MANY = App(
    name="many",
    title="Very many keys",
    formats=YARD.formats,
    parts=(AppPart("keys", _keys),),
    panels=(
        NumberPanel("Readings", "keys", "readings"),
        LinesPanel("By key", "keys", "readings", by="key"),
        RankedPanel("Most", "keys", "readings", by="key"),
        RowsPanel("Keys", "keys", {"key": "key", "readings": "readings", "users": "users"}, "-readings"),
    ),
)
NODES = "return document.querySelectorAll('*').length"
ROWS = ".rows-panel tbody tr:not(.filler)"
EVENTS = ".alerts li:not(.filler)"


@pytest.fixture(scope="module")
def many() -> ServedApp:
    served = ServedApp.of_run(MANY, tables_of(MANY, "many"))
    fired = (replace(alert("noted", "fired", 60, "many"), key=(f"k{n:05}",)) for n in range(ALERTS))
    result = replace(served, alerts=log_of(MANY, {}))
    assert result.alerts is not None
    result.alerts.add(fired)
    return result


@pytest.fixture(scope="module")
def many_site(many: ServedApp) -> Iterator[str]:
    service = Service({"many.keys": table("many.keys", readings(), _keys)[0]})
    with serving(service, routes=page_routes(service, [many]), open_to_all=OPEN_TO_ALL) as server:
        yield server.url


@pytest.fixture
def tab(browser: Any, many_site: str) -> Iterator[Tab]:
    browser.get("about:blank")
    browser.get_log("browser")  # of a server that is gone
    yield Tab(browser, many_site)
    browser.get("about:blank")


@pytest.mark.slow
def test_rows_and_alerts_are_in_the_document_as_they_are_seen(tab: Tab) -> None:
    tab.open("/app/many?span=")
    assert 5 < len(tab.text(ROWS)) < 60 and 5 < len(tab.text(EVENTS)) < 60
    assert tab.run(NODES) < 2_500
    until(lambda: tab.run(f"return document.querySelector('{EVENTS}').ariaSetSize") == str(ALERTS))
    assert "scroll for more" in tab.panel("Keys")
    # The first two hundred, then as many again whenever the end is near.
    until(lambda: _scrolled(tab, ".rows-panel") > 1_000)
    until(lambda: _scrolled(tab, ".fired-panel", EVENTS, "ariaPosInSet") > 500)
    assert len(tab.text(ROWS)) < 60 and len(tab.text(EVENTS)) < 60 and tab.run(NODES) < 2_500
    assert tab.complaints() == []


def _scrolled(tab: Tab, panel: str, rows: str = ROWS, place: str = "ariaRowIndex") -> int:
    """Scroll to the end of a list; gives which row is the last one seen."""
    tab.run(f"document.querySelector('{panel} .scroll').scrollTop = 1e7")
    return int(tab.run(f"return [...document.querySelectorAll('{rows}')].at(-1)?.{place} ?? 0"))


def test_any_key_is_reached_by_a_filter(tab: Tab) -> None:
    tab.open("/app/many?span=")
    search = (
        "const field = document.querySelector(arguments[0]); field.value = arguments[1];"
        "field.dispatchEvent(new Event('input'))"
    )
    tab.run(search, ".rows-panel .filter", "K04321")
    until(lambda: [text.split()[0] for text in tab.text(ROWS)] == ["k04321"])
    assert "1 of the first 10,000 match." in tab.panel("Keys")
    tab.run(search, ".fired-panel .filter", "k00777")
    until(lambda: len(tab.text(EVENTS)) == 1 and "k00777" in tab.text(EVENTS)[0])
    tab.run(search, ".fired-panel .filter", "nobody")
    until(lambda: "No alert matches the filter" in tab.panel("What fired"))


@pytest.mark.slow
def test_what_did_not_change_is_not_drawn_again(tab: Tab, many: ServedApp) -> None:
    assert many.alerts is not None
    tab.open("/app/many?span=")
    one_more = replace(alert("steady", "fired", 61, "many"), key=("k00001",))
    many.alerts.add([one_more])
    until(lambda: any("steady" in text for text in tab.text(EVENTS)))
    drawings = "return [...document.querySelectorAll('.chart')].map((one) => one.dataset.drawings)"
    before = tab.run(drawings)
    tab.run(
        "window.touched = new Set(); window.rows = 0;"
        "new MutationObserver((all) => { for (const one of all) {"
        " const panel = (one.target.closest ? one.target : one.target.parentNode)?.closest('.panel');"
        " window.touched.add(panel ? panel.className : 'none');"
        " window.rows += [...one.addedNodes].filter((node) => node.nodeName === 'LI').length;"
        "} }).observe(document.querySelector('.grid'),"
        " {childList: true, subtree: true, characterData: true});"
    )
    many.alerts.add([replace(alert("another", "fired", 62, "many"), key=("k00002",))])
    until(lambda: any("another" in text for text in tab.text(EVENTS)))
    many.alerts.add([replace(alert("another", "fired", 63, "many"), key=("k00003",))])
    until(lambda: sum("another" in text for text in tab.text(EVENTS)) == 2)
    assert tab.run("return [...window.touched]") == ["panel fired-panel"]
    assert tab.run(drawings) == before
    # Each moves the rows that are seen down by one, and only the new one is made.
    assert tab.run("return window.rows") <= 4
