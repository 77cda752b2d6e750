"""A process with preloaded modules, from which a local master's Python processes are forked.

Spark starts ten Python processes for a first query: a daemon for each kind of work, which forks workers, and
some that drive a streaming query. Each would load the modules that this process loads while Spark's JVM
starts. In their place Spark starts `preload_client`, which passes its standard streams and its environment
to this process, and waits. If the environment differs by more than what Spark sets, nothing is forked here,
and the process loads its modules itself.
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
from typing import TYPE_CHECKING, Any

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
"""The modules that they import, and Pandas, which Arrow imports for its first array of Python objects."""
_STATE_DRIVER = "pyspark.sql.streaming.transform_with_state_driver_worker"
"""A module that prints its progress to the user's terminal, five paragraphs per stateful query."""
_SPARKS = re.compile(r"_?(PY)?SPARK_.*|PYTHON_.*|PYTHONPATH|(OLD)?PWD|SHLVL|_")
"""Variables that Spark and shells set, and that no module reads while it is loaded."""
_THREADS = "OMP_NUM_THREADS"

_servers: list[WorkerServer] = []
"""This process's server, once a local session exists. It ends after this process."""


def start_server(name: str) -> None:
    """Start the server on the socket `name` in the background; do nothing if processes can't be forked."""
    if not WorkerServer.possible():
        return
    if not _servers:
        _servers.append(WorkerServer(_MODULE, _IDLE_SECONDS, [name], _as_spark_sets(os.environ)))
    _servers[0].prepare([])


def prepare_server(streams: Iterable[Stream]) -> None:
    """Have the server, if any, load the kernels of streams before Spark starts processes for them."""
    from ...operators.warm_up.sketching import SketchingKinds

    for server in _servers:
        server.prepare_running([SketchingKinds.of(stream) for stream in streams if stream.sending is None])


def _as_spark_sets(environment: Mapping[str, str]) -> dict[str, str]:
    """Return variables that Spark sets for its Python processes, without paths of the driver's own."""
    ours = {"PYTHONHASHSEED": "0", _THREADS: "1", "PYTHONPATH": ""}
    return {**{key: environment.get(key, value) for key, value in ours.items()}, "PYTHONUNBUFFERED": "YES"}


def is_like(request: Mapping[str, str], ours: Mapping[str, str]) -> bool:
    """Whether a process with one environment can be forked from a process with the other.

    >>> is_like({"SPARK_HOME": "/opt/spark", "LANG": "C"}, {"LANG": "C", "OMP_NUM_THREADS": "1"})
    True
    >>> is_like({"LANG": "de"}, {"LANG": "C"}), is_like({}, {"LANG": "C"})
    (False, False)
    """
    names = {name for name in {*request, *ours} if not _is_variable_of_spark(name)}
    if _THREADS not in request:  # absent if nothing that computes is loaded
        names.discard(_THREADS)
    return all(request.get(name) == ours.get(name) for name in names)


def _is_variable_of_spark(name: str) -> bool:
    return _SPARKS.fullmatch(name) is not None


def _load(streams: Sequence[SketchingKinds] | None) -> None:
    """Load what Spark's processes run, without Polars, because its threads don't survive a fork."""
    from ...operators.kafka.warm import split_batches
    from ...operators.table.merge import Accumulator
    from ...sketches.core.compilation.kernel_cache import NotKept, only_kept

    if streams is None:
        for module in _LOADED:
            with suppress(Exception):  # a process that needs it fails the same way, and reports it
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
    """Set this process up as ``python -m`` would; `path` is the module path without our additions."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    os.chdir(request.folder)
    os.environ.clear()
    os.environ.update(request.environment)
    given = [one for one in request.environment.get("PYTHONPATH", "").split(os.pathsep) if one]
    sys.path[:] = [request.folder, *given, *path]
    sys.argv[:] = request.arguments


def globals_of(module: str) -> dict[str, Any]:
    """Return the globals for running a module of Spark: `print` does nothing if it would only be noise.

    >>> list(globals_of("pyspark.daemon")), list(globals_of(_STATE_DRIVER))
    ([], ['print'])
    """
    return {"print": lambda *_, **__: None} if module == _STATE_DRIVER else {}


def main(control: str, idle_seconds: str, name: str) -> None:
    """Load modules, fork processes until the driver ends, and run each forked process's module."""
    environment = dict(os.environ)
    given = environment.get("PYTHONPATH", "").split(os.pathsep)
    path = [one for one in sys.path[1:] if one not in given]

    def accepts(request: ForkRequest) -> bool:
        return is_like(request.environment, environment)

    if (request := serve(int(control), _load, float(idle_seconds), name, accepts)) is not None:
        _become(request, path)
        module = sys.argv[0]
        sys.modules.pop(module, None)  # it is run, not imported
        runpy.run_module(module, globals_of(module), run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
