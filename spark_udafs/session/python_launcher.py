"""The program that a local Spark starts as Python: this interpreter, with less to load.

Spark puts PySpark's zip before all else on the path of modules, where Python compiles each module again for
each process: half a second of a core, a dozen times at the start of a few queries. And the processes that
plan queries of Python data sources it forks from a daemon that has loaded nothing, whatever its settings say.
Most of them are forked from one process that has loaded everything once (`preload_server`).
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
exec {python} -IS {client} {socket} {python} "$@"
"""
DAEMON = "streamgauge.spark_udafs.session.preloaded_daemon"


def starts_quickly() -> bool:
    """Whether the interpreter has PySpark among its own packages, where it is compiled already."""
    import pyspark

    installed = Path(pyspark.__file__).parents[1].name in ("site-packages", "dist-packages")
    return os.name == "posix" and installed


@cache
def quick_python() -> str:
    """The program, which is there as long as this process."""
    program = _folder() / "python"
    client = Path(__file__).with_name("preload_client.py")
    python, client_file, socket = (shlex.quote(str(one)) for one in (sys.executable, client, server_socket()))
    program.write_text(_SCRIPT.format(python=python, client=client_file, socket=socket))
    program.chmod(0o700)
    return str(program)


def server_socket() -> str:
    """The name of the socket on which this process's `preload_server` listens."""
    return str(_folder() / "server")


@cache
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="streamgauge-python-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
