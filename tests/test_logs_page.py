"""The page on logs: its code runs, its rules are read, its tables name what there is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from streamgauge.apps.jobs.job import Job
from streamgauge.apps.logs.app import APP
from streamgauge.apps.logs.columns import COLUMNS

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "logs.md").read_text()


def test_the_code_runs(capsys: Any) -> None:
    names: dict[str, Any] = {"__name__": "page"}
    for text in re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S):
        exec(text, names)
    log = '::1 - - [01/Jan/2026:00:{:02d}:{:02d} +0000] "GET /{} HTTP/1.1" {} 17'
    lines = [log.format(minute, second, second, 503) for minute in range(3) for second in range(30)]
    names["tester"].feed_messages([one.encode() for one in lines])
    assert "errors fired: errors/n is 1 (30 of 30): above 0.05" in capsys.readouterr().out


def test_the_rules_are_read(tmp_path: Path) -> None:
    names = []
    for text in re.findall(r"^```toml\n(\[\[rule.*?)^```", PAGE, re.M | re.S):
        (tmp_path / "rules.toml").write_text(text)
        job = Job.of(APP, "access", {}, tmp_path / "rules.toml")
        names += [one.name for rules in job.rules.values() for one in rules]
    assert names == ["brute force", "few visitors", "new program"]


def test_the_tables_name_all_that_there_is() -> None:
    reported = set(re.findall(r"`([\w-]+)`", PAGE))
    rules = [one for part in APP.parts for one in part.rules({**APP.settings, "slow": "1"})]
    assert all(f"`{one.name}`" in PAGE for one in rules)
    assert {*COLUMNS, *APP.settings, *(form.name for form in APP.formats)} <= reported
    assert {name for form in APP.formats for name in form.settings} - {"zone", "year"} <= reported
