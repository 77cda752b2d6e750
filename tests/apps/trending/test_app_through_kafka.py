"""The app through a real broker: the same alerts on both engines, with an account of every message."""

from __future__ import annotations

import io
import json
import random
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from streamgauge.apps.jobs.job import Job
from streamgauge.apps.registry import app_of
from streamgauge.apps.running.replaying import AppReplay, replayed
from streamgauge.apps.running.report import AppReport

from .parts import MINUTE, post
from .posts import NOON


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two hours of posts: #usual by many, #flood by few, #news that bursts, and people who feel a quake."""
    dice, posts = random.Random(5), []
    for minute in range(120):
        for number in range(8):
            at = NOON + MINUTE * minute + timedelta(seconds=dice.randrange(60))
            posts.append(post(at, f"a{dice.randrange(900)}", "a nice day", "usual"))
            posts.append(post(at, f"f{number % 3}", "buy this", "flood"))
        if 60 <= minute < 65:
            posts += [post(NOON + MINUTE * minute, f"n{minute}.{n}", "it broke", "news") for n in range(9)]
    posts += [post(NOON + MINUTE * 90 + timedelta(seconds=n), f"q{n}", "earthquake!!") for n in range(9)]
    posts.append(post(NOON + MINUTE, "early", "earthquake?"))
    posts.sort(key=lambda one: one["created_at"])
    lines = [json.dumps(one).encode() for one in posts]
    lines[7:7] = [lines[6], b"{broken", json.dumps({**posts[0], "kind": "like"}).encode()]
    path = tmp_path_factory.mktemp("trending") / "posts.jsonl"
    path.write_bytes(b"\n".join(lines))
    return path


def result_of(kafka: Any, path: Path, engine: str) -> dict[str, Any]:
    job = Job.of(app_of("trending"), None, {"words": "0"}, recording=path)
    console = Console(file=io.StringIO())
    return replayed(AppReplay(job, [path], engine), kafka.bootstrap_servers, console)


def check(result: dict[str, Any], path: Path) -> None:
    n = len(path.read_bytes().splitlines())
    account = {"read": n, "counted": n - 3, "filtered": 2, "late": 0, "dead_lettered": 1}
    assert result["account"] == account and result["all_inside_bounds"]
    fired = {(one["rule"], str(one["key"])): one for one in result["alerts"]}
    assert ("trend", "['tag', 'news']") in fired and ("earthquake", "None") in fired
    assert not [key for rule, key in fired if rule == "trend" and ("flood" in key or "usual" in key)]
    assert fired["trend", "['tag', 'news']"]["at"] == (NOON + 65 * MINUTE).isoformat()
    assert "first: 'it broke'" in fired["trend", "['tag', 'news']"]["why"]
    quake = fired["earthquake", "None"]
    assert (
        quake["kind"] == "emergency" and quake["at"] < (NOON + 90 * MINUTE + timedelta(seconds=9)).isoformat()
    )


@pytest.mark.kafka
def test_a_recording_through_a_broker(kafka, recording: Path) -> None:
    result = result_of(kafka, recording, "local")
    check(result, recording)
    assert {row["kind"] for row in result["answers"]["trends"]} == {"tag"}
    shown = io.StringIO()
    Console(file=shown, width=150).print(AppReport(app_of("trending"), result))
    assert "1 × earthquake" in shown.getvalue() and "Every estimate" in shown.getvalue()


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.soak
def test_spark_reports_the_same(kafka, spark, recording: Path) -> None:
    pytest.importorskip("pyspark")
    local, other = (result_of(kafka, recording, engine) for engine in ("local", "spark"))
    check(other, recording)
    assert other["alerts"] == local["alerts"] and other["account"] == local["account"]
