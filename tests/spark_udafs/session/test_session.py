"""A session that finds this package, and that says what is missing where Spark can't start."""

from __future__ import annotations

import os
import shutil
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyspark
import pytest

from streamgauge.operators import java
from streamgauge.operators.java import JavaError, find_java
from streamgauge.spark_udafs.session import session as sessions
from streamgauge.spark_udafs.session.python_launcher import quick_python
from streamgauge.spark_udafs.session.session import PackedEnvironmentError, _end_quietly

from ...waiting import until


def test_without_a_java_nothing_starts_and_the_message_says_what_installs_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.sql import SparkSession

    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", lambda builder: pytest.fail("must not start"))
    monkeypatch.setattr(java, "_FOLDERS", ())
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JavaError, match="Java 17 or newer is needed, and none was found"):
        sessions.session("x", "local[1]")


def test_spark_starts_on_the_java_that_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark.sql import SparkSession

    fitting = find_java()
    old = tmp_path / "bin" / "java"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    old.chmod(0o755)
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", lambda builder: pytest.fail("stops here"))
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_LOCAL_IP"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(pytest.fail.Exception, match="stops here"):
        sessions.session("x", "local[1]")
    assert os.environ["JAVA_HOME"] == str(fitting.home)


def test_a_thread_that_waits_for_another_s_session_leaves_it_its_interpreter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The other reads the variable seconds after it was set: once its JVM is there."""
    from pyspark.sql import SparkSession

    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", lambda builder: pytest.fail("stops here"))

    def failing() -> None:
        with suppress(pytest.fail.Exception):
            sessions.session("x", "local[1]")

    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_LOCAL_IP"):
        monkeypatch.setenv(name, "")
    with SparkSession.Builder._lock:
        waiting = threading.Thread(target=failing)
        waiting.start()
        until(lambda: os.environ["PYSPARK_PYTHON"])
        assert os.environ["PYSPARK_PYTHON"] == quick_python()
    waiting.join()


def test_an_archive_is_for_executors_and_must_be_there(tmp_path: Path) -> None:
    archive = tmp_path / "environment.tar.gz"
    with pytest.raises(
        PackedEnvironmentError,
        match=r"environment.tar.gz doesn't exist; `streamgauge env pack .*` creates it",
    ):
        sessions._of_archive(archive, "spark://127.0.0.1:7077", False, {})
    archive.touch()
    with pytest.raises(PackedEnvironmentError, match=r"local\[2\] has no executors that would need one"):
        sessions._of_archive(archive, "local[2]", True, {})
    with pytest.raises(PackedEnvironmentError, match="the environment of a Spark Connect server's workers"):
        sessions.session(master="sc://127.0.0.1:15002", archive=archive)
    given = {"spark.archives": "models.zip#models"}
    settings = sessions._of_archive(archive, "yarn", False, given)
    assert settings["spark.archives"] == f"models.zip#models,{archive}#streamgauge"
    assert settings["spark.executorEnv.PATH"].startswith("./streamgauge/bin:")
    elsewhere = sessions._of_archive("hdfs:///envs/environment.tar.gz", "yarn", False, {})
    assert elsewhere["spark.archives"] == "hdfs:///envs/environment.tar.gz#streamgauge"


def test_on_a_cluster_the_interpreter_is_the_one_that_was_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "/opt/environment/bin/python")
    assert sessions._interpreter(False, {"spark.pyspark.python": "python"}) == "python"
    assert sessions._interpreter(False, {}) == "/opt/environment/bin/python"
    assert sessions._interpreter(True, {}) != "/opt/environment/bin/python"
    monkeypatch.setattr(sessions, "_set_here", {"/opt/environment/bin/python"})
    assert sessions._interpreter(False, {}) == sys.executable
    monkeypatch.delenv("PYSPARK_PYTHON")
    assert sessions._interpreter(False, {}) == sys.executable


def test_an_archives_interpreter_is_this_one_on_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin")
    with sessions._archived_python_here():
        program = shutil.which(sessions.ARCHIVED_PYTHON)
        assert program is not None
        done = subprocess.run([program, "-c", "import streamgauge"], capture_output=True)
        assert done.returncode == 0
    assert os.environ["PATH"] == "/usr/bin"


@pytest.mark.spark
def test_workers_are_this_interpreter_with_state_in_rocksdb(spark: Any) -> None:
    rows, *_ = spark.range(1).mapInArrow(_interpreter, INTERPRETER).collect()
    assert rows["path"] == sys.executable
    # Not from the zip that Spark names first, from which each process would compile it.
    assert rows["pyspark"] == pyspark.__file__
    assert rows["package"] == "streamgauge"
    assert "RocksDB" in spark.conf.get("spark.sql.streaming.stateStore.providerClass")
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"
    assert spark.conf.get("spark.driver.host") == "127.0.0.1"
    assert spark.conf.get("spark.python.authenticate.socketTimeout") == "180s"


INTERPRETER = "path string, package string, pyspark string"


def _interpreter(batches: Any) -> Any:
    import sys

    import pyarrow as pa
    import pyspark

    import streamgauge

    for _ in batches:
        pass
    names = {"path": sys.executable, "package": streamgauge.__name__, "pyspark": pyspark.__file__}
    yield pa.RecordBatch.from_pylist([names])


@pytest.mark.spark
@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="Linux shows in /proc who listens where")
def test_a_local_session_listens_on_loopback_alone_its_page_too(spark: Any) -> None:
    spark.range(1).mapInArrow(_interpreter, INTERPRETER).collect()
    sockets = set()
    for process in _with_children(spark.sparkContext._gateway.proc.pid):
        for opened in Path(f"/proc/{process}/fd").iterdir():
            with suppress(OSError):
                sockets.add(opened.readlink().name)
    doors = {}
    for table in ("tcp", "tcp6"):
        for line in Path("/proc/net", table).read_text().splitlines()[1:]:
            _, local, _, state, *more = line.split()
            if state == LISTENS and f"socket:[{more[5]}]" in sockets:
                address, port = local.split(":")
                doors[int(port, 16)] = address
    assert set(doors.values()) <= LOOPBACK, doors
    assert urlsplit(spark.sparkContext.uiWebUrl).port in doors


LISTENS = "0A"
LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F"}
"""As Linux writes 127.0.0.1, and the same in IPv6."""


def _with_children(process: int) -> Iterator[int]:
    yield process
    for result in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):
            for child in result.read_text().split():
                yield from _with_children(int(child))


def test_a_connection_that_the_jvm_cuts_at_its_end_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    server = socketserver.BaseServer(("nowhere", 1), socketserver.BaseRequestHandler)
    _end_quietly(server)
    for error, printed in ((EOFError(), False), (ConnectionResetError(), False), (ValueError("odd"), True)):
        try:
            raise error
        except type(error):
            server.handle_error(None, "somebody")
        assert ("Traceback" in capsys.readouterr().err) is printed
