"""The interpreter of Spark's Python workers: one without this package is noticed before anything runs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from ..sketches.core.errors import StreamgaugeError

_PACKAGE = __package__.split(".")[0]
_SECONDS = 60


class WorkerPythonError(StreamgaugeError, RuntimeError):
    """Spark's Python workers would run an interpreter that doesn't have this package."""


def check_worker_python(spark: SparkSession) -> None:
    """Raise `WorkerPythonError` if the workers' interpreter lies on this machine and lacks the package.

    Without it Spark fails in each task, with a hundred lines that don't say what to set. An interpreter that
    only executors have, from an archive or another path, is not looked at, nor a Spark Connect server's.
    """
    if is_remote() or type(spark).__module__.startswith("pyspark.sql.connect"):
        return
    program = spark.sparkContext.pythonExec
    path = shutil.which(program)
    if path is None or path == sys.executable or _has_package(path):
        return
    raise WorkerPythonError(
        f"Spark's Python workers would run {program!r} ({path}), which has no {_PACKAGE}: make the session "
        f"by streamgauge.spark.session(), or set PYSPARK_PYTHON={sys.executable} before the session is made "
        f"(on a cluster spark.pyspark.python, to an interpreter with {_PACKAGE} on every machine)"
    )


@cache
def _has_package(path: str) -> bool:
    look = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({_PACKAGE!r}) is None)"
    try:
        # Not in this folder, where a checkout may lie that workers elsewhere don't see.
        done = subprocess.run(
            [path, "-c", look], timeout=_SECONDS, capture_output=True, cwd=Path(path).parent
        )
    except (OSError, subprocess.TimeoutExpired):
        return True  # Spark says itself what doesn't run
    return done.returncode == 0
