"""The page in Chromium: many tabs on one connection, the focus at a refresh, and the browser's Back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from streamgauge.apps.page.routes import OPEN_TO_ALL, page_routes
from streamgauge.queries.server.http.service import Service

from ...queries.server.http.served import TOKEN, serving
from ...waiting import until
from .drawn import Tab
from .shown import alert


@pytest.fixture
def own(shown: Any) -> Service:
    """A service of its own, whose live views are counted."""
    return Service(shown[0].tables)


@pytest.fixture
def tabs(browser: Any, shown: Any, own: Service) -> Iterator[Tab]:
    with serving(own, routes=page_routes(own, shown[1]), open_to_all=OPEN_TO_ALL) as server:
        first = browser.current_window_handle
        yield Tab(browser, server.url)
        for handle in browser.window_handles:
            if handle != first:
                browser.switch_to.window(handle)
                browser.close()
        browser.switch_to.window(first)
        browser.get("about:blank")
        browser.get_log("browser")


@pytest.mark.slow
def test_any_number_of_tabs_has_one_connection_and_all_hear_of_what_fires(
    browser: Any, tabs: Tab, own: Service, shown: Any
) -> None:
    _, yard = shown[1]
    paths = ["/app/yard", "/app/iot"] * 4
    for path in paths:
        browser.switch_to.new_window("tab")
        tabs.open(path)
    until(lambda: own.views == 1)
    before = len(tabs.run("return performance.getEntriesByType('resource')"))
    assert before > 5
    yard.alerts.add([alert("in tabs", "fired", 70)])
    for handle in browser.window_handles[1::2]:
        browser.switch_to.window(handle)
        until(lambda: any("in tabs" in text for text in tabs.text(".alerts li")))
        assert own.views <= 1
    yard.alerts.add([alert("in tabs", "cleared", 74)])
    until(lambda: any("cleared after 4 min" in text for text in tabs.text(".alerts li")))


@pytest.mark.slow
def test_a_hidden_tab_lets_its_connection_go_and_joins_again(browser: Any, tabs: Tab, own: Service) -> None:
    tabs.open("/app/iot")
    until(lambda: own.views == 1)
    hide = (
        "Object.defineProperty(document, 'hidden', {value: arguments[0], configurable: true});"
        "document.dispatchEvent(new Event('visibilitychange'))"
    )
    tabs.run(hide, True)
    until(lambda: own.views == 0)
    tabs.run(hide, False)
    until(lambda: own.views == 1)


@pytest.mark.slow
def test_the_worker_asks_with_the_token(browser: Any, shown: Any) -> None:
    own = Service(shown[0].tables)
    with serving(own, routes=page_routes(own, shown[1]), open_to_all=OPEN_TO_ALL, token=TOKEN) as server:
        browser.get(f"{server.url}/app/iot")
        browser.execute_script("sessionStorage.setItem('streamgauge.token', arguments[0])", TOKEN)
        browser.refresh()
        Tab(browser, server.url).drawn()
        until(lambda: own.views == 1)
        browser.get("about:blank")
        browser.get_log("browser")


@pytest.mark.slow
def test_the_focus_and_what_was_scrolled_stay_at_a_refresh(tabs: Tab, shown: Any) -> None:
    _, yard = shown[1]
    tabs.open("/app/yard?span=")
    tabs.run("document.querySelectorAll('.alerts .rule')[0].focus()")
    tabs.run("document.querySelector('.rows-panel .scroll').style.maxHeight = '30px'")
    tabs.run("document.querySelector('.rows-panel .scroll').scrollTop = 20")
    tabs.run("window.before = document.activeElement; window.ranked = document.querySelector('.ranked li')")
    yard.alerts.add([alert("again", "fired", 71)])
    until(lambda: any("again" in text and "active" in text for text in tabs.text(".alerts li")))
    # What did not change was not made again.
    assert tabs.run("return document.activeElement === window.before && window.ranked.isConnected")
    # What did is, and who was at it stays there.
    tabs.click(".alerts .rule", "again")
    until(lambda: tabs.run("return document.activeElement.innerText") == "again · elm")  # its picture's head
    tabs.run(
        "document.querySelector('.alerts li.here .rule').focus(); window.before = document.activeElement"
    )
    yard.alerts.add([alert("again", "cleared", 72)])
    until(lambda: tabs.run("return window.before.isConnected") is False)
    assert (
        tabs.run("return document.activeElement.className + document.activeElement.innerText") == "ruleagain"
    )
    assert tabs.run("return document.querySelector('.rows-panel .scroll').scrollTop") == 20


@pytest.mark.slow
def test_back_undoes_a_choice(browser: Any, tabs: Tab) -> None:
    browser.switch_to.new_window("tab")  # a history of its own: a browser keeps 50 steps and drops the oldest
    tabs.open("/app/yard?span=1h")
    tabs.click(".spans button", "15 min")
    tabs.click(".alerts button.name", "elm")
    assert tabs.run("return location.search") == "?span=15m&key.host=elm"
    pressed = "return document.querySelector('.spans button[aria-pressed=true]').innerText"
    browser.back()
    until(lambda: tabs.run("return location.search") == "?span=15m")
    until(lambda: tabs.text(".chip") == [] and tabs.run(pressed) == "15 min")
    browser.back()
    until(lambda: tabs.run(pressed) == "1 h")
    browser.forward()
    until(lambda: tabs.run(pressed) == "15 min")
