"""`streamgauge kafka groups`: places and streams as they are typed, and what it says."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from streamgauge.apps.cli.kafka import groups
from streamgauge.operators.consumer import migration
from streamgauge.operators.consumer.group import reset as resetting
from streamgauge.operators.watermarks.position import Input

from ...command import Ran


@pytest.mark.parametrize(
    ("typed", "place"),
    [("earliest", "earliest"), ("1200", 1_200), ("2026-06-01T12:00", datetime(2026, 6, 1, 12, tzinfo=UTC))],
)
def test_places_are_read_as_they_are_typed(
    ran: Ran, monkeypatch: pytest.MonkeyPatch, typed: str, place: Any
) -> None:
    collected: list[Any] = []

    def reset(group: str, to: Any, **options: Any) -> dict[Input, int]:
        collected.append((group, to, options))
        return {Input("posts", 1): 7, Input("posts", 0): 5}

    monkeypatch.setattr(resetting, "reset", reset)
    reported = ran(
        "kafka", "groups", "reset", "by-minute", "--offset", typed, "--config", "security.protocol=SSL"
    )
    assert reported.splitlines() == ["posts[0]: 5", "posts[1]: 7"]
    options = {"bootstrap_servers": "localhost:9092", "config": {"security.protocol": "SSL"}, "topics": ()}
    assert collected == [("by-minute", place, options)]


def test_a_stream_is_named_as_python_imports_it(
    ran: Ran, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    collected: list[Any] = []

    def migrate(group: str, stream: Any, **options: Any) -> migration.Migration:
        collected.append((group, type(stream).__name__, options))
        end = datetime(2026, 6, 1, 12, tzinfo=UTC)
        return migration.Migration(group, ("the window changed",), end, {Input("posts", 0): 5}, "table")

    monkeypatch.setattr(migration, "migrate", migrate)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    (tmp_path / "changed_streams.py").write_text(
        "import polars as pl\nimport streamgauge as sg\n"
        "posts = sg.Stream.from_schema({'n': pl.Int64}).tumbling('1m').agg(n=sg.count())\n"
    )
    reported = ran("kafka", "groups", "migrate", "by-minute", "changed_streams:posts", "--dry-run")
    assert reported.splitlines() == [
        "the window changed",
        "windows have closed up to 2026-06-01 12:00:00+00:00; the changed stream would read from:",
        "posts[0]: 5",
    ]
    assert collected == [("by-minute", "Stream", {"start": None, "dry_run": True})]
    as_json = json.loads(ran("kafka", "groups", "migrate", "by-minute", "changed_streams:posts", "--json"))
    assert as_json["starts"] == [{"topic": "posts", "partition": 0, "offset": 5}]


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("streams", "must be a module and a name in it"),
        ("no_such_module:posts", "there is no module 'no_such_module'"),
        ("json:loads", "json:loads must be a stream, got function"),
    ],
)
def test_what_is_no_stream_is_named(typed: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        groups._stream(typed)


@pytest.mark.slow
def test_brokers_that_do_not_answer_are_reported_in_ten_seconds(ran: Ran) -> None:
    assert ran("kafka", "groups", "list", "--bootstrap-servers", "localhost:1", code=1).startswith(
        "error: no broker answered at localhost:1 within 10 s: "
    )
