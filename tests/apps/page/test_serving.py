"""Which apps and groups a server shows, by its options."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from streamgauge.apps.app import Feed
from streamgauge.apps.jobs.job import Job
from streamgauge.apps.page.serving import pages
from streamgauge.apps.registry import app_of


def test_an_app_is_shown_with_its_group_and_further_groups_are_followed() -> None:
    result = pages(["iot"], ["sensors", "other"], [], {"limit": "78"})
    assert [one.app.name for one in result.apps] == ["iot"]
    assert result.groups == ["sensors.readings", "sensors.days", "sensors.clocks", "other"]
    assert result.topics == ["sensors.alerts"]
    assert result.apps[0].rules["readings"][0].limit.at == 78


@pytest.mark.parametrize(
    ("format", "given", "also"),
    [
        (None, {"group": "room"}, {"fleets", "clocks"}),
        ("json", {"fences": "areas.geojson"}, {"fences", "clocks"}),
        ("gtfs-realtime", {}, {"fleets", "places"}),
        ("gtfs-realtime", {"group": "", "limit": "80"}, {"places"}),
    ],
)
def test_what_is_followed_is_what_a_run_with_the_same_options_makes(
    format: str | None, given: dict[str, str], also: set[str], tmp_path: Path
) -> None:
    area = {"type": "Point", "coordinates": [8, 49]}
    fence = {"type": "Feature", "properties": {"name": "yard", "radius": 9}, "geometry": area}
    given = {name: value.replace("areas.geojson", f"{tmp_path}/areas") for name, value in given.items()}
    (tmp_path / "areas").write_text(json.dumps(fence))
    result = pages(["iot"], ["g"], [], given, format=format)
    run = Job.of(app_of("iot"), format, given)
    assert set(result.groups) == {f"g.{name}" for name in run.streams(Feed("t", "h:1"))}
    assert set(result.groups) == {f"g.{name}" for name in {"readings", "days"} | also}
    assert result.apps[0].rules.keys() == run.rules.keys()


def test_an_app_on_spark_is_shown_from_the_tables_of_its_parts() -> None:
    alerts = pages(["iot"], [], ["readings", "days", "more"], {}, alerts_topic="fired")
    assert alerts.apps[0].tables == {"readings": "readings", "days": "days"}
    assert (alerts.groups, alerts.topics) == ([], ["fired"])


def test_groups_alone_have_no_pages() -> None:
    result = pages([], ["by-minute"], [], {})
    assert (result.apps, result.groups) == ([], ["by-minute"])


@pytest.mark.parametrize(
    ("names", "groups", "given", "said"),
    [
        (
            ["iot"],
            [],
            {},
            "name the group of its live run by --group, or files of its tables: readings, days",
        ),
        (["nope"], ["g"], {}, "'nope' is not an app"),
        (["iot"], ["g"], {"limits": "3"}, "iot has no such setting"),
        (["iot", "iot"], ["g", "h"], {"limit": "3"}, "serve the apps one by one"),
        ([], ["g"], {"limit": "3"}, "name it by --app"),
    ],
)
def test_what_can_not_be_shown_is_refused(names, groups, given, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        pages(names, groups, [], given)
