"""Running a module of the package as a separate process, which communicates in pickles."""

from __future__ import annotations

import os
import subprocess
import sys


def child(module: str, *, own_session: bool = False) -> subprocess.Popen[bytes]:
    """Start ``python -m module`` with pipes as its standard input and output.

    Modules referenced in pickles sent to it can be imported there as here. With `own_session`, Ctrl-C at the
    terminal doesn't reach it.
    """
    return subprocess.Popen(
        [sys.executable, "-m", module],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(),
        start_new_session=own_session,
    )


def environment() -> dict[str, str]:
    """The environment for such a process."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
