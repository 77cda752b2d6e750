"""Where workers get their Python from: an archive, nothing installed; a Spark Connect server; nowhere."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from streamgauge.apps.dev.kafka.node import free_port

from .conftest import Trades, check
from .standalone import PYTHON, SETTINGS, Cluster, Process

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.apart, pytest.mark.soak]

PROGRAM = Path(sys.executable).with_name("streamgauge")
FAMILIES = "count,distinct,sum,quantiles,reading"

PLAIN = """
import sys
from pyspark.sql import SparkSession
import streamgauge as sg
builder = SparkSession.builder.master(sys.argv[1]).config("spark.driver.host", "127.0.0.1")
spark = builder.config("spark.ui.enabled", "false").getOrCreate()
sg.spark.sketch(spark.range(3)).agg(n=sg.count()).show()
"""


def test_an_archive_is_all_that_workers_need(trades: Trades, tmp_path: Path) -> None:
    archive = tmp_path / "environment.tar.gz"
    done = subprocess.run(
        [PROGRAM, "env", "pack", archive, "--families", FAMILIES], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    with Cluster(tmp_path / "cluster", installed=False) as cluster:
        given = {"servers": trades.servers, "topic": trades.topic, "folder": tmp_path, "most": 1_200}
        result = cluster.run(**given, jobs=["stream", "buckets"], archive=archive)
        logs = [log.read_text() for log in (tmp_path / "cluster").glob("worker-*/work/*/*/stderr")]
    for way in ("Catalyst", "buckets"):
        check(result[f"stream {way}"], trades)
    assert logs and not any("compiling kernels" in log for log in logs)


def test_spark_connect_in_front_of_a_cluster(cluster: Cluster, trades: Trades, tmp_path: Path) -> None:
    pytest.importorskip("grpc")
    (tmp_path / "rows").symlink_to(trades.folder / "rows")
    (programs := tmp_path / "bin").mkdir()
    (programs / PYTHON).write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (programs / PYTHON).chmod(0o755)
    port = free_port()
    rocksdb = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    settings = {
        **SETTINGS,
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.sql.streaming.stateStore.providerClass": rocksdb,
    }
    server = Process(
        tmp_path / "server",
        "SparkSubmit",
        *("--master", cluster.url, "--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
        *(f"--conf={name}={value}" for name, value in settings.items()),
        "spark-internal",
        env={"PYSPARK_PYTHON": PYTHON, "PATH": f"{programs}:{os.environ['PATH']}"},
    )
    try:
        server.says(r"(Spark Connect server started)")
        given = {"servers": trades.servers, "topic": trades.topic, "folder": tmp_path}
        jobs = ["stream", "buckets", "batch", "frames", "parquet"]
        result = cluster.run(**{**given, "master": f"sc://127.0.0.1:{port}"}, jobs=jobs)
    finally:
        server.kill()
    for job in ("stream Catalyst", "stream buckets", "batch", "frame Catalyst", "frame buckets"):
        check(result[job], trades)


def test_an_app_runs_in_client_mode(cluster: Cluster, tmp_path: Path) -> None:
    lines = [
        f'10.0.0.{n % 7} - - [01/Jan/2026:00:{n // 60:02}:{n % 60:02} +0000] "GET /{n % 5} HTTP/1.1" 200 {n}'
        for n in range(600)
    ]
    (tmp_path / "access.log").write_text("\n".join(lines) + "\n")
    settings = " ".join(f"--conf '{name}={value}'" for name, value in SETTINGS.items())
    (programs := tmp_path / "bin").mkdir()
    (programs / PYTHON).write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (programs / PYTHON).chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PYSPARK_PYTHON": PYTHON,
        "PYSPARK_SUBMIT_ARGS": f"--master {cluster.url} {settings} pyspark-shell",
    }
    done = subprocess.run(
        [PROGRAM, "run", "logs", "--input", tmp_path / "access.log", "--engine", "spark", "--json"],
        env=environment,
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert '"all_inside_bounds": true' in done.stdout


def test_a_plain_session_says_what_to_set(tmp_path: Path) -> None:
    with Cluster(tmp_path / "cluster", installed=False) as cluster:
        environment = {name: value for name, value in os.environ.items() if name != "PYSPARK_PYTHON"}
        done = subprocess.run(
            [sys.executable, "-c", PLAIN, cluster.url], env=environment, capture_output=True, text=True
        )
    assert done.returncode == 1
    said = done.stderr.strip().splitlines()[-1]
    assert "WorkerPythonError: Spark's Python workers on spark://127.0.0.1" in said
    assert "streamgauge env pack environment.tar.gz" in said and "PYSPARK_PYTHON" in said
