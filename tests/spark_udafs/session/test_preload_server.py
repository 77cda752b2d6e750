"""Spark's Python processes on a local master: forked from one that has loaded what they run."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import runpy
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from streamgauge import Stream, distinct
from streamgauge.operators.consumer.worker.worker_server import WorkerServer
from streamgauge.operators.warm_up.sketching import SketchingKinds
from streamgauge.spark_udafs.session import preload_client, preload_server
from streamgauge.spark_udafs.session.python_launcher import quick_python

from ...waiting import until

pytestmark = [
    pytest.mark.apart,
    pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux alone"),
]

HOME = "pyspark.find_spark_home"
"""A module of PySpark that says something and ends."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name of a server's socket; it serves whatever comes, and no test ends it."""
    name = str(tmp_path_factory.mktemp("preload") / "server")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYTEST_CURRENT_TEST", raising=False)  # which changes while a test runs
        made = WorkerServer(
            "streamgauge.spark_udafs.session.preload_server",
            idle_seconds=600,  # a busy machine may take minutes for the tests between
            arguments=[name],
            variables=preload_server._as_spark_sets(os.environ),
        )
        made.prepare([])
    until(lambda: Path(name).exists())
    yield name
    made.end()
    assert not [one for one in made._processes if one.poll() is None]


def run(server: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """What Spark would start as Python there, with these arguments."""
    program = [sys.executable, "-IS", preload_client.__file__, server, sys.executable, *arguments]
    environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONUNBUFFERED": "YES", **variables}
    environment.pop("PYTEST_CURRENT_TEST", None)
    return subprocess.run(program, env=environment, capture_output=True, text=True, timeout=300)


SAYS = """\
import os, sys
print([os.environ.get("SPARK_OF_A_TEST"), sys.argv[1:], os.getcwd() == sys.path[0], sys.path[1]])
print(sys.orig_argv[2], "streamgauge.spark_udafs.merge.shared_state" in sys.modules)
print("and on this", file=sys.stderr)
sys.exit(int(sys.argv[1]))
"""
MODULE = "pyspark_of_a_test"


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A folder with a module that clients hand over."""
    (tmp_path / f"{MODULE}.py").write_text(SAYS)
    client = tmp_path / "client.py"
    client.write_text(Path(preload_client.__file__).read_text().replace('"pyspark."', f'"{MODULE}"'))
    monkeypatch.setattr(preload_client, "__file__", str(client))
    return str(tmp_path)


@pytest.mark.slow
def test_a_process_is_forked_that_is_as_python_would_be(server: str, path: str) -> None:
    done = run(server, "-m", MODULE, "3", PYTHONPATH=path, SPARK_OF_A_TEST="here")
    said, how = done.stdout.splitlines()
    assert said == str(["here", ["3"], True, path])
    assert how == "streamgauge.spark_udafs.session.preload_server True"
    assert done.stderr == "and on this\n" and done.returncode == 3


@pytest.mark.parametrize("variables", [{"LC_ALL": "C"}, {"PYTHONHASHSEED": "1"}, {"OMP_NUM_THREADS": "7"}])
def test_one_of_another_environment_loads_for_itself(
    server: str, path: str, variables: dict[str, str]
) -> None:
    done = run(server, "-m", MODULE, "3", PYTHONPATH=path, **variables)
    assert done.stdout.splitlines()[1] == f"{MODULE} False"
    assert done.stderr == "and on this\n" and done.returncode == 3


def test_what_cannot_be_run_says_so_as_python_does(server: str) -> None:
    done = run(server, "-m", "pyspark.absent")
    assert done.returncode == 1
    assert "No module named pyspark.absent" in done.stderr


@pytest.mark.parametrize("name", ["absent", "left"])
def test_without_a_server_python_itself_runs(name: str, tmp_path: Path) -> None:
    if name == "left":  # nobody listens there any more
        with socket.socket(socket.AF_UNIX) as gone:
            gone.bind(str(tmp_path / name))
    done = run(str(tmp_path / name), "-m", HOME)
    assert done.stdout.strip().endswith("pyspark") and done.returncode == 0
    assert run(str(tmp_path / name), "-c", "print(3)").stdout == "3\n"


@pytest.mark.slow
@pytest.mark.parametrize("sent", [b"", b"short", b"nothing of use", struct.pack("=q", 2) + b"[]"])
def test_who_sends_nothing_of_use_leaves_the_server_to_others(server: str, path: str, sent: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(server)
        client.send(sent)
    with socket.socket(socket.AF_UNIX) as silent:
        silent.connect(server)
        silent.send(sent)
        done = run(server, "-m", MODULE, "3", PYTHONPATH=path)
    assert done.stdout.splitlines()[1] == "streamgauge.spark_udafs.session.preload_server True", done.stderr


@pytest.mark.slow
def test_it_loads_what_streams_need_and_nothing_that_a_fork_breaks() -> None:
    rows = Stream.from_schema({"user": pl.String, "at": pl.String}, time="at")
    kinds = SketchingKinds.of(rows.tumbling("1m").agg(users=distinct("user")))
    code = f"""
import pickle, sys
from streamgauge.spark_udafs.session import preload_server
preload_server._load(None)
preload_server._load(pickle.loads({pickle.dumps([kinds])!r}))
print("_polars_runtime" in open("/proc/self/maps").read(), "streamgauge.sketches.hll.groups" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False True"


def test_what_cannot_be_loaded_is_left_to_who_needs_it() -> None:
    code = """
import sys
from streamgauge.spark_udafs.session import preload_server
preload_server._LOADED = ("absent", "pyspark.worker")
preload_server._load(None)
print("pyspark.worker" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n" and done.stderr == ""


def forked(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The module that this worker's first process was started to run."""
    for _ in batches:
        yield pa.RecordBatch.from_pydict({"module": [sys.orig_argv[2]]})


@pytest.mark.slow
@pytest.mark.spark
def test_workers_of_a_local_session_are_forked_from_it(spark: Any) -> None:
    assert spark.sparkContext.pythonExec == quick_python()
    rows = spark.range(1).mapInArrow(forked, "module string").collect()
    assert rows[0]["module"] == "streamgauge.spark_udafs.session.preload_server"


def test_the_driver_of_queries_with_state_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    name = "pyspark.sql.streaming.transform_with_state_driver_worker"
    version = "{}.{}".format(*sys.version_info).encode()
    for names, prints in (({}, True), (preload_server.globals_of(name), False)):
        driver = runpy.run_module(name, names, run_name="driver")
        with contextlib.suppress(BaseException):  # its input ends after the version
            driver["main"](io.BytesIO(struct.pack("!i", len(version)) + version), io.BytesIO())
        assert ("Starting" in "".join(capsys.readouterr())) is prints
