"""The program that a local Spark starts as Python: this interpreter, with less to load.

Spark puts PySpark's zip first on the module path, so each Python process compiles the modules in it again:
half a second of CPU time, a dozen times at the start of a few queries. And it forks the processes that plan
queries of Python data sources from a daemon without preloaded modules, whatever its settings. With this
program, most of them are forked from one process that has loaded everything once (`preload_server`).
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
    """Whether PySpark is installed in the interpreter's own packages, where it is already compiled."""
    import pyspark

    installed = Path(pyspark.__file__).parents[1].name in ("site-packages", "dist-packages")
    return os.name == "posix" and installed


@cache
def quick_python() -> str:
    """Return the path of the program, which exists as long as this process."""
    program = _folder() / "python"
    client = Path(__file__).with_name("preload_client.py")
    python, client_file, socket = (shlex.quote(str(one)) for one in (sys.executable, client, server_socket()))
    program.write_text(_SCRIPT.format(python=python, client=client_file, socket=socket))
    program.chmod(0o700)
    return str(program)


def server_socket() -> str:
    """Return the name of the socket on which this process's `preload_server` listens."""
    return str(_folder() / "server")


@cache
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="streamgauge-python-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
