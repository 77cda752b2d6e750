"""Check before a query that the interpreter of Spark's Python workers can run this package."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import types
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, cast

from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from ...sketches.core.errors import StreamgaugeError
from .session import local_threads

_PACKAGE = __package__.split(".")[0]
_SECONDS = 60
_REASONS = re.compile(
    r"Cannot run program \"[^\"]*\"|No module named '[^']*'|\S+ must be installed; however, it was not found"
    r"|PYTHON_VERSION_MISMATCH\][^\n]*"
)
"""Matches the reason in Spark's traceback why a worker doesn't run."""
_ADVICE = (
    f"make an archive with `{_PACKAGE} pack environment.tar.gz` and the session with "
    f'{_PACKAGE}.spark.session(master=…, archive="environment.tar.gz"), or install {_PACKAGE} on all '
    "machines and name its interpreter in PYSPARK_PYTHON before the session is made; see docs/clusters.md"
)


class WorkerPythonError(StreamgaugeError, RuntimeError):
    """Spark's Python workers would run an interpreter that doesn't have this package."""


def check_worker_python(spark: SparkSession, plans: bool = True) -> None:
    """Raise `WorkerPythonError` if Spark's Python workers can't run this package.

    Without this check Spark fails in each task, with a hundred lines that don't say what to set. On a cluster
    one small task per application finds out. `plans` means that Spark plans a Python data source, for which
    it starts the workers' interpreter on the driver as well. A Spark Connect server is not checked.
    """
    if is_remote() or type(spark).__module__.startswith("pyspark.sql.connect"):
        return
    context = spark.sparkContext
    program, local = context.pythonExec, bool(local_threads(context.master or "local"))
    # The driver's JVM resolves it the same way.
    path = shutil.which(program, path=cast(Any, context)._jvm.System.getenv("PATH"))
    here = path == sys.executable or (path is not None and _has_package(path))
    if local and path is not None and not here:
        raise WorkerPythonError(
            f"Spark's Python workers would run {program!r} ({path}), which has no {_PACKAGE}: make the "
            f"session by {_PACKAGE}.spark.session(), or set PYSPARK_PYTHON={sys.executable} before the "
            "session is made"
        )
    if local:
        return
    if plans and not here:
        problem = "is not on this machine" if path is None else f"has no {_PACKAGE} here ({path})"
        raise WorkerPythonError(
            f"Spark runs the interpreter of its Python workers, {program!r}, on the driver as well, to plan "
            f"what a source reads, and it {problem}: {_ADVICE}"
        )
    if (reason := _problem_of(spark, context.applicationId)) is not None:
        raise WorkerPythonError(f"Spark's Python workers on {context.master} {reason}: {_ADVICE}")


@cache
def _has_package(path: str) -> bool:
    look = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({_PACKAGE!r}) is None)"
    try:
        # Not in this folder: a checkout here may not be visible to workers elsewhere.
        done = subprocess.run(
            [path, "-c", look], timeout=_SECONDS, capture_output=True, cwd=Path(path).parent
        )
    except (OSError, subprocess.TimeoutExpired):
        return True  # Spark itself reports what doesn't run
    return done.returncode == 0


_problems: dict[str, str | None] = {}


def _problem_of(spark: SparkSession, application: str) -> str | None:
    """Return what keeps an executor's Python worker from running this package; None if nothing does."""
    if application not in _problems:
        _problems[application] = _probe(spark)
    return _problems[application]


def _probe(spark: SparkSession) -> str | None:
    # A function without a module is pickled whole; only a worker with the package could load it by name.
    version = types.FunctionType(_version.__code__, {"__builtins__": __builtins__}, "version")
    version.__module__ = "__main__"
    try:
        rows = spark.range(1, numPartitions=1).mapInArrow(version, "version string").collect()
    except Exception as error:
        if (reason := _REASONS.search(str(error))) is None:
            raise
        return f"run {spark.sparkContext.pythonExec!r}, which doesn't run {_PACKAGE} ({reason[0]})"
    here = sys.modules[_PACKAGE].__version__
    if (there := rows[0]["version"]) != here:
        return f"have {_PACKAGE} {there}, and this driver has {here}"
    return None


def _version(batches: Iterator[Any]) -> Iterator[Any]:
    import importlib

    import pyarrow

    package = importlib.import_module("streamgauge")
    for _ in batches:
        yield pyarrow.RecordBatch.from_pydict({"version": [package.__version__]})
