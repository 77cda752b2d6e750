"""Candles in Chromium: of one symbol, with a gap where nothing traded, in colours and in a table."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import polars as pl
import pytest

from streamgauge.apps.app import App, AppPart
from streamgauge.apps.page.routes import OPEN_TO_ALL, page_routes
from streamgauge.apps.page.served_app import ServedApp, tables_of
from streamgauge.apps.panels import CandlesPanel
from streamgauge.operators.definition.aggregates import first, last
from streamgauge.operators.definition.aggregates import max as max_
from streamgauge.operators.definition.aggregates import min as min_
from streamgauge.operators.definition.aggregates import sum as sum_
from streamgauge.operators.definition.stream import Stream
from streamgauge.queries.server.http.service import Service

from ...queries.server.http.served import serving
from ...waiting import until
from .drawn import PHONE, Tab
from .shown import START, YARD, table

SILENT = range(20, 30)
"""Minutes in which nothing trades."""


def trades() -> pl.DataFrame:
    """Two symbols for an hour: the price of the larger one rises and falls, the other's stands still."""
    collected = []
    for number in range(360):
        if number // 6 in SILENT:
            continue
        at = START + timedelta(seconds=10 * number)
        price = round(100 + 5 * math.sin(number / 25) + 0.2 * (number % 5), 2)
        collected.append({"at": at, "symbol": "LARGE", "price": price, "size": 10.0})
        collected.append({"at": at, "symbol": "SMALL", "price": -2.5, "size": 1.0})
    return pl.DataFrame(collected)


def _minutes(rows: Stream) -> Stream:
    bar = {"open": first("price"), "high": max_("price"), "low": min_("price"), "close": last("price")}
    return rows.group_by("symbol").tumbling("1m", delay="5s").agg(**bar, volume=sum_("size"))


EXCHANGE = App(
    name="exchange",
    title="Candles",
    formats=YARD.formats,
    parts=(AppPart("minutes", _minutes),),
    panels=(CandlesPanel("Candles", "minutes", by="symbol", value="volume"),),
)


@pytest.fixture(scope="module")
def exchange_site() -> Iterator[str]:
    app = ServedApp.of_run(EXCHANGE, tables_of(EXCHANGE, "exchange"))
    service = Service({"exchange.minutes": table("exchange.minutes", trades(), _minutes)[0]})
    with serving(service, routes=page_routes(service, [app]), open_to_all=OPEN_TO_ALL) as server:
        yield server.url


@pytest.fixture
def tab(browser: Any, exchange_site: str) -> Iterator[Tab]:
    browser.get("about:blank")
    browser.get_log("browser")  # of a server that is gone
    yield Tab(browser, exchange_site)
    browser.get("about:blank")


def tabled(tab: Tab) -> list[list[str]]:
    """The cells of the table behind the candles."""
    tab.click(".candles-panel .behind summary")
    until(lambda: tab.run("return document.querySelector('.candles-panel .behind td')"))
    rows = "[...document.querySelectorAll('.candles-panel .behind tr')]"
    result: list[list[str]] = tab.run(f"return {rows}.map(one => [...one.children].map(e => e.innerText))")
    return result


def painted(tab: Tab, name: str) -> int:
    """How many pixels of the picture have a colour of the sheet."""
    count: int = tab.run(
        "const probe = document.body.appendChild(document.createElement('i'));"
        "probe.style.color = `var(${arguments[0]})`;"
        "const [r, g, b] = getComputedStyle(probe).color.match(/\\d+/g).map(Number);"
        "const canvas = document.querySelector('.candles-panel canvas');"
        "const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);"
        "let count = 0;"
        "for (let at = 0; at < data.length; at += 4)"
        " count += data[at] === r && data[at + 1] === g && data[at + 2] === b && data[at + 3] === 255;"
        "return count",
        name,
    )
    return count


@pytest.mark.slow
def test_each_candle_is_in_the_table_and_what_did_not_trade_is_a_gap(tab: Tab) -> None:
    tab.open("/app/exchange?span=")
    assert "symbol LARGE" in tab.panel("Candles") and "each candle 1m" in tab.panel("Candles")
    heads, *rows = tabled(tab)
    assert heads == ["time", "open", "high", "low", "close", "change"]
    prices = trades().filter(symbol="LARGE").group_by_dynamic("at", every="1m")
    bars = prices.agg(
        pl.col("price").first().alias("open"),
        pl.col("price").max().alias("high"),
        pl.col("price").min().alias("low"),
        pl.col("price").last().alias("close"),
    )
    assert [[float(cell) for cell in row[1:5]] for row in rows] == [list(row[1:]) for row in bars.rows()]
    assert len(rows) == 50 and "00:19" in rows[19][0] and "00:30" in rows[20][0]
    opened, closed = bars.row(0)[1], bars.row(0)[4]
    assert rows[0][5] == f"{'+' if closed > opened else '−'}{abs(closed / opened - 1) * 100:.2f}%"
    assert rows[-1][5].endswith("so far")
    assert tab.complaints() == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_rises_and_falls_have_colours_and_rises_are_hollow(tab: Tab, scheme: str) -> None:
    tab.open("/app/exchange?span=", scheme=scheme)
    rises, falls = painted(tab, "--rise"), painted(tab, "--fall")
    assert rises > 100 and falls > 2 * rises  # as many of both, but only falls are filled
    assert tab.text(".candles-panel .legend .key") == ["rise", "fall"]


def test_another_symbol_is_chosen_and_its_price_below_zero_has_no_percentage(tab: Tab) -> None:
    tab.open("/app/exchange?span=&key.symbol=SMALL")
    assert "symbol SMALL" in tab.panel("Candles")
    assert painted(tab, "--rise") < 100 and painted(tab, "--fall") < 100  # but the legend's two
    _, *rows = tabled(tab)
    assert {tuple(row[1:5]) for row in rows} == {("-2.5",) * 4} and {row[5] for row in rows[:-1]} == {""}


def test_prices_along_the_axis_differ_and_are_not_rounded(tab: Tab) -> None:
    tab.open("/app/exchange?span=")
    script = (
        "const file = document.querySelector('script[type=module]').src.replace('main.js', 'chart.js');"
        "return import(file).then(({ priced }) => priced(...arguments[0]))"
    )
    assert tab.run(script, [[100, 102.5], 2.5]) == ["100.0", "102.5"]
    assert tab.run(script, [[60_000, 60_200], 200]) == ["60,000", "60,200"]
    assert tab.run(script, [[0.6, 0.602], 0.002]) == ["0.600", "0.602"]
    assert tab.run(script, [[0.00001, 0.000015], 0.000005]) == ["0.000010", "0.000015"]


def test_a_symbol_that_did_not_trade_is_no_empty_picture(tab: Tab) -> None:
    tab.open("/app/exchange?span=&key.symbol=NONE")
    assert "No rows in this span" in tab.panel("Candles")


def test_a_phone_has_fewer_and_wider_candles(tab: Tab) -> None:
    tab.open("/app/exchange?span=", PHONE)
    assert "each candle 2m" in tab.panel("Candles")
    assert len(tabled(tab)) == 26
    assert tab.run("return document.documentElement.scrollWidth <= innerWidth")
