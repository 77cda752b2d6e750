"""The page of every app in headless Chromium, with the messages of its own example."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from streamgauge.apps.page.routes import OPEN_TO_ALL, page_routes
from streamgauge.apps.registry import app_of
from streamgauge.queries.server.http.service import Service

from ...queries.server.http.served import serving
from .drawn import PICTURES, Tab, pictures
from .exampled import exampled

pytestmark = pytest.mark.soak  # half a minute of sketching; `test_routes_drawn.py` has every kind of panel

APPS = ("trending", "stocks", "supernova", "iot", "logs")


@pytest.fixture(scope="module")
def examples(browser: Any) -> Iterator[str]:
    """The address of a server that shows them all."""
    apps, tables = zip(*map(exampled, APPS))
    service = Service({name: table for some in tables for name, table in some.items()})
    with serving(service, routes=page_routes(service, list(apps)), open_to_all=OPEN_TO_ALL) as server:
        yield server.url
        browser.get("about:blank")  # so that it requests nothing of a server that is gone
        browser.get_log("browser")


def reported(site: str, app: str, rule: str) -> list[str]:
    """The alerts of a rule, as a page is sent them: of a long list it has those that are seen."""
    requested = {"last": "5000", "rule": rule}
    answer = httpx.get(f"{site}/apps/{app}/alerts", params=requested, timeout=120).json()
    return [f"{event['rule']} {event['key']}" for event in answer["events"]]


@pytest.mark.parametrize("name", APPS)
def test_each_panel_shows_something_and_what_happened_was_reported(
    browser: Any, examples: str, tmp_path: Path, name: str
) -> None:
    tab = Tab(browser, examples).open(f"/app/{name}?span=", (960, 900))
    app = app_of(name)
    panels = [text for text in tab.text(".panel") if not text.startswith("What fired")]
    assert len(panels) == len(tab.text(".panel")) - 1
    assert [text for text in panels if "No rows" in text or "\n" not in text] == []
    assert not [text for text in tab.text(".panel .warning") if text]
    assert app.example is not None
    for rule, key in app.example.events:
        parts = key if isinstance(key, list) else [key]
        names = [rule, *(part for part in parts if isinstance(part, str))]
        assert any(all(name in text for name in names) for text in reported(examples, name, rule)), names
    assert tab.complaints() == []
    assert tab.picture(pictures(tmp_path) / f"page-{name}.webp", 1_100) < 90_000
    assert (PICTURES / f"page-{name}.webp").is_file()


def test_a_candidate_s_page_is_a_file_for_colleagues(browser: Any, examples: str, tmp_path: Path) -> None:
    tab = Tab(browser, examples).open("/app/supernova?span=&key.object=ZTF26aaademo", (1100, 900))
    browser.get(tab.run("return document.querySelector('.page-of a').href"))
    assert tab.text("h1") == ["ZTF26aaademo"] and "passed bts" in tab.text(".reasons")[0]
    assert tab.run("return document.querySelectorAll('.images img').length") == 3
    assert tab.run("return document.querySelectorAll('svg circle.seen').length") > 3
    assert tab.complaints() == []
    assert tab.picture(pictures(tmp_path) / "candidate.webp", 720) < 60_000
    assert (PICTURES / "candidate.webp").is_file()
