"""The program that a local Spark starts as Python: this interpreter, with less to load.

Spark puts PySpark's zip before all else on the path of modules, where Python compiles each module again for
each process: half a second of a core, a dozen times at the start of a few queries. And the processes that
plan queries of Python data sources it forks from a daemon that has loaded nothing, whatever its settings say.
"""

from __future__ import annotations

import atexit
import os
import shlex
import shutil
import sys
import tempfile
from functools import cache
from pathlib import Path

_SCRIPT = """\
#!/bin/sh
PYTHONPATH=${{PYTHONPATH#*-src.zip:}}
[ "$2" != pyspark.daemon ] || {{ shift 2; set -- -m {daemon} "$@"; }}
exec {python} "$@"
"""
"""PySpark's zip and py4j's, whose name ends so, are the first two of the path."""
DAEMON = "streamgauge.spark_udafs.worker_daemon"


def starts_quickly() -> bool:
    """Whether the interpreter has PySpark among its own packages, where it is compiled already."""
    import pyspark

    installed = Path(pyspark.__file__).parents[1].name in ("site-packages", "dist-packages")
    return os.name == "posix" and installed


@cache
def quick_python() -> str:
    """The program, which is there as long as this process."""
    folder = Path(tempfile.mkdtemp(prefix="streamgauge-python-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    program = folder / "python"
    program.write_text(_SCRIPT.format(daemon=DAEMON, python=shlex.quote(sys.executable)))
    program.chmod(0o700)
    return str(program)
