"""The command line: teaches by its help, starts fast, and says in one line what the user can mend."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.main import get_command

from streamgauge.apps.cli.commands import app
from streamgauge.operators import java
from streamgauge.operators.watching.logs import JsonFormatter

from ..command import Ran


def commands_of(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """A command and all below it, as they are typed."""
    yield path
    for name, below in getattr(command, "commands", {}).items():
        yield from commands_of(below, (*path, name))


@pytest.mark.parametrize("command", list(commands_of(get_command(app))), ids=" ".join)
def test_the_help_of_each_command_teaches_by_examples(ran: Ran, command: tuple[str, ...]) -> None:
    text = ran(*command, "--help")
    example = "  " + " ".join(["streamgauge", *command])
    assert any(line.startswith(example) for line in text.splitlines()), text


def test_what_is_logged_is_written_as_asked(ran: Ran, tables: Path) -> None:
    before = logging.getLogger("streamgauge")
    handlers, level = before.handlers[:], before.level
    try:
        ran("--log-format", "json", "query", tables, "describe")
        [added] = [own for own in before.handlers if own not in handlers]
        assert isinstance(added.formatter, JsonFormatter) and before.isEnabledFor(logging.INFO)
    finally:
        before.handlers[:], before.level = handlers, level
    assert "json" in ran("--log-format", "xml", "query", tables, "describe", code=2)


def test_the_version_is_the_packages(ran: Ran) -> None:
    import streamgauge

    assert ran("--version").strip() == f"streamgauge {streamgauge.__version__}"


def test_the_command_line_starts_without_any_engine() -> None:
    code = (
        "import sys, streamgauge.apps.cli.commands;"
        "heavy = 'pyspark numba polars pyarrow numpy confluent_kafka'.split();"
        "print([module for module in heavy if module in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["query", "nowhere.parquet"], "nowhere.parquet: there is no such file or folder"),
        (["query", "TABLES", "--from", "noon"], "'noon' is not a time"),
        (["query", "TABLES", "--every", "45m"], "choose a multiple"),
        (["query", "TABLES", "--by", "country"], "country is not a key of this table"),
        (
            ["query", "TABLES", "--from", "2027-01-01"],
            "no window lies in that span; there are windows from 2026",
        ),
        (
            ["query", "TABLES", "top-k", "--column", "users"],
            "users is a distinct, which can't answer top-k",
        ),
        (["query", "PLAIN", "describe"], "not a table of sketches"),
        (["query", "TEXT", "describe"], "text.parquet: "),
        (["query", "EMPTY", "describe"], "no file in this folder"),
        (["run", "trending", "--input", "nowhere.json"], "nowhere.json: there is no such file"),
    ],
    ids=lambda value: " ".join(value[:3]) if isinstance(value, list) else "",
)
def test_what_the_user_can_mend_is_one_line(
    ran: Ran, tables: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "plain.parquet")
    (tmp_path / "text.parquet").write_text("this is no parquet")
    (tmp_path / "empty").mkdir()
    places = {
        "TABLES": tables,
        "PLAIN": tmp_path / "plain.parquet",
        "TEXT": tmp_path / "text.parquet",
        "EMPTY": tmp_path / "empty",
    }
    said = ran(*(places.get(argument, argument) for argument in arguments), code=1)
    assert said.startswith("error: ") and message in said
    assert len(said.strip().splitlines()) == 1


@pytest.mark.parametrize("arguments", [["demo", "trending"], ["kafka", "start"]], ids=" ".join)
@pytest.mark.parametrize("old", [None, 11])
def test_without_a_fitting_java_nothing_is_started(
    ran: Ran, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], old: int | None
) -> None:
    if old is not None:
        (tmp_path / "java").write_text(f"#!/bin/sh\necho 'openjdk version \"{old}.0.21\"' >&2\n")
        (tmp_path / "java").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(java, "_FOLDERS", ())
    monkeypatch.setenv("STREAMGAUGE_CACHE", str(tmp_path / "cache"))
    said = ran(*arguments, code=1)
    result = f"only Java {old} at {tmp_path / 'java'} was found" if old else "none was found"
    assert said.startswith("error: Java 17 or newer is needed") and result in said and "JAVA_HOME" in said
    assert len(said.strip().splitlines()) == 1


def test_a_cache_folder_that_can_not_be_made_is_named(
    ran: Ran, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("STREAMGAUGE_CACHE", str(tmp_path / "file" / "cache"))
    said = ran("kafka", "status", code=1)
    assert f"the cache folder {tmp_path / 'file' / 'cache'} can't be created" in said
    assert "STREAMGAUGE_CACHE" in said


def test_an_unknown_option_is_a_usage_error(ran: Ran) -> None:
    assert "No such option" in ran("query", "table.parquet", "--nothing", code=2)
