"""The Java oracles: single-file programs over the jars that come with PySpark."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pyspark
import pytest

ORACLES = Path(__file__).parents[1] / "oracles"


@pytest.fixture(scope="session")
def java_oracle() -> Callable[[str, list[str]], list[str]]:
    """Run an oracle by name over command lines; one answer a line."""

    def answers(name: str, lines: list[str]) -> list[str]:
        java = shutil.which("java")
        assert java, "the Java oracles need a `java` on PATH"
        jars = Path(pyspark.__file__).parent / "jars"
        path = ":".join(
            str(jar) for word in ("datasketches", "spark-sketch") for jar in jars.glob(f"{word}*.jar")
        )
        done = subprocess.run(
            [java, "-cp", path, str(ORACLES / f"{name}.java")],
            input="\n".join(lines) + "\n",
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    return answers
