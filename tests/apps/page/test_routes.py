"""What the page learns of apps, and how it is sent; what it may load."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from streamgauge.apps.page import routes
from streamgauge.apps.page.changes import PageChanges, state_of
from streamgauge.apps.page.routes import OPEN_TO_ALL, page_routes, version
from streamgauge.apps.page.served_app import ServedApp
from streamgauge.apps.registry import app_of
from streamgauge.queries.server.http.app import application
from streamgauge.queries.server.http.service import Service
from streamgauge.queries.views.live import LiveTable

from ...queries.server.http.served import TOKEN
from .shown import alert


def responses(shown: Any, *paths: str, token: str | None = None, **more: Any) -> list[httpx.Response]:
    service, apps = shown
    app = application(service, token, page_routes(service, apps), OPEN_TO_ALL)

    async def ask() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost:8055") as client:
            return [await client.get(path, **more) for path in paths]

    return asyncio.run(ask())


def test_the_page_loads_nothing_but_its_own_files_which_may_be_kept(shown: Any) -> None:
    home, page = responses(shown, "/", "/app/iot")
    assert home.text == page.text and page.headers["cache-control"] == "no-cache"
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "script-src 'self'" in policy
    assert "style=" not in page.text and "<script>" not in page.text
    files = re.findall(r'(?:src|href)="(/page/[^"]+)"', page.text)
    assert len(files) == 6 and all(f"/page/{version()}/" in name for name in files)
    result = responses(shown, *files)
    assert {one.status_code for one in result} == {200}
    assert {one.headers["cache-control"] for one in result} == {"public, max-age=31536000, immutable"}
    modules = re.findall(r'from "\./([a-z]+\.js)"', responses(shown, files[-1])[0].text)
    assert {
        one.status_code for one in responses(shown, *(f"/page/{version()}/{name}" for name in modules))
    } == {200}
    assert responses(shown, "/page/other/main.js", f"/page/{version()}/nope.js")[0].status_code == 404


def test_no_module_makes_elements_of_text(shown: Any) -> None:
    names = [path.name for path in (Path(routes.__file__).parent / "files").glob("*.js")]
    assert "main.js" in names
    for one in responses(shown, *(f"/page/{version()}/{name}" for name in names)):
        assert one.status_code == 200
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|https?://(?!www\.w3\.org)", one.text
        )


def test_an_app_is_described_with_its_parts_panels_and_limits(shown: Any) -> None:
    apps, iot, nope = responses(shown, "/apps", "/apps/iot", "/apps/nope")
    assert [app["name"] for app in apps.json()["apps"]] == ["iot", "yard"]
    reported = iot.json()
    assert reported["parts"]["readings"] == {"table": "iot.readings", "at": "at"}
    assert [panel["kind"] for panel in reported["panels"]][:2] == ["lines", "number"]
    assert reported["panels"][0]["limits"] == [{"rule": "limit", "at": 30.0, "clear": 28.0, "where": {}}]
    (jump,) = [rule for rule in reported["rules"] if rule["name"] == "jump"]
    assert jump.items() >= {"part": "readings", "kind": "jump", "every": True, "plain": False}.items()
    (limit,) = [rule for rule in reported["rules"] if rule["name"] == "limit"]
    assert limit.items() >= {"value": "value", "to": "", "each": False, "plain": True}.items()
    (dead,) = [rule for rule in reported["rules"] if rule["name"] == "dead sensor"]
    assert "value" not in dead and dead["figure_unit"] == "s"
    assert nope.status_code == 404 and "there are iot, yard" in nope.json()["detail"]


def test_a_table_of_no_app_has_a_page_of_its_columns(shown: Any) -> None:
    service, (_, yard) = shown
    apps, one = responses((service, [yard]), "/apps", "/apps/iot.days")
    assert [app["name"] for app in apps.json()["apps"]] == ["yard", "iot.readings", "iot.days"]
    reported = [(panel["kind"], panel["title"]) for panel in one.json()["panels"]]
    assert reported == [
        ("number", "readings"),
        *(("lines", f"{name} by sensor") for name in ("readings", "low", "high")),
        ("spread", "spread"),
        ("rows", "All groups"),
    ]
    assert one.json()["alerts"] is False and one.json()["parts"] == {
        "iot.days": {"table": "iot.days", "at": None}
    }
    waiting = Service({"later": LiveTable("later")})
    assert responses((waiting, []), "/apps/later")[0].status_code == 503


def test_rules_of_a_file_take_the_place_of_the_app_s_own(tmp_path: Any) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text('[[rule]]\nname = "cold"\nkind = "threshold"\nvalue = "value"\nbelow = 3\n')
    served = ServedApp.of_run(app_of("iot"), {"readings": "r"}, rules=rules)
    described = served.described()
    assert [rule["name"] for rule in described["rules"]] == ["cold"]
    assert described["panels"][0]["limits"][0]["at"] == 3.0
    # Panels of parts that aren't served are left out.
    assert {panel["part"] for panel in described["panels"]} == {"readings"}


def test_a_part_that_does_not_run_is_not_waited_for(tmp_path: Any) -> None:
    """Terms have no answers to show, no panel, and here no rules; fences are of runs that were given some."""
    rules = tmp_path / "rules.toml"
    text = '[[rule]]\nname = "few"\nkind = "threshold"\nvalue = "records"\nbelow = 3\npart = "days"\n'
    rules.write_text(text)
    parts = ("traffic", "days", "terms")
    served = ServedApp.of_run(app_of("logs"), {name: name for name in parts}, rules=rules)
    assert list(served.tables) == ["traffic", "days"]
    fences = ServedApp.of_run(app_of("iot"), {"fences": "f", "days": "d"})
    assert list(fences.tables) == ["days"]


def test_a_setting_of_nobody_is_refused() -> None:
    with pytest.raises(
        ValueError, match="limits: iot has no such setting; with the format json it has limit"
    ):
        ServedApp.of_run(app_of("iot"), {}, {"limits": "3"})
    # Those of the run's format are known.
    assert ServedApp.of_run(app_of("iot"), {}, {"time": "ts", "limit": "3"}).rules["readings"]
    with pytest.raises(ValueError, match="--set time: iot has no such setting; with the format gtfs"):
        ServedApp.of_run(app_of("iot"), {}, {"time": "ts"}, format="gtfs-realtime")


def test_what_fired_is_listed_the_latest_first(shown: Any) -> None:
    result, few, wrong, many = responses(
        shown, *(f"/apps/yard/alerts{last}" for last in ("", "?last=1", "?last=x", "?last=5001"))
    )
    events = result.json()["events"]
    assert {event["rule"] for event in events} >= {"errors"} and all(event["why"] for event in events)
    assert len(few.json()["events"]) == 1 and few.json()["more"] == len(events) - 1
    assert wrong.status_code == many.status_code == 400 and "from 1 to 5000" in many.json()["detail"]


def test_one_alert_one_rule_and_a_text_are_selected(shown: Any) -> None:
    (whole,) = responses(shown, "/apps/yard/alerts")
    event = next(one for one in whole.json()["events"] if one["key"] == "elm")
    paths = (
        f"id={event['id']}",
        "id=x",
        "rule=errors",
        "rule=nope",
        "text=ELM",
        "text=zzz",
        "rule=errors&text=elm",
    )
    one, none, rule, nope, text, zzz, both = responses(
        shown, *(f"/apps/yard/alerts?{path}" for path in paths)
    )
    assert one.json()["events"] == [event]
    assert none.status_code == 404 and "'x' is kept here" in none.json()["detail"]
    assert {each["rule"] for each in rule.json()["events"]} == {"errors"}
    assert nope.json()["events"] == zzz.json()["events"] == []
    # How many there are of each rule is said of all.
    assert nope.json()["by_rule"] == whole.json()["by_rule"]
    assert (
        {each["key"] for each in text.json()["events"]}
        == {each["key"] for each in both.json()["events"]}
        == {"elm"}
    )


def test_without_the_token_only_the_empty_page_is_served(shown: Any) -> None:
    paths = ["/", "/app/iot", f"/page/{version()}/main.js"]
    assert [one.status_code for one in responses(shown, *paths, token=TOKEN)] == [200] * 3
    closed = ["/apps", "/apps/iot", "/apps/iot/alerts", "/changes?app=iot", "/tables"]
    assert [one.status_code for one in responses(shown, *closed, token=TOKEN)] == [401] * 5
    right = {"Authorization": f"Bearer {TOKEN}"}
    assert responses(shown, "/apps/iot", token=TOKEN, headers=right)[0].status_code == 200


def test_the_state_shows_how_far_each_table_is_and_that_all_is_accounted_for(shown: Any) -> None:
    service, (iot, _) = shown
    state = state_of(service, iot)
    assert state["parts"]["readings"]["ready"] and state["parts"]["readings"]["stale"] is None
    account = state["parts"]["readings"]["account"]
    assert account["read"] == sum(account.values()) - account["read"] == 415
    assert json.loads(json.dumps(state)) == state
    empty = state_of(Service({}), iot)
    assert empty["parts"] == {}


def test_events_send_the_state_at_once_and_again_when_something_fires(shown: Any) -> None:
    service, (iot, yard) = shown

    async def follow() -> list[dict[str, Any]]:
        got: asyncio.Queue[bytes] = asyncio.Queue()
        gone = asyncio.Event()

        async def receive() -> dict[str, str]:
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.body":
                await got.put(message["body"])

        own = Service(service.tables)
        view = asyncio.create_task(PageChanges(own, [iot, yard], None)({}, receive, send))
        first = await asyncio.wait_for(got.get(), 60)
        yard.alerts.add([alert("noted", "fired", 71)])
        second = await asyncio.wait_for(got.get(), 60)
        gone.set()
        await view
        return [json.loads(body.split(b"data: ")[1])["apps"] for body in (first, second)]

    first, second = asyncio.run(follow())
    assert second["yard"]["alerts"]["number"] == first["yard"]["alerts"]["number"] + 1
    assert first["yard"]["parts"] == second["yard"]["parts"] and first["yard"]["parts"]["hosts"]["ready"]
    assert first["iot"] == second["iot"]
    wrong = responses(shown, "/changes", "/changes?app=nope")
    assert [one.status_code for one in wrong] == [400, 404]
