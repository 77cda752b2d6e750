"""A Spark session that is configured for this package."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...operators.java import find_java
from ...sketches.core.errors import StreamgaugeError
from .preload_server import start_server
from .python_launcher import DAEMON, quick_python, server_socket, starts_quickly

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_WORKER_SECONDS = 180
"""How long a Python worker may take to start: on a busy machine Spark's own few seconds fail the query."""
_LOOPBACK = "127.0.0.1"
_QUIET = Path(__file__).with_name("log4j2.properties")
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


_PYTHON = "spark.pyspark.python"
_ARCHIVE = "streamgauge"
"""The folder in which executors find the archive's contents."""
ARCHIVED_PYTHON = "python"
"""The interpreter of an archive. The driver uses the same name to plan the reads of Python data sources."""
_WORKER_PATH = f"./{_ARCHIVE}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class PackedEnvironmentError(StreamgaugeError, ValueError):
    """The archive for Spark's executors can't be used; the message gives the reason."""


def session(
    name: str = "streamgauge",
    master: str | None = None,
    config: Mapping[str, str] | None = None,
    archive: str | Path | None = None,
) -> SparkSession:
    """Return the running Spark session, or a new one that is configured for sketches.

    A new session gets: Python workers with this interpreter, so that they find this package; state in
    RocksDB, so that open windows live outside Java's heap; Arrow batches of 65,536 rows; three minutes for a
    Python worker to start, and workers forked from a process that has loaded this package; times in UTC; logs
    of errors only; and on a local master as many shuffle partitions as threads, and ports on the loopback
    interface only. `master` is Spark's (``"local[2]"``, ``"spark://…"``, ``"yarn"``); None leaves it to
    ``spark-submit``, or else takes all cores of this machine; ``"sc://host:port"`` is a Spark Connect server.
    Settings in `config` take precedence over all of these.

    On a cluster, workers use the first of these interpreters that is given: the one in `archive`, which
    ``streamgauge env pack`` creates, so that nothing has to be installed on the workers;
    ``spark.pyspark.python`` in `config`; the variable ``PYSPARK_PYTHON``. Otherwise they use the current
    interpreter, which must then be at the same path on all machines.

    Raises `JavaError` if Spark has to start here and Java 17 or newer is missing. Raises
    `PackedEnvironmentError` if `archive` is missing, if `master` has no executors that could use it, or if a
    session is already running.

    >>> import streamgauge as sg
    >>> spark = sg.spark.session(config={"spark.sql.session.timeZone": "UTC"})
    >>> spark.range(3).count()
    3
    """
    from pyspark.sql import SparkSession
    from pyspark.sql.utils import is_remote

    if master is not None and master.startswith("sc://"):
        if archive is not None:
            raise PackedEnvironmentError(
                "archive: the environment of a Spark Connect server's workers is set when it is started, "
                "by spark.archives; see docs/clusters.md"
            )
        builder = SparkSession.builder.appName(name).remote(master)
        for key, value in (config or {}).items():
            builder = builder.config(key, value)
        return builder.getOrCreate()

    running = SparkSession.getActiveSession()
    if running is None:
        os.environ["JAVA_HOME"] = str(find_java().home)  # PySpark looks for Java there and on PATH only
    if master is None and "MASTER" not in os.environ and "PYSPARK_SUBMIT_ARGS" not in os.environ:
        master = "local[*]"
    local = master is not None and bool(local_threads(master))
    if archive is not None and running is not None:
        raise PackedEnvironmentError(
            "archive: a session is already running, and its executors can't be changed; stop it first"
        )
    own: dict[str, str] = {} if archive is None else _of_archive(archive, master, local, config or {})
    if running is None:
        # Before the builder, which waits while another thread creates a session that reads this as well.
        os.environ["PYSPARK_PYTHON"] = program = _interpreter(local, own or config or {})
        _set_here.add(program)
        os.environ["PYSPARK_DRIVER_PYTHON"] = quick_python() if local and starts_quickly() else sys.executable
        if local:
            # Spark's web page reads its address only from this variable.
            os.environ.setdefault("SPARK_LOCAL_IP", _LOOPBACK)
            if starts_quickly():
                start_server(server_socket())
    builder = SparkSession.builder.appName(name)
    if master is not None and running is None:
        builder = builder.master(master)
    settings = {**_settings(master), **(config or {}), **own}
    if running is not None:
        settings = dict(config or {})
    for key, value in settings.items():
        builder = builder.config(key, str(value))
    with _archived_python_here() if own else contextlib.nullcontext():
        spark = builder.getOrCreate()
    if not is_remote():
        _end_quietly(getattr(spark.sparkContext, "_accumulatorServer", None))
    return spark


_set_here: set[str] = set()
"""The values that earlier sessions of this process have assigned to PYSPARK_PYTHON."""


def _interpreter(local: bool, config: Mapping[str, str]) -> str:
    """Return the interpreter that Spark should run as Python."""
    if local:
        return quick_python() if starts_quickly() else sys.executable
    named = os.environ.get("PYSPARK_PYTHON")
    # PySpark itself reads this setting only under spark-submit.
    return config.get(_PYTHON) or (named if named not in _set_here else None) or sys.executable


def _of_archive(
    archive: str | Path, master: str | None, local: bool, config: Mapping[str, str]
) -> dict[str, str]:
    """Return the settings to run an archive's interpreter on executors. Raises `PackedEnvironmentError`."""
    if local:
        raise PackedEnvironmentError(f"archive: {master} has no executors that would need one")
    place = str(archive)
    if "://" not in place:
        path = Path(place).resolve()
        if not path.is_file():
            raise PackedEnvironmentError(
                f"archive: the file {path} doesn't exist; `streamgauge env pack {archive}` creates it"
            )
        place = str(path)
    others = [one for one in [config.get("spark.archives")] if one]
    return {
        _PYTHON: ARCHIVED_PYTHON,
        "spark.archives": ",".join([*others, f"{place}#{_ARCHIVE}"]),
        "spark.executorEnv.PATH": config.get("spark.executorEnv.PATH", _WORKER_PATH),
    }


@contextlib.contextmanager
def _archived_python_here() -> Iterator[None]:
    """Link the name of an archive's interpreter to this interpreter while the driver's JVM starts."""
    path = os.environ.get("PATH")
    own = Path(quick_python()).parent if starts_quickly() else Path(sys.executable).parent
    os.environ["PATH"] = os.pathsep.join([str(own), *filter(None, [path])])
    try:
        yield
    finally:
        os.environ.pop("PATH")
        if path is not None:
            os.environ["PATH"] = path


def _end_quietly(server: Any) -> None:
    """Keep PySpark's server from printing a traceback when a closed terminal ends the JVM first."""
    if server is None:
        return
    print_error = server.handle_error

    def handle_error(request: Any, address: Any) -> None:
        if not isinstance(sys.exc_info()[1], (EOFError, ConnectionError)):
            print_error(request, address)

    server.handle_error = handle_error


def _settings(master: str | None) -> dict[str, str]:
    settings = {
        "spark.sql.streaming.stateStore.providerClass": _ROCKSDB,
        "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
        "spark.python.authenticate.socketTimeout": f"{_WORKER_SECONDS}s",
        "spark.sql.session.timeZone": "UTC",
        "spark.python.daemon.module": DAEMON,
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_QUIET.as_uri()}",
    }
    if master is not None and (threads := local_threads(master)):
        settings["spark.sql.shuffle.partitions"] = str(threads)
        settings["spark.driver.host"] = settings["spark.driver.bindAddress"] = _LOOPBACK
    return settings


def local_threads(master: str) -> int:
    """Return the number of threads of a local master; 0 for a cluster.

    >>> local_threads("local[3]"), local_threads("local"), local_threads("yarn")
    (3, 1, 0)
    """
    match = re.fullmatch(r"local(?:\[(\d+|\*)(?:,\d+)?\])?", master)
    if match is None:
        return 0
    if match[1] == "*":
        return os.cpu_count() or 1
    return int(match[1] or 1)
