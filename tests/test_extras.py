"""Without PySpark and pandas: sketches, tester, consumer and command line work; the rest names its extra."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HIDE = """
from importlib.machinery import PathFinder
hidden, find = {"pyspark", "py4j", "pandas", "grpc"}, PathFinder.find_spec
hidden |= {"datasketches", "icu4py", "paho", "prompt_toolkit", "py3langid", "swagger_ui_bundle", "websockets"}
hidden |= {"apprise", "attr", "attrs", "authlib", "cachetools", "deltalake", "httpx2", "psycopg", "pyiceberg"}
PathFinder.find_spec = lambda name, *rest: None if name.partition(".")[0] in hidden else find(name, *rest)
"""
PROGRAM = Path(sys.executable).with_name("streamgauge")

BASE = """
import polars as pl
from streamgauge import *
from streamgauge import json
import streamgauge

users = HLL(lg_k=12).update(range(1000))
assert 950 < (users | HLL.from_bytes(users.to_bytes())).estimate() < 1050
posts = Stream.from_kafka("posts", value=json({"user": pl.String})).tumbling("1m")
posts = posts.agg(posts=count(), users=distinct("user"))
tester = StreamTester(posts)
tester.feed([{"user": "ann"}, {"user": "bob"}, {"user": "ann"}])
assert tester.finish().windows()["posts"].to_list() == [3]
try:
    streamgauge.spark
except ImportError as error:
    assert "install streamgauge with its extra 'spark'" in str(error), error
else:
    raise AssertionError("streamgauge.spark")
assert "spark" in dir(streamgauge) and streamgauge.rules.Threshold and streamgauge.errors.SketchError
"""

CONSUMER = """
import sys
from streamgauge import Stream, count, json
posts = Stream.from_kafka("bare", value=json({}), bootstrap_servers=sys.argv[1]).tumbling("1m")
print(posts.agg(posts=count()).run(until="latest").account)
"""


@pytest.fixture
def bare(tmp_path: Path) -> dict[str, str]:
    """An environment in which nothing of the extras can be imported, by no process."""
    (tmp_path / "sitecustomize.py").write_text(HIDE)
    return {**os.environ, "PYTHONPATH": str(tmp_path)}


def test_sketches_and_the_tester_work_and_spark_names_its_extra(bare: dict[str, str]) -> None:
    done = subprocess.run([sys.executable, "-c", BASE], env=bare, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


NAMED = """
from pathlib import Path
import streamgauge
from streamgauge.agents.ingest.registry import SOURCES, load_kind
from streamgauge.apps.trending.formats.rows import rows
from streamgauge.operators.archive.delta_log import DeltaLog
from streamgauge.operators.archive.store import LocalStore
from streamgauge.operators.families import FAMILIES
from streamgauge.queries.server.http.openapi import assets, page

from streamgauge.operators.definition.aggregates import distinct
from streamgauge.queries.question.question_kinds import QUESTION_KINDS, aggregates_of_kind

answered = [kind for kind, question in QUESTION_KINDS.items() if question.fits(distinct("user"))]
from streamgauge.operators.warm_up.steps import steps

assert "cpc" not in {step.name for step in steps()}
assert answered and all("cpc" not in aggregates_of_kind(kind) for kind in QUESTION_KINDS.values())
for source in SOURCES.keys() - {"mqtt", "postgres", "websocket"}:
    load_kind("sources", source)
assert assets("/docs/assets") == [] and b"its extra <code>serve" in page().body
for extra, use in {
    "agents": lambda: load_kind("sources", "mqtt"),
    "postgres": lambda: load_kind("sources", "postgres"),
    "delta": lambda: DeltaLog.create(LocalStore(Path("archive")), "posts"),
    "iceberg": lambda: streamgauge.write_iceberg_ndv(None, None),
    "notify": lambda: streamgauge.rules.AlertsToApprise("json://localhost"),
    "languages": lambda: rows(None, {}),
    "registry": lambda: streamgauge.avro(registry="http://localhost:8081", subject="orders"),
    "stored": lambda: FAMILIES["cpc"].sketch_class(),
}.items():
    try:
        use()
    except streamgauge.errors.StreamgaugeError as error:
        assert f"install streamgauge with its extra {extra!r}" in str(error), error
    else:
        raise AssertionError(extra)
try:
    streamgauge.stored
except ImportError as error:
    assert "install streamgauge with its extra 'stored'" in str(error), error
else:
    raise AssertionError("streamgauge.stored")
"""


def test_what_needs_an_extra_names_it(bare: dict[str, str]) -> None:
    done = subprocess.run([sys.executable, "-c", NAMED], env=bare, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_command_line_works_and_the_demo_names_the_extra(bare: dict[str, str]) -> None:
    def run(*arguments: str) -> Any:
        return subprocess.run([PROGRAM, *arguments], env=bare, capture_output=True, text=True)

    assert "demo" in run("--help").stdout
    assert run("env", "warm", "--families", "count").returncode == 0
    demo = run("demo", "trending", "--engine", "spark")
    assert (demo.returncode, demo.stdout) == (1, "")
    assert demo.stderr.startswith("error: PySpark is not installed") and len(demo.stderr.splitlines()) == 1
    assert "install streamgauge with its extra 'spark'" in demo.stderr


@pytest.mark.kafka
def test_the_consumer_works(kafka: Any, bare: dict[str, str]) -> None:
    from confluent_kafka import Producer

    kafka.create_topic("bare")
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True})
    for _ in range(3):
        producer.produce("bare", b"{}")
    producer.flush()
    done = subprocess.run(
        [sys.executable, "-c", CONSUMER, kafka.bootstrap_servers], env=bare, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "read=3, counted=3" in done.stdout


def test_ivy_names_the_extra_that_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from streamgauge.apps.dev.kafka.jars import JarsError, _ivy_jar

    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(JarsError, match=r"install streamgauge with its extra 'apps'"):
        _ivy_jar()
