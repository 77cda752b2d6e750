"""Three sketches by the minute of JSON messages from Kafka, beside Flink's DataStream and Kafka Streams.

9 M posts of about 70 bytes and four fields, lz4, in 4 partitions, over nine minutes of event time, after as
many before them: of each minute a HyperLogLog of users, a KLL of prices and the frequent tags. Peers are
Java with datasketches-java's sketches of the same sizes, two tasks or threads (`peers/FlinkSketches.java`,
`peers/StreamsSketches.java`). Flink is written twice, with `keyBy`, `window` and `aggregate` as its manual
has it, and with an operator that spares it the shuffle. All keep sketches as objects on the heap and store
nothing, where ours writes its deltas to a topic each second.

Steady work alone: peers note both clocks when the first half is counted, and at the end; ours is what both
halves cost less what the first alone costs, each in a process of its own, start included. (A first part of
2 M would be over before the second of two workers has its partitions.) All take turns; each figure is the
least of three runs. The broker shares the cores with all, so the processor's time is what holds on two of
them. All must answer alike.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from typing import Any, NamedTuple

from streamgauge.apps.dev.kafka.broker import EmbeddedKafka

from . import java_peers
from .measure import line
from .topic import filled, sketched

RUNS = int(os.environ.get("BENCH_RUNS", "3"))
MESSAGES = int(os.environ.get("MESSAGES", 18_000_000))
WARM, MINUTES = MESSAGES // 2, 18
MACHINE = ("-XX:+UseParallelGC", "-Xms2g", "-Xmx2g")
"""Of Java's collectors the one with the largest throughput, and a heap that need not grow."""


class Cost(NamedTuple):
    """What a message takes, in nanoseconds, by the clock and of processors."""

    wall: float
    spent: float

    def __str__(self) -> str:
        return f"{1e3 / self.wall:.2f} M/s, {self.spent:,.0f} ns of CPU"


def side(bootstrap: str, topic: str, workers: int) -> None:
    """One run of ours in this process; prints its seconds by the clock, and its answers as peers do."""
    stream = sketched(bootstrap, topic)
    begun = time.perf_counter()
    summary = stream.run(until="latest", workers=workers, progress=False)
    elapsed = time.perf_counter() - begun
    answers = summary.windows().sort("window_start").select("users", "prices", "tags")
    windows = [
        [users["estimate"], median["value"], tags[0]["item"], tags[0]["estimate"]]
        for users, prices, tags in answers.iter_rows()
        for median in prices["quantiles"]
        if median["q"] == 0.5
    ]
    print(json.dumps([elapsed, windows]))


def run_ours(bootstrap: str, topic: str, workers: int) -> tuple[float, float, list[Any]]:
    """Seconds of a run in its own process, by the clock and of processors (workers, too); and answers."""
    call = f"import bench.stream_engines as b; b.side({bootstrap!r}, {topic!r}, {workers})"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-c", call], stdout=subprocess.PIPE, text=True, check=True, timeout=600
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    elapsed, windows = json.loads(done.stdout.splitlines()[-1])
    return elapsed, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, windows


def steady(long: list[tuple[float, ...]], short: list[tuple[float, ...]]) -> Cost:
    """What the messages beyond the first cost each: the least of long runs less the least of short ones."""
    wall, spent = (min(run[i] for run in long) - min(run[i] for run in short) for i in (0, 1))
    return Cost(*(1e9 * seconds / (MESSAGES - WARM) for seconds in (wall, spent)))


def same(one: list[Any], other: list[Any]) -> bool:
    """Whether answers are alike: the bytes of HLL are the same, KLL draws random numbers."""
    return len(one) == len(other) and all(
        abs(a[0] / b[0] - 1) < 1e-6
        and abs(a[1] / b[1] - 1) < 0.1
        and a[2] == b[2]
        and abs(a[3] / b[3] - 1) < 0.01
        for a, b in zip(one, other)
    )


def main() -> list[dict[str, Any]]:
    peers = {
        "Flink, window().aggregate()": ("FlinkSketches", java_peers.FLINK_DATASTREAM, ["window"], "≥ 5"),
        "Flink, a chained operator": ("FlinkSketches", java_peers.FLINK_DATASTREAM, ["chained"], "report"),
        "Kafka Streams, a processor": ("StreamsSketches", java_peers.KAFKA_STREAMS, [], "≥ 6"),
    }
    theirs: dict[str, list[Cost]] = {name: [] for name in peers}
    ours: dict[tuple[int, str], list[tuple[float, ...]]] = {}
    with EmbeddedKafka() as broker:
        at = broker.bootstrap_servers
        filled(broker, "short", WARM, minutes=MINUTES * WARM // MESSAGES)
        filled(broker, "long", MESSAGES, minutes=MINUTES)
        for _ in range(RUNS):
            for workers in (1, 2):
                for topic in ("short", "long"):
                    elapsed, spent, answers = run_ours(at, topic, workers)
                    ours.setdefault((workers, topic), []).append((elapsed, spent))
            for name, (program, artifacts, way, _) in peers.items():
                numbers = WARM, MESSAGES
                reported = java_peers.run(program, artifacts, at, "long", *numbers, *way, options=MACHINE)
                wall, spent, windows = json.loads(reported)
                assert same(answers, windows), (name, answers, windows)
                theirs[name].append(Cost(wall, spent))
    lines = []
    for workers in (1, 2):
        cost = steady(ours[workers, "long"], ours[workers, "short"])
        for name, (*_, target) in peers.items():
            peer = Cost(*(min(runs) for runs in zip(*theirs[name])))
            many = f"{workers} worker{'s' * (workers > 1)}"
            claim = f"three sketches of {MESSAGES - WARM:,} messages, {many}, {name}"
            ratio = f"{peer.wall / cost.wall:.1f} × by the clock, {peer.spent / cost.spent:.1f} × of CPU"
            lines.append(line(claim, str(cost), str(peer), ratio, target))
    return lines


if __name__ == "__main__":
    for row in main():
        print(row)
