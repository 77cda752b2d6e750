"""The page about social streams says what the app does: its code runs, its settings are the app's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from streamgauge import StreamTester
from streamgauge.apps.app import Feed
from streamgauge.apps.jobs.job import Job
from streamgauge.apps.registry import app_of

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "trending.md").read_text()


def test_the_code_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(code, {})
    assert "busy page /a fired: users is 50," in capsys.readouterr().out


def test_the_rules_are_rules_of_the_app(tmp_path: Path) -> None:
    (rules,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    path = tmp_path / "rules.toml"
    path.write_text(rules)
    job = Job.of(app_of("trending"), "posts", {}, path)
    assert [name for name, result in job.rules.items() if result] == ["volume", "trends", "earthquakes"]
    streams = job.streams(Feed("posts", "localhost:1"))
    for part in job.parts:
        if (alerting := job.alerting(part, [])) is not None:
            StreamTester(streams[part.name], sinks=[alerting])


def test_formats_and_settings_are_all_there_are() -> None:
    app = app_of("trending")
    formats, settings = (
        re.search(rf"\| {name} \|.*?\n\|[-|]+\n(.*?)\n\n", PAGE, re.DOTALL)[1].splitlines()
        for name in ("format", "setting")
    )
    assert [re.findall(r"`(\S+)`", line)[0] for line in formats] == [one.name for one in app.formats]
    by_key = {}
    for line in settings:
        names, usual = line.split("|")[1:3]
        by_key |= dict(zip(re.findall(r"`(\w+)`", names), [value.strip() for value in usual.split(",")]))
    assert by_key == {**app.settings, **app.format("posts").settings}
