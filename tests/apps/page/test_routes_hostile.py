"""The page's routes with hostile paths, parameters and alerts."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from streamgauge.apps.page.alert_follower import alert_of
from streamgauge.apps.page.routes import OPEN_TO_ALL, page_routes, version
from streamgauge.apps.page.served_app import ServedApp, log_of, tables_of
from streamgauge.queries.server.http.app import application

from ...cases import each
from ...queries.server.http.test_app_hostile import TEXTS, in_url
from .shown import YARD, alert
from .test_routes import responses


def test_no_path_and_no_parameter_breaks_the_page(shown: Any) -> None:
    service, apps = shown
    whole = application(service, None, page_routes(service, apps), OPEN_TO_ALL)
    paths = [route.path for route in whole.routes if route.path.startswith(("/app", "/page"))]
    assert {"/apps/{app}/alerts", f"/page/{version()}"} <= set(paths)
    short = [text for text in TEXTS if len(text) < 1000]
    urls = [path.replace("{app}", in_url(text) or "x") for path in paths for text in short]
    for folder in ("/page/", f"/page/{version()}/", "/changes?app="):
        urls += [folder + in_url(text) for text in short]
    urls += [f"/apps/yard/alerts?last={in_url(text)}" for text in TEXTS]
    for path, response in zip(urls, responses(shown, *urls), strict=True):
        assert response.status_code < 500, (path, response.text[:300])


def test_half_a_character_in_an_alert_hides_no_other(shown: Any) -> None:
    service, _ = shown
    served = replace(ServedApp.of_run(YARD, tables_of(YARD, "yard")), alerts=log_of(YARD, {}))
    assert served.alerts is not None
    wrong = alert_of(json.dumps(replace(alert("a\ud800", "fired", 1), key=("b\udfff",)).to_dict()).encode())
    served.alerts.add([wrong, alert("errors", "fired", 2)])
    (alerts,) = responses((service, [served]), "/apps/yard/alerts")
    assert alerts.status_code == 200
    assert [event["rule"] for event in alerts.json()["events"]] == ["errors", "a\ud800"]


@each(
    "value",
    [
        b"",
        b"[]",
        b"5",
        b"[" * 100_000,
        *(
            json.dumps({**alert("errors", "fired", 1).to_dict(), **more}).encode()
            for more in (
                {"key": {"a": {"b": []}}},
                {"key": [["a"]]},
                {"value": [1]},
                {"limit": {}},
                {"rule": 5},
                {"state": None},
                {"why": ["x"]},
                {"at": "yesterday"},
                {"at": 5},
                {"at": "2026-01-01T00:00:00"},
            )
        ),
    ],
)
def test_what_is_no_alert_is_not_taken_for_one(value: bytes) -> None:
    with pytest.raises((ValueError, KeyError, TypeError, RecursionError)):
        alert_of(value)
