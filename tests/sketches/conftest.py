"""The references that the sketches are measured by."""

from __future__ import annotations

import ctypes
import mmap
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyspark
import pytest

ORACLES = Path(__file__).parents[1] / "oracles"
ORACLE = ORACLES / "DistinctOracle.java"
QUICKLY = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


class JavaOracle:
    """datasketches-java of pyspark's own jars, in one process that answers a line with a line."""

    def __init__(self) -> None:
        java = shutil.which("java")
        assert java, "the Java oracle needs a `java` on PATH"
        jars = sorted((Path(pyspark.__file__).parent / "jars").glob("datasketches-*.jar"))
        command = [java, *QUICKLY, "-cp", ":".join(map(str, jars)), str(ORACLE)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, *words: object) -> list[str]:
        """The words of the answer; bytes go over as hex. Fails the test if Java could not answer."""
        assert self._process.stdin and self._process.stdout
        line = " ".join(w.hex() if isinstance(w, bytes) else str(w) for w in words)
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline().split()
        assert answer and answer[0] != "error", " ".join(answer) or "the Java oracle has ended"
        return answer

    def close(self) -> None:
        """End Java."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(10)


@pytest.fixture(scope="session")
def java() -> Iterator[JavaOracle]:
    """One `DistinctOracle.java` a run."""
    oracle = JavaOracle()
    yield oracle
    oracle.close()


class GuardedPages:
    """Memory between two pages that can't be read: reading outside of what was given crashes."""

    def __init__(self, pages: int) -> None:
        self._map = mmap.mmap(-1, (pages + 2) * mmap.PAGESIZE)
        self._bytes = np.frombuffer(self._map, np.uint8)
        self._inside = self._bytes[mmap.PAGESIZE : -mmap.PAGESIZE]
        protect = ctypes.CDLL(None).mprotect
        for first in (0, (pages + 1) * mmap.PAGESIZE):
            page = ctypes.c_void_p(self._bytes.ctypes.data + first)
            assert protect(page, ctypes.c_size_t(mmap.PAGESIZE), 0) == 0

    def both(self, data: bytes) -> Iterator[memoryview]:
        """The same bytes right after the one guard, then right before the other."""
        place = self._inside[: len(data)]
        place[:] = np.frombuffer(data, np.uint8)
        yield memoryview(place)
        yield self.at_end(data)

    def at_end(self, data: bytes) -> memoryview:
        """The bytes right before the guard that reading on would meet."""
        place = self._inside[len(self._inside) - len(data) :]
        place[:] = np.frombuffer(data, np.uint8)
        return memoryview(place)


@pytest.fixture(scope="session")
def guarded() -> GuardedPages:
    """Room for 64 KB."""
    return GuardedPages(16)


@pytest.fixture(scope="session")
def java_oracle() -> Callable[[str, list[str]], list[str]]:
    """Run any oracle by name over lines of commands, in a process of its own; one answer a line."""

    def answers(name: str, lines: list[str]) -> list[str]:
        java = shutil.which("java")
        assert java, "the Java oracles need a `java` on PATH"
        jars = Path(pyspark.__file__).parent / "jars"
        paths = [jar for word in ("datasketches", "spark-sketch") for jar in jars.glob(f"{word}*.jar")]
        done = subprocess.run(
            [java, *QUICKLY, "-cp", ":".join(map(str, paths)), str(ORACLES / f"{name}.java")],
            input="\n".join(lines) + "\n",
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    return answers
