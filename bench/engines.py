"""Other engines' speed and answers on the benchmarks' columns, each in a process of its own.

Everything here compares a core with a core: engines run on one thread. One that isn't installed (the `bench`
extra has them all but Spark) is left out, and says so.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.measure import line


def millions(nanoseconds: float | None) -> str:
    """Millions of rows a second, as a cell shows them."""
    if not nanoseconds:
        return ""
    return f"{1e3 / nanoseconds:,.{0 if nanoseconds < 100 else 1}f} M/s"


class Answer(NamedTuple):
    """Nanoseconds a row (None if it wasn't timed), and what came out."""

    nanoseconds: float | None
    answer: Any

    @property
    def speed(self) -> str:
        """Millions of rows a second."""
        return millions(self.nanoseconds)


def answers(engine: str, *queries: str, threads: int = 1) -> dict[str, Answer]:
    """What `peers/engines.py` found; nothing, with a line on stderr, if the engine isn't there or fails."""
    if importlib.util.find_spec("pyspark" if engine == "spark" else engine) is None:
        print(f"{engine} is not installed: install streamgauge with its extra 'bench'", file=sys.stderr)
        return {}
    command = [sys.executable, "-m", "bench.peers.engines", engine, str(threads), *queries]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode:
        print(f"{engine} failed: {done.stderr[-1500:]}", file=sys.stderr)
        return {}
    payload = json.loads(done.stdout.rstrip().splitlines()[-1])
    return {
        query: Answer(
            1e9 * reported["seconds"] / reported["rows"] if "seconds" in reported else None,
            reported["answer"],
        )
        for query, reported in payload.items()
    }


def java(sketch: str, values: np.ndarray) -> Answer | None:
    """datasketches-java, of pyspark's own jars, on int64; None, and a line on stderr, without Java."""
    runtime, pyspark = shutil.which("java"), importlib.util.find_spec("pyspark")
    if runtime is None or pyspark is None or pyspark.origin is None:
        print("datasketches-java needs java on PATH and pyspark's jars", file=sys.stderr)
        return None
    jars = ":".join(map(str, Path(pyspark.origin).with_name("jars").glob("datasketches-*.jar")))
    script = Path(__file__).parent / "peers" / "JavaSketches.java"
    with tempfile.NamedTemporaryFile(suffix=".longs") as file:
        values.astype("<i8").tofile(file.name)
        command = [runtime, "-Xmx2g", "-cp", jars, str(script), sketch, file.name]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode:
        print(f"datasketches-java failed: {done.stderr[-1500:]}", file=sys.stderr)
        return None
    nanoseconds, answer = done.stdout.split()
    return Answer(float(nanoseconds), float(answer))


def beside(
    claim: str, ours: float, error: str, name: str, peer: Answer | None, reported: str, target: str
) -> list[dict[str, Any]]:
    """Our nanoseconds a row and our error beside a peer's; no line without the peer."""
    if peer is None or not peer.nanoseconds:
        return []
    mine, theirs = (
        ", ".join(filter(None, cell)) for cell in ((millions(ours), error), (peer.speed, reported))
    )
    claim = f"{claim}, faster a core than {name}"
    return [line(claim, mine, theirs, peer.nanoseconds / ours, target)]
