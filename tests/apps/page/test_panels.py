"""What apps say that their pages show: it must be there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streamgauge.apps.app import App, Feed
from streamgauge.apps.page.panels import NumberPanel, paths
from streamgauge.apps.registry import APPS, app_of


def strange(app: App) -> list[tuple[str, str]]:
    """The names in panels of parts that run unasked, which are neither keys nor aggregates of these."""
    form = app.formats[0]
    settings = app.chosen(form, {})
    rows = form.source(Feed("topic", "localhost:9092"), settings)
    asked = {part.name: part.ask(rows) for part in app.parts if part.wanted(settings)}
    known = {name: {*stream.keys, *stream.aggregates} for name, stream in asked.items()}
    return [
        (panel.title, path)
        for panel in app.panels
        if panel.part in known
        for path in paths(panel)
        if path not in known[panel.part] and path.partition(".")[0] not in known[panel.part]
    ]


@pytest.mark.parametrize("name", APPS)
def test_every_name_in_a_panel_is_a_key_or_an_aggregate_of_its_part(name: str) -> None:
    assert strange(app_of(name)) == []


def test_a_name_that_the_part_does_not_have_is_found() -> None:
    app = replace(app_of("iot"), panels=(NumberPanel("Users", "days", "users", to="readings"),))
    assert strange(app) == [("Users", "users")]


def test_a_panel_of_a_part_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'Users' is of 'hours'; its parts are readings, days"):
        replace(app_of("iot"), panels=(NumberPanel("Users", "hours", "users"),))
