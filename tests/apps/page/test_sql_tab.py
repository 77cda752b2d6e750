"""The page's tab for SQL: rows with their bounds, errors at their place, and the token."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from streamgauge.apps.page.routes import OPEN_TO_ALL, page_routes

from ...queries.server.http.served import TOKEN, serving
from ...waiting import until
from .drawn import PHONE, Tab


@pytest.fixture
def tab(browser: Any, site: str) -> Tab:
    return Tab(browser, site)


def ask(tab: Tab, statement: str) -> None:
    tab.run("document.getElementById('sql').value = arguments[0]", statement)
    tab.click(".sql button")


def test_a_query_is_answered_with_bounds(tab: Tab, site: str) -> None:
    tab.open("/page/sql")
    assert "SQL" in tab.text("#top nav a[aria-current=page]")
    assert "yard.hosts" in tab.text("#sql-tables dt")
    columns = httpx.get(f"{site}/tables/yard.hosts", timeout=120).json()
    distinct = next(one["name"] for one in columns["columns"] if one["aggregate"] == "distinct")
    count = next(one["name"] for one in columns["columns"] if one["aggregate"] == "count")
    key = columns["keys"][0]["name"]
    statement = f'SELECT {key}, {count}, {distinct} FROM "yard.hosts" LIMIT 3'
    answer = httpx.post(f"{site}/sql", json={"sql": statement}, timeout=120).json()
    ask(tab, statement)
    until(lambda: tab.text(".sql-panel tbody tr"))
    assert tab.text(".sql-panel thead th") == [key, count, distinct]
    rows = tab.text(".sql-panel tbody tr")
    assert len(rows) == 3
    for row, shown, (low, high) in zip(answer["rows"], rows, answer["bounds"][distinct]):
        assert shown.startswith(str(row[0])) and f"{row[1]:,}" in shown
        assert low == high or f"({low:,} – {high:,})" in shown
    assert tab.text(".sql-panel .note") == ["3 rows"]
    assert tab.complaints() == []


def test_what_is_wrong_is_marked_in_its_line(tab: Tab) -> None:
    tab.open("/page/sql", PHONE)
    ask(tab, 'SELECT host\nFROM "yard.hostz"')
    until(lambda: tab.text(".sql-panel .warning pre"))
    assert "did you mean yard.hosts?" in tab.text(".sql-panel .warning p")[0]
    assert tab.text(".sql-panel .warning pre") == ['FROM "yard.hostz"\n     ^']
    ask(tab, "SELECT '<b>' AS x FROM \"yard.hosts\" LIMIT 1")
    until(lambda: "<b>" in " ".join(tab.text(".sql-panel td")))
    assert tab.run("return document.querySelectorAll('.sql-panel td b').length") == 0
    tab.browser.get_log("browser")  # the refusal's status


def test_the_page_is_open_and_its_questions_want_the_token(shown: Any) -> None:
    service, apps = shown
    with serving(service, routes=page_routes(service, apps), open_to_all=OPEN_TO_ALL, token=TOKEN) as server:
        assert httpx.get(f"{server.url}/page/sql", timeout=120).status_code == 200
        body = {"sql": 'SELECT * FROM "yard.hosts" LIMIT 1'}
        assert httpx.post(f"{server.url}/sql", json=body, timeout=120).status_code == 401
