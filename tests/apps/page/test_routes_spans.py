"""The page in Chromium: which span a number covers, windows that still fill, samples, alerts that last."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import polars as pl
import pytest

from streamgauge.apps.app import App, AppPart
from streamgauge.apps.page.routes import OPEN_TO_ALL, page_routes
from streamgauge.apps.page.served_app import ServedApp, tables_of
from streamgauge.apps.panels import LinesPanel, NumberPanel, RowsPanel, SamplesPanel
from streamgauge.operators.definition.aggregates import count, sample, weighted_sample
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.rules.kinds.new_term import NewTerm
from streamgauge.queries.server.http.service import Service

from ...queries.server.http.served import serving
from ...waiting import until
from .drawn import Tab
from .shown import START, YARD, alert, table

BEGIN = START - timedelta(days=1)
HOURS = 26
"""What is counted ends two hours and some after midnight, in the second of two days."""


def orders(seed: int = 9) -> pl.DataFrame:
    chance = random.Random(seed)
    times = [BEGIN + timedelta(seconds=17 * number) for number in range(HOURS * 3600 // 17 + 30)]
    return pl.DataFrame({"at": times, "amount": [chance.randrange(1, 50) for _ in times]})


def _days(rows: Stream) -> Stream:
    return rows.tumbling("1d", delay="5s").agg(orders=count())


def _hours(rows: Stream) -> Stream:
    some = {"some": sample("amount", k=5), "large": weighted_sample("amount", weight="amount", k=5)}
    return rows.tumbling("1h", delay="5s").agg(orders=count(), **some)


SHOP = App(
    name="shop",
    title="A shop",
    formats=YARD.formats,
    parts=(
        AppPart("days", _days, lambda settings: (NewTerm("noted", value="orders", learn="2h"),)),
        AppPart("hours", _hours),
    ),
    panels=(
        NumberPanel("Of days", "days", "orders"),
        NumberPanel("Of hours", "hours", "orders"),
        LinesPanel("By hour", "hours", "orders"),
        RowsPanel("Each hour", "hours", {"orders": "orders"}, each_window=True),
        SamplesPanel("Any", "hours", "some"),
        SamplesPanel("Large", "hours", "large"),
    ),
)


@pytest.fixture(scope="module")
def shop() -> ServedApp:
    return ServedApp.of_run(SHOP, tables_of(SHOP, "shop"))


@pytest.fixture(scope="module")
def shop_site(shop: ServedApp) -> Iterator[str]:
    tables = {
        name: table(name, orders(), ask)[0] for name, ask in (("shop.days", _days), ("shop.hours", _hours))
    }
    service = Service(tables)
    with serving(service, routes=page_routes(service, [shop]), open_to_all=OPEN_TO_ALL) as server:
        yield server.url


@pytest.fixture
def tab(browser: Any, shop_site: str) -> Iterator[Tab]:
    browser.get("about:blank")
    browser.get_log("browser")  # of a server that is gone
    yield Tab(browser, shop_site)
    browser.get("about:blank")


def test_a_number_covers_its_span_with_whole_windows_and_says_which(tab: Tab) -> None:
    tab.open("/app/shop?span=1d")
    days, hours = tab.panel("Of days"), tab.panel("Of hours")
    # A day up to 02:08 began yesterday: of days, both are needed; of hours, those from 02:00 on.
    assert f"{orders().height:,}" in days and "2025-12-31 00:00 – 2026-01-01 02:07" in days
    assert "(1 d 2 h)" in days
    since = orders().filter(pl.col("at") >= BEGIN + timedelta(hours=2)).height
    assert f"{since:,}" in hours and "2025-12-31 02:00 – 2026-01-01 02:07" in hours


def test_a_rate_is_shown_if_it_is_known_how_long_the_rows_took(tab: Tab) -> None:
    tab.open("/app/shop?span=1d")
    # The first of the two days may have begun at any time; before the hours of the span there are others.
    assert "/s" not in tab.panel("Of days") and "0.0588/s" in tab.panel("Of hours")
    tab.open("/app/shop?span=")
    assert "/s" not in tab.panel("Of days") and "0.0588/s" in tab.panel("Of hours"), "26 hours"


def test_what_still_fills_is_dashed_or_left_out_and_two_points_are_no_trend(tab: Tab) -> None:
    tab.open("/app/shop?span=1d")
    assert tab.run("return document.querySelectorAll('.number-panel canvas').length") == 1  # days are two
    assert "so far" in tab.panel("By hour")
    module = (
        "const file = document.querySelector('script[type=module]').src.replace('main.js', 'chart.js');"
        "const points = [1, 2, 3, 4].map((time) => ({ time, partial: time === 4 }));"
        "return import(file).then(({ parted }) => parted({ points })"
        ".map(({ dash, points }) => [Boolean(dash), points.map(({ time }) => time)]))"
    )
    assert tab.run(module) == [[False, [1, 2, 3]], [True, [3, 4]]]
    assert tab.complaints() == []


def test_the_window_that_still_fills_is_marked_in_tables_and_pictures(tab: Tab) -> None:
    tab.open("/app/shop?span=1d")
    first, second, *_ = tab.text(".rows-panel tbody tr:not(.filler)")
    assert first.startswith("2026-01-01 02:00 – 03:00") and "so far" in first and "so far" not in second
    marks = "return [...document.querySelectorAll('.rows-panel tr.filling')].map((one) => one.ariaRowIndex)"
    assert tab.run(marks) == ["2"]
    assert "so far" in tab.panel("Of hours")
    tab.run(
        "window.written = []; const { fillText } = CanvasRenderingContext2D.prototype;"
        "CanvasRenderingContext2D.prototype.fillText = function (text, ...more)"
        " { window.written.push(text); return fillText.call(this, text, ...more); }"
    )
    tab.click(".spans button", "6 h")
    until(lambda: tab.run("return window.written.includes('so far')"))


def test_a_weighted_sample_is_not_called_an_even_one(tab: Tab) -> None:
    tab.open("/app/shop?span=")
    assert "each equally likely" in tab.panel("Any")
    assert "equally" not in tab.panel("Large") and "in proportion to their amount" in tab.panel("Large")


def test_alerts_that_last_are_shown_and_counted_behind_any_number_of_others(
    tab: Tab, shop: ServedApp
) -> None:
    assert shop.alerts is not None
    shop.alerts.add(replace(alert("burning", "fired", n, "shop"), key=(f"b{n}",)) for n in range(33))
    shop.alerts.add(replace(alert("noted", "fired", 60 + n, "shop"), key=(f"n{n}",)) for n in range(282))
    tab.open("/app/shop?span=")
    shown = tab.text(".alerts li:not(.filler)")
    assert 5 < len(shown) <= 33 and all("burning" in text and "active" in text for text in shown)
    assert "33 still active" in tab.panel("What fired") and "282 × noted" in tab.panel("What fired")
    until(lambda: tab.run("return document.querySelector('.alerts li:not(.filler)').ariaSetSize") == "315")
    tab.run("document.querySelector('.fired-panel .scroll').scrollTop = 1e6")
    until(lambda: any("noted" in text for text in tab.text(".alerts li")))
    tab.click("button.tag", "282 × noted")
    until(lambda: tab.run("return document.querySelector('.alerts li:not(.filler)').ariaSetSize") == "282")
    assert "burning" not in " ".join(tab.text(".alerts li"))
