"""The page on sensors names all that there is."""

from __future__ import annotations

import re
from pathlib import Path

from streamgauge.apps.iot.app import APP

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "iot.md").read_text()


def test_the_tables_name_all_that_there_is() -> None:
    told = set(re.findall(r"`([\w -]+)`", PAGE))
    settings = {**APP.settings, "fences": "a.geojson"}
    rules = [one.name for part in APP.parts for one in part.rules(settings)]
    assert {*rules, *APP.settings, *(part.name for part in APP.parts)} <= told
    assert {form.name for form in APP.formats} <= told
    assert {name for form in APP.formats for name in form.settings} <= told
