"""The page on supernova candidates: its code runs, its rules are read, its cuts are those that there are."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from streamgauge.apps.jobs.job import Job
from streamgauge.apps.registry import app_of
from streamgauge.apps.supernova.cuts.sets import SETS
from streamgauge.apps.supernova.places import Places

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "supernova.md").read_text()


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", PAGE, re.M | re.S)


def test_the_code_runs() -> None:
    names: dict[str, Any] = {"__name__": "page"}
    for text in blocks("python"):
        exec(text, names)


def test_the_files_are_read(tmp_path: Path) -> None:
    (places,), (rules,) = blocks("csv"), blocks("toml")
    known = tmp_path / "known.csv"
    known.write_text(places)
    assert [place.name for place in Places(str(known), 2).all] == ["M 100", "AT 2026abc", "ZTF20aajcdad"]
    file = tmp_path / "rules.toml"
    file.write_text(rules.replace("known.csv", str(known)))
    job = Job.of(app_of("supernova"), "ztf", rules=file)
    assert [rule.name for rule in job.rules["curves"]] == ["very bright", "outburst"]


def test_every_cut_and_setting_is_named() -> None:
    for one in SETS["ztf"]:
        assert f"| `{one.name}` |" in PAGE
    for cut in next(one for one in SETS["ztf"] if one.name == "bts").cuts:
        assert f"| {cut.name} |" in PAGE
    app = app_of("supernova")
    settings = {**app.settings, **{name: "" for form in app.formats for name in form.settings}}
    assert all(f"| `{name}` |" in PAGE for name in settings)
    assert all(f"| `{form.name}` |" in PAGE for form in app.formats)
    assert all(f"| `{part.name}` |" in PAGE for part in app.parts)
