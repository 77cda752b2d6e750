"""The page on alerts: its TOML is read, its code runs, and its tables name what there is."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from streamgauge.operators.rules.outlets.outlet import NotifyingOutlet
from streamgauge.operators.rules.outlets.toml_outlets import KINDS, read_silences
from streamgauge.rules import read_outlets

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "alerts.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.M | re.S)


def names_in_table(heading: str) -> dict[str, str]:
    """The rows of the table behind a text, by their first cell."""
    rows = PAGE.split(heading)[1].split("\n\n")[1].splitlines()[2:]
    return {first.strip(" `"): rest for first, _, rest in (row[1:].partition("|") for row in rows)}


def test_the_files_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLACK_WEBHOOK", "https://hooks.slack.com/services/x")
    path = tmp_path / "outlets.toml"
    path.write_text("\n".join(blocks("toml")))
    slack, manager, templated = read_outlets(path)
    assert slack.title == "ops" and manager.match and templated.template
    assert [silence.why for silence in read_silences(path)] == ["painters"]


def test_the_code_runs() -> None:
    names: dict[str, Any] = {}
    for text in blocks("python"):
        exec(text, names)
    assert names["slack"] in names["alerting"].outlets


def test_all_kinds_and_all_options_are_named() -> None:
    shown = " ".join(names_in_table("without delaying the run:"))
    assert set(re.findall(r"\w+", shown)) >= set(KINDS)
    common = {field.name for field in fields(NotifyingOutlet) if field.init} - {"silences"}
    assert set(re.findall(r"\w+", " ".join(names_in_table("All kinds accept:")))) == common
    options = PAGE.split("| kind | its own options |")[1].split("\n\n")[0].splitlines()[2:]
    by_kind = {kind: row for row in options for kind in re.findall(r"`(\w+)`", row.split("|")[1])}
    for kind, one in KINDS.items():
        if kind in ("slack", "mattermost"):
            continue  # by their webhook's address alone
        own = {field.name for field in fields(one) if field.init} - common - {"silences"}
        if kind in ("alertmanager", "ntfy"):
            own -= {"headers"}
        assert own <= set(re.findall(r"`(\w+)`", by_kind[kind])), kind
