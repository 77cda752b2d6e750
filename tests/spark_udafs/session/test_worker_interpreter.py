"""A session whose Python workers lack the package is refused, with what to set."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from streamgauge.spark_udafs.session.worker_interpreter import WorkerPythonError, check_worker_python


def session_with(program: str, master: str = "local[2]") -> Any:
    system = SimpleNamespace(getenv=os.environ.get)
    context = {"pythonExec": program, "master": master, "_jvm": SimpleNamespace(System=system)}
    return SimpleNamespace(sparkContext=SimpleNamespace(**context))


def test_an_interpreter_without_the_package_is_refused_with_what_to_set(tmp_path: Path) -> None:
    program = tmp_path / "python3"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    with pytest.raises(WorkerPythonError, match=f"has no streamgauge: .* PYSPARK_PYTHON={sys.executable}"):
        check_worker_python(session_with(str(program)))


def test_others_pass(tmp_path: Path) -> None:
    program = tmp_path / "python3"
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(0o755)
    for path in (str(program), sys.executable, "./environment/bin/python"):
        check_worker_python(session_with(path))


def test_an_interpreter_that_only_executors_have_cannot_plan_what_a_source_reads() -> None:
    session = session_with("./environment/bin/python", "spark://127.0.0.1:7077")
    with pytest.raises(WorkerPythonError, match=r"is not on this machine: make an archive with `streamgauge"):
        check_worker_python(session)
