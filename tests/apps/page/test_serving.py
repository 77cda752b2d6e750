"""Which apps and groups a server shows, by what it was asked for."""

from __future__ import annotations

import pytest

from streamgauge.apps.page.served_app import tables_of
from streamgauge.apps.page.serving import pages
from streamgauge.apps.registry import app_of


def test_an_app_is_shown_with_its_group_and_further_groups_are_followed() -> None:
    found = pages(["iot"], ["sensors", "other"], [], {"limit": "78"})
    assert [one.app.name for one in found.apps] == ["iot"]
    assert found.groups == [*tables_of(app_of("iot"), "sensors").values(), "other"]
    assert found.topics == ["sensors.alerts"]
    assert found.apps[0].rules["readings"][0].limit.at == 78


def test_an_app_on_spark_is_shown_from_the_tables_of_its_parts() -> None:
    found = pages(["iot"], [], ["readings", "days", "more"], {}, alerts_topic="told")
    assert found.apps[0].tables == {"readings": "readings", "days": "days"}
    assert (found.groups, found.topics) == ([], ["told"])


def test_groups_alone_have_no_pages() -> None:
    found = pages([], ["by-minute"], [], {})
    assert (found.apps, found.groups) == ([], ["by-minute"])


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
