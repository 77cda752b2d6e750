"""The page in Chromium: an alert opens the picture of its moment, and a link shows somebody else the same."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from streamgauge.apps.page.routes import OPEN_TO_ALL, page_routes
from streamgauge.queries.server.http.service import Service

from ...queries.server.http.served import TOKEN, serving
from ...waiting import until
from .drawn import DESK, PHONE, Tab

SEARCH = "return location.search"
ALARM = (
    "const c = document.querySelector('.moment-panel canvas'); if (!c) return 0;"
    "const probe = document.body.appendChild(document.createElement('i'));"
    "probe.style.color = 'var(--alarm)';"
    "const want = getComputedStyle(probe).color.match(/\\d+/g).map(Number); probe.remove();"
    "const {data} = c.getContext('2d').getImageData(0, 0, c.width, c.height);"
    "let n = 0; for (let i = 0; i < data.length; i += 4)"
    " if (want.every((v, k) => Math.abs(data[i + k] - v) < 8)) n++; return n"
)
LINK = (
    "Object.defineProperty(navigator, 'clipboard', {configurable: true, value:"
    " {writeText: async (text) => { window.copied = text; }}});"
    "document.querySelector('.link').click(); return window.copied"
)


@pytest.fixture
def tab(browser: Any, site: str) -> Tab:
    return Tab(browser, site)


def events(site: str, app: str) -> list[dict[str, Any]]:
    return httpx.get(f"{site}/apps/{app}/alerts", timeout=120).json()["events"]


@pytest.mark.slow
@pytest.mark.parametrize("size", [DESK, PHONE])
def test_an_alert_opens_what_its_rule_looked_at_around_its_moment(
    tab: Tab, site: str, size: tuple[int, int]
) -> None:
    (event,) = [one for one in events(site, "yard") if one["rule"] == "errors" and one["key"] == "elm"]
    tab.open("/app/yard?span=15m", size)
    assert tab.text(".moment-panel") == []
    place = 1 + [one["id"] for one in events(site, "yard")].index(event["id"])
    tab.click(f".alerts li[aria-posinset='{place}'] .rule")
    until(lambda: tab.run(ALARM) > 100)  # the limit, when it fired, and the point that it is about
    shown = tab.text(".moment-panel")[0]
    assert "errors · elm" in shown and event["why"] in shown and "limit 10%" in shown
    assert f"{event['at'][:19].replace('T', ' ')} – {event['cleared'][:19].replace('T', ' ')}" in shown
    assert "errors in requests" in tab.run(
        "return document.querySelector('.moment-panel .chart').getAttribute('aria-label')"
    )
    assert f"alert={event['id']}" in tab.run(SEARCH)
    assert tab.run("return document.activeElement.closest('.moment-panel') !== null")
    assert tab.run("return document.documentElement.scrollWidth") == size[0]
    tab.press("Escape")
    until(lambda: tab.text(".moment-panel") == [])
    assert tab.run("return document.activeElement.className") == "rule"
    assert tab.run(SEARCH) == "?span=15m"
    assert tab.complaints() == []


def test_an_alert_of_silence_shows_what_came_before(tab: Tab, site: str) -> None:
    (event,) = [one for one in events(site, "iot") if one["rule"] == "dead sensor"]
    tab.open(f"/app/iot?alert={event['id']}")
    until(lambda: tab.run(ALARM) > 50)
    assert "cellar" in tab.text(".moment-panel h2")[0] and event["why"] in tab.text(".moment-panel")[0]
    assert tab.complaints() == []


def test_an_alert_that_is_not_kept_says_so(tab: Tab) -> None:
    tab.open("/app/yard?alert=0123456789abcdef")
    until(lambda: "no alert '0123456789abcdef' is kept here" in tab.text(".moment-panel")[0])
    tab.browser.get_log("browser")  # the answer's status
    tab.click(".moment-panel .tool", "Close")
    until(lambda: tab.text(".moment-panel") == [])


@pytest.mark.slow
def test_a_link_shows_just_this_to_somebody_else(tab: Tab, site: str) -> None:
    event = events(site, "yard")[-1]
    tab.open(f"/app/yard?span=6h&zone=Asia/Tokyo&key.host=elm&alert={event['id']}")
    until(lambda: tab.text(".moment-panel h2") != [""])
    link = tab.run(LINK)
    assert link == f"{site}/app/yard?span=6h&zone=Asia%2FTokyo&key.host=elm&alert={event['id']}"
    tab.open("/app/yard")
    # What goes without saying here may not there.
    assert tab.run(LINK) == f"{site}/app/yard?span=&zone=UTC"
    until(lambda: "Copied" in tab.text(".link")[0])


@pytest.mark.slow
def test_no_token_is_in_a_link(browser: Any, shown: Any) -> None:
    service, apps = shown
    own = Service(service.tables)
    with serving(own, routes=page_routes(own, apps), open_to_all=OPEN_TO_ALL, token=TOKEN) as server:
        browser.get(f"{server.url}/app/iot")
        browser.execute_script("sessionStorage.setItem('streamgauge.token', arguments[0])", TOKEN)
        browser.refresh()
        tab = Tab(browser, server.url)
        tab.drawn()
        link = tab.run(LINK)
        assert link.startswith(f"{server.url}/app/iot?") and TOKEN not in link
        browser.get("about:blank")
        browser.get_log("browser")
