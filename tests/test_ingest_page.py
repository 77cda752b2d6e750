"""What docs/ingest.md shows runs."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from streamgauge.agents.ingest.config import parse_config
from streamgauge.agents.ingest.flume_properties import parse_properties
from streamgauge.agents.ingest.presets import PRESETS
from streamgauge.agents.ingest.registry import CHANNELS, INTERCEPTORS, SINKS, SOURCES, load_kind

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "ingest.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.M | re.S)


@pytest.mark.parametrize("text", blocks("toml"))
def test_configurations_can_be_read(text: str, tmp_path: Path) -> None:
    assert parse_config(text, "docs", "agent", tmp_path).routes


def test_flumes_properties_can_be_read(tmp_path: Path) -> None:
    (text,) = blocks("properties")
    assert parse_properties(text, "docs", tmp_path).name == "a1"


def test_all_kinds_fields_and_presets_are_named() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \|[^|]*\| (.*?) \|$", PAGE, re.M))
    for kind in SOURCES:
        names = {field.name for field in fields(load_kind("sources", kind))}
        assert {name for name in names if f"`{name}`" not in rows[kind]} == set(), kind
    for name in (*CHANNELS, *SINKS, *INTERCEPTORS, *PRESETS):
        assert f"`{name}`" in PAGE, name


@pytest.mark.kafka
def test_commands_on_files(kafka: Any, tmp_path: Path) -> None:
    (tmp_path / "access.log").write_text("one\ntwo\n")
    (tmp_path / "app.log").write_text("2026-01-01 error\n  trace\n2026-01-02 fine\n")
    commands = [line for block in blocks("bash") for line in block.splitlines() if "--once" in line]
    program = [sys.executable, "-c", "from streamgauge.apps.cli.program import main; main()"]
    accounts = []
    for command in commands:
        words = shlex.split(command)[1:]
        words += ["--bootstrap-servers", kafka.bootstrap_servers, "--name", f"docs-{tmp_path.name}"]
        words += [] if "--json" in words else ["--json"]
        done = subprocess.run([*program, *words], cwd=tmp_path, capture_output=True, check=True, timeout=300)
        accounts.append(json.loads(done.stdout)["sent"])
    assert accounts == [2, 2]
