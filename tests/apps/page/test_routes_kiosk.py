"""The page in Chromium on a wall: no controls, from app to app by itself, and Esc leaves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ...waiting import until
from .drawn import Tab

PATH = "return location.pathname"
SHOWN = "return getComputedStyle(document.querySelector(arguments[0])).display !== 'none'"


@pytest.fixture
def tab(browser: Any, site: str) -> Iterator[Tab]:
    browser.get("about:blank")
    browser.get_log("browser")  # of a server that is gone
    yield Tab(browser, site)
    browser.get("about:blank")


@pytest.mark.slow
def test_a_wall_shows_one_app_after_the_other(tab: Tab) -> None:
    tab.open("/app/iot?kiosk=1&span=1h")
    assert tab.run("return document.documentElement.dataset.kiosk") == ""
    assert not tab.run(SHOWN, "#top") and not tab.run(SHOWN, "footer")
    until(lambda: tab.run("return scrollY") > 0 or tab.run(PATH) == "/app/yard")
    until(lambda: tab.run(PATH) == "/app/yard")
    assert tab.run("return location.search") == "?kiosk=1&span=1h"
    until(lambda: tab.text(".hint"))
    tab.press("Escape")
    until(lambda: tab.run(SHOWN, "#top"))
    tab.drawn()
    assert tab.run("return location.search") == "?span=1h"
    assert tab.complaints() == []


def test_a_button_begins_it(tab: Tab) -> None:
    tab.open("/app/yard?span=1h")
    tab.click(".tool", "Kiosk")
    until(lambda: tab.run("return location.search") == "?kiosk=20&span=1h")
    until(lambda: tab.text(".hint") == ["Esc leaves the kiosk"])
    assert not tab.run(SHOWN, "#top")
