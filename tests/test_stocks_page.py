"""The page on stocks: its code runs, its rules are read, its settings are those that there are."""

from __future__ import annotations

import re
from pathlib import Path

from streamgauge.apps.jobs.job import Job
from streamgauge.apps.registry import app_of

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "stocks.md").read_text()


def test_the_code_runs() -> None:
    for text in re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S):
        exec(text, {"__name__": "page"})


def test_the_rules_are_read(tmp_path: Path) -> None:
    (text,) = re.findall(r"^```toml\n(.*?)^```", PAGE, re.M | re.S)
    path = tmp_path / "rules.toml"
    path.write_text(text)
    job = Job.of(app_of("stocks"), "alpaca", {}, path)
    assert [len(job.rules[part]) for part in ("tape", "hours")] == [1, 1]


def test_settings_and_rules_are_those_that_there_are() -> None:
    app = app_of("stocks")
    reported = dict(
        re.findall(r"`(\w+)=([^`]*)`", PAGE.split("## What it reports")[1].split("## Answers")[0])
    )
    for name, value in reported.items():
        assert name in app.settings
        assert not value or app.settings[name] == value or name == "splits"
    rules = [rule.name for part in app.parts for rule in part.rules(app.settings)]
    for name in rules:
        said = name.replace("block by value", "by value").replace("market-wide level ", "")
        assert said in PAGE, name
    assert all(f"`{form.name}`" in PAGE for form in app.formats)
