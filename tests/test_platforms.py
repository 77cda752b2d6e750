"""Sketches, frames and files work where Python lacks what only Unix has, as on Windows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

AS_ON_WINDOWS = """
import os, signal, sys
# These choose their parts by sys.platform.
import filelock, fsspec, msgspec, numba, numpy, platformdirs, polars, pyarrow.dataset, pyarrow.parquet
import rich.progress, typer
import multiprocessing, subprocess, tempfile
numba.njit(lambda x: x + 1)(1)

for name in (
    "fork", "geteuid", "getegid", "getgid", "getpgid", "getpgrp", "getuid", "killpg", "pread", "pwrite",
    "register_at_fork", "sched_getaffinity", "setsid", "uname", "waitid",
):
    delattr(os, name)
for name in ("SIGHUP", "SIGKILL", "SIGPIPE", "SIGUSR1", "alarm", "pthread_sigmask", "setitimer"):
    delattr(signal, name)
UNIX = {"fcntl", "grp", "pwd", "resource", "termios", "tty"}

class WithoutUnix:
    def find_spec(self, name, path=None, target=None):
        if name in UNIX:
            raise ModuleNotFoundError(name)

for name in UNIX:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, WithoutUnix())
sys.platform = "win32"

import streamgauge as sg

rows = polars.DataFrame({"user": ["ann", "bob", "ann"]})
table = sg.Stream.from_frame(rows).agg(users=sg.distinct("user")).run(progress=False).table
assert round(table.answers()["users"][0]["estimate"]) == 2
assert 9 < sg.HLL().update(range(10)).estimate() < 11
rows.write_parquet("rows.parquet")

from streamgauge.apps.cli.program import main

sys.argv = ["streamgauge", "sketch", "rows.parquet", "--distinct", "user"]
main()
"""


@pytest.mark.slow
def test_files_and_frames_need_nothing_that_only_unix_has(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", AS_ON_WINDOWS], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and "3 rows read" in done.stdout, done.stderr
