"""The page about archives: what it shows runs, in the order in which it stands there."""

from __future__ import annotations

import json
import re
import shlex
import uuid
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from confluent_kafka import Producer
from typer.testing import CliRunner

from streamgauge.apps.cli.archive import decoders_of
from streamgauge.apps.cli.commands import app

PAGE = Path(__file__).parents[1] / "docs" / "archive.md"


@pytest.mark.kafka
def test_the_page_runs(kafka: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    topic = f"posts-{uuid.uuid4().hex[:8]}"
    text = (
        PAGE.read_text()
        .replace("archive posts ", f"archive {topic} ")
        .replace('"posts", value', f'"{topic}", value')
    )
    text = text.replace("posts-again", f"{topic}-again").replace("60x", "max")  # two hours are in it
    commands = [line.partition("#")[0] for line in _block(text, "bash").splitlines()]
    monkeypatch.chdir(tmp_path)
    kafka.create_topic(topic, 2)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True})
    for number in range(90):
        hour = number // 30
        value = json.dumps({"author": f"a{number % 10}", "created_at": f"2026-01-01T0{hour}:00:00"})
        producer.produce(topic, value, partition=number % 2, timestamp=1_767_225_600_000 + 3_600_000 * hour)
    assert producer.flush(120) == 0
    output = ""
    for command in commands[1:]:
        arguments = [*shlex.split(command)[1:], "--bootstrap-servers", kafka.bootstrap_servers]
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, result.output
        output += result.output
    assert "90 messages" in output and output.count("45 messages in 1 file, whole") == 2
    exec(compile(_block(text, "python"), str(PAGE), "exec"), {})
    windows = capsys.readouterr().out
    assert windows.count("2026-01-01") == 6 and windows.count("┆ 30") == 3
    declared = decoders_of(_block(PAGE.read_text(), "sql", "CREATE STREAM"), ["posts"])
    assert list(declared["posts"].schema) == ["author", "created_at"]
    counts = (
        pl.read_parquet("archive/**/*.parquet", hive_partitioning=True).group_by("topic", "partition").len()
    )
    assert sorted(counts.rows()) == [(topic, 0, 45), (topic, 1, 45)]
    if find_spec("duckdb"):
        import duckdb

        counted = duckdb.sql(_block(text, "sql", "-- DuckDB").partition("\n")[2].rstrip("; \n")).fetchall()
        assert sorted(counted) == sorted(counts.rows())


@pytest.mark.kafka
def test_an_archive_is_a_delta_table(
    kafka: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    pytest.importorskip("deltalake")
    section = PAGE.read_text().partition("## As a Delta table")[2].partition("\n## ")[0]
    topic = f"posts-{uuid.uuid4().hex[:8]}"
    monkeypatch.chdir(tmp_path)
    kafka.create_topic(topic, 2)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True})
    for number in range(90):
        producer.produce(topic, b"%d" % number, partition=number % 2, timestamp=1_767_225_600_000)
    assert producer.flush(120) == 0
    command = shlex.split(_block(section, "bash").replace(" posts ", f" {topic} "))[1:]
    for _ in range(2):
        result = CliRunner().invoke(app, [*command, "--bootstrap-servers", kafka.bootstrap_servers])
        assert result.exit_code == 0, result.output
    program = _block(section, "python").replace("topic=posts", f"topic={topic}")
    exec(compile(program, str(PAGE), "exec"), {})
    assert capsys.readouterr().out.count("┆ 45") == 2
    [entries] = [list(Path("archive", f"topic={topic}", "_delta_log").glob("*.json"))]
    assert len(entries) == 3  # the table, and a commit for each partition


def _block(text: str, language: str, begins: str = "") -> str:
    match = re.search(rf"```{language}\n({begins}.*?)```", text, re.DOTALL)
    assert match is not None
    return match[1]
