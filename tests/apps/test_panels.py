"""What apps say that their pages show: it must be there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streamgauge.apps.app import App, Feed, Settings
from streamgauge.apps.jobs.job import Job
from streamgauge.apps.panels import NumberPanel, paths
from streamgauge.apps.registry import APPS, app_of

FORMATS = {"iot": ("devices", "json")}
"""Formats that together have all parts of an app."""


@pytest.fixture
def given(tmp_path: Path) -> dict[str, dict[str, str]]:
    """Settings of apps with which all parts that have panels run."""
    (tmp_path / "routes.csv").write_text("route,latitude,longitude\na,0,8\na,0,9\n")
    return {"iot": {"map": "yes", "routes": f"{tmp_path}/routes.csv"}}


def strange(app: App, given: Mapping[str, Settings]) -> list[tuple[str, str]]:
    """The names in an app's panels that their parts have neither as a key nor as an aggregate."""
    known: dict[str, set[str]] = {}
    for form in FORMATS.get(app.name, (None,)):
        requested = Job.of(app, form, given.get(app.name)).streams(Feed("topic", "localhost:9092"))
        known |= {name: {*stream.keys, *stream.aggregates} for name, stream in requested.items()}
    return [
        (panel.title, path)
        for panel in app.panels
        for path in paths(panel)
        if path not in known[panel.part] and path.partition(".")[0] not in known[panel.part]
    ]


@pytest.mark.parametrize("name", APPS)
def test_every_name_in_a_panel_is_a_key_or_an_aggregate_of_its_part(name: str, given: Any) -> None:
    assert strange(app_of(name), given) == []


def test_a_name_that_the_part_does_not_have_is_found(given: Any) -> None:
    app = replace(app_of("iot"), panels=(NumberPanel("Users", "days", "users", to="readings"),))
    assert strange(app, given) == [("Users", "users")]


def test_a_panel_of_a_part_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'Users' is of 'hours'; its parts are readings, days"):
        replace(app_of("iot"), panels=(NumberPanel("Users", "hours", "users"),))
