"""Run a command, and end it when the process that started it is gone.

It is started as ``python -S -E watchdog.py PARENT_PID FOLDER COMMAND…`` in its own session, so that Ctrl-C in
a terminal only reaches the parent. However the parent ends, including kill -9, the command ends with it, and
the folder, if named, is removed; on Linux, the kernel ends the command if this process is killed. SIGTERM
requests the command's end, SIGUSR1 ends it immediately.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys

_EVERY = 0.25
"""Seconds between two checks of the parent."""


def run(parent: int, folder: str, command: list[str]) -> int:
    """Run `command` until it ends, a signal requests its end, or `parent` is no longer this process's
    parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=_end_with_me)
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    signal.signal(signal.SIGUSR1, lambda *_: child.kill())
    while True:
        try:
            return child.wait(_EVERY)
        except subprocess.TimeoutExpired:
            pass
        if os.getppid() != parent:
            child.kill()
            child.wait()
            if folder:
                shutil.rmtree(folder, ignore_errors=True)
            return 1


def _end_with_me() -> None:
    """Make Linux kill the command with this process (whose only thread lives as long as the process)."""
    if sys.platform == "linux":
        import ctypes

        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(run(int(sys.argv[1]), sys.argv[2], sys.argv[3:]))
