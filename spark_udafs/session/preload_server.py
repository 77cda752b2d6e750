"""A process that has loaded what Spark's Python processes run: those of a local master are forked from it.

Spark starts ten of them for a first query: daemons for each kind of work, which fork workers, and some that
drive a streaming query. Each would load for itself what this one loads while Spark's JVM starts. What Spark
starts in their place is `preload_client`, which hands its standard streams and its environment over, and
waits. A process whose environment differs by more than what Spark sets is not forked here, and loads for
itself.
"""

from __future__ import annotations

import importlib
import os
import re
import runpy
import signal
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from ...operators.consumer.worker.worker_server import ForkRequest, WorkerServer, serve

if TYPE_CHECKING:
    from ...operators.definition.stream import Stream
    from ...operators.warm_up.sketching import SketchingKinds

_MODULE = "streamgauge.spark_udafs.session.preload_server"
_IDLE_SECONDS = 600.0
_LOADED = (
    "pyspark.worker",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.lookup_data_sources",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.streaming.python_streaming_source_runner",
    "pyspark.sql.streaming.transform_with_state_driver_worker",
    "streamgauge.spark_udafs.kafka.shared_source",
    "streamgauge.spark_udafs.merge.buckets",
    "streamgauge.spark_udafs.merge.shared_state",
    "pandas",
)
"""What they import, and Pandas, which Arrow imports before it makes its first array of Python's objects."""
_SPARKS = re.compile(r"_?(PY)?SPARK_.*|PYTHON_.*|PYTHONPATH|(OLD)?PWD|SHLVL|_")
"""Variables that Spark and shells set, and nothing reads as it is loaded."""
_THREADS = "OMP_NUM_THREADS"

_servers: list[WorkerServer] = []
"""That of this process, once a local session was made. It ends after this process."""


def start_server(name: str) -> None:
    """Begin to start the one that listens on the socket `name`; nothing where processes can't be forked."""
    if not WorkerServer.possible():
        return
    if not _servers:
        _servers.append(WorkerServer(_MODULE, _IDLE_SECONDS, [name], _as_spark_sets(os.environ)))
    _servers[0].prepare([])


def prepare_server(streams: Iterable[Stream]) -> None:
    """Have it load the kernels of streams, where there is one, before Spark starts processes for them."""
    from ...operators.warm_up.sketching import SketchingKinds

    for server in _servers:
        server.prepare_running([SketchingKinds.of(stream) for stream in streams if stream.sending is None])


def _as_spark_sets(environment: Mapping[str, str]) -> dict[str, str]:
    """What Spark sets in its Python processes and they read as they start; no path of the driver's own."""
    ours = {"PYTHONHASHSEED": "0", _THREADS: "1", "PYTHONPATH": ""}
    return {**{key: environment.get(key, value) for key, value in ours.items()}, "PYTHONUNBUFFERED": "YES"}


def is_like(request: Mapping[str, str], ours: Mapping[str, str]) -> bool:
    """Whether a process of one environment can be forked from one of the other.

    >>> is_like({"SPARK_HOME": "/opt/spark", "LANG": "C"}, {"LANG": "C", "OMP_NUM_THREADS": "1"})
    True
    >>> is_like({"LANG": "de"}, {"LANG": "C"}), is_like({}, {"LANG": "C"})
    (False, False)
    """
    names = {name for name in {*request, *ours} if not _is_variable_of_spark(name)}
    if _THREADS not in request:  # what loads nothing that computes has none
        names.discard(_THREADS)
    return all(request.get(name) == ours.get(name) for name in names)


def _is_variable_of_spark(name: str) -> bool:
    return _SPARKS.fullmatch(name) is not None


def _load(streams: Sequence[SketchingKinds] | None) -> None:
    """What Spark's processes run, without Polars, whose threads don't survive a fork."""
    from ...operators.kafka.warm import split_batches
    from ...operators.table.merge import Accumulator
    from ...sketches.core.kernel_cache import NotKept, only_kept

    if streams is None:
        for module in _LOADED:
            with suppress(Exception):  # who needs it meets the same, and says so
                importlib.import_module(module)
        with suppress(NotKept), only_kept():
            split_batches()
        return
    for kinds in streams:
        with suppress(NotKept), only_kept():
            merged = Accumulator(kinds.schema)
            merged.merge(kinds.rehearse())
            merged.table()


def _become(request: ForkRequest, path: list[str]) -> None:
    """Be as ``python -m`` would be there; `path` is that of modules without what was set for this process."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    os.chdir(request.folder)
    os.environ.clear()
    os.environ.update(request.environment)
    given = [one for one in request.environment.get("PYTHONPATH", "").split(os.pathsep) if one]
    sys.path[:] = [request.folder, *given, *path]
    sys.argv[:] = request.arguments


def main(control: str, idle_seconds: str, name: str) -> None:
    """Load, fork until the driver ends, and in each forked process run its module."""
    environment = dict(os.environ)
    given = environment.get("PYTHONPATH", "").split(os.pathsep)
    path = [one for one in sys.path[1:] if one not in given]

    def accepts(request: ForkRequest) -> bool:
        return is_like(request.environment, environment)

    if (request := serve(int(control), _load, float(idle_seconds), name, accepts)) is not None:
        _become(request, path)
        module = sys.argv[0]
        sys.modules.pop(module, None)  # it is run and not imported
        runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
