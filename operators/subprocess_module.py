"""A module of the package as a process of its own, which this one talks to in pickles."""

from __future__ import annotations

import os
import subprocess
import sys


def child(module: str, *, own_session: bool = False) -> subprocess.Popen[bytes]:
    """Start ``python -m module`` with pipes as its standard input and output.

    Modules that a pickle sent to it names are importable there as they are here. With `own_session`, Ctrl-C
    at the terminal doesn't reach it.
    """
    return subprocess.Popen(
        [sys.executable, "-m", module],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(),
        start_new_session=own_session,
    )


def environment() -> dict[str, str]:
    """The environment of such a process."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
