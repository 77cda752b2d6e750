"""What starting costs: the help, the first import, and workers up to their first message and to the end.

The first two in seconds of processor time, the least of several runs. Workers are measured by the clock on a
topic of four partitions beside a broker, one and two of them taking turns, so they need a quiet machine.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from streamgauge.apps.dev.kafka.broker import EmbeddedKafka

from .measure import line
from .topic import filled, sketched

RUNS = int(os.environ.get("BENCH_RUNS", "3"))
MESSAGES = int(os.environ.get("MESSAGES", 9_000_000))
IMPORT = "from streamgauge import Stream, json, count"


def processor_seconds(*command: str | Path) -> float:
    """The least that a command took in five runs."""
    return min(_once(*command) for _ in range(5))


def _once(*command: str | Path) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def moments(servers: str, topic: str, workers: int) -> tuple[float, float]:
    """Seconds from `start` to the first counted message, and to the end of the topic."""
    stream = sketched(servers, topic)
    begin = time.perf_counter()
    run = stream.start(until="latest", workers=workers, checkpoint_seconds=0.25)
    first = 0.0
    while run.running and not first:
        if run.summary().account.read:
            first = time.perf_counter() - begin
        time.sleep(0.01)
    run.wait()
    return first, time.perf_counter() - begin


def main() -> list[dict[str, Any]]:
    """The table."""
    shown = processor_seconds(Path(sys.executable).with_name("streamgauge"), "--help")
    imported = processor_seconds(sys.executable, "-c", IMPORT)
    rows = [
        line("streamgauge --help", f"{shown:.2f} s of processor time", "", "", "≤ 0.3 s"),
        line(IMPORT, f"{imported:.2f} s of processor time", "", "", "≤ 0.3 s"),
    ]
    with EmbeddedKafka() as kafka:
        topic = filled(kafka, "posts", MESSAGES)
        elapsed: dict[int, list[tuple[float, float]]] = {1: [], 2: []}
        for _ in range(RUNS):
            for workers, times in elapsed.items():
                times.append(moments(kafka.bootstrap_servers, topic, workers))
    for number, (claim, target) in enumerate(
        [("first counted message", "≤ 1.3 ×"), (f"{MESSAGES:,} messages", "≤ 1 ×")]
    ):
        one, two = (statistics.median(times[number] for times in elapsed[workers]) for workers in (1, 2))
        rows.append(
            line(f"{claim}: two workers", f"{two:.1f} s", f"one worker {one:.1f} s", two / one, target)
        )
    return rows
