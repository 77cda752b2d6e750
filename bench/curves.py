"""How cost grows with one variable at a time, ours beside Flink's DataStream and Kafka Streams.

500,000 JSON events of 70 bytes (CURVE_MESSAGES) with four fields, ten minutes of event time, lz4, 4
partitions, 1,000 keys; in tumbling windows of a minute by key, a count, a sum, distinct users and KLL
quantiles. Each curve changes one of these, named by its point. At most 200 MB are in a topic, so large
messages are fewer.

All are warm: ours is the second of two runs in a process, exactly once with a checkpoint a second; the
others' clocks run from the middle of the messages to the last closed window. Each has a process of its own,
in which Flink has two tasks and Kafka Streams two threads, over the sketches of datasketches-java. They
store nothing: Flink has no checkpoints, in which it would have to serialise every sketch. Flink runs
`keyBy`, `window` and `aggregate` as its manual has it. Kafka Streams is a processor with windows on its
heap, not the DSL, which would serialise sketches for each message. Memory is the process's peak; the JVM's
is what its collector lets the heap grow to, of 3 GB, and ours includes all closed windows, which a run to
the end of a topic returns. The broker shares the cores. Counts must be equal, distinct users and sums
within bounds.

    python -m bench curves                         # all curves
    python -m bench.curves keys overlap            # by name; BENCH_CURVES=keys,overlap before `bench curves`
    BENCH_RUNS=3 BENCH_RESULTS=curves.jsonl python -m bench.curves
    python -m bench.draw_curves curves.jsonl docs/pictures

BENCH_PEERS=no leaves out the others, BENCH_LARGE=1 adds 10 M keys and 1,000 partitions. A peer that can't
be fetched or fails is reported in its row. Each result is printed, and a line of JSON in BENCH_RESULTS,
once it is there. Closing many windows has a script of its own (`windows_broker`).

In `table_keys`, events are joined with a compacted topic of all keys and aggregated by its column; ours
reads the table again in each run, while Flink may have read it before its clock starts. In `join_partners`,
two topics of the same events are joined by key if they are at most a minute apart; its point is the number of
partners that an event has, beside itself.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

import streamgauge as sg
from streamgauge.apps.dev.kafka.broker import EmbeddedKafka

from . import java_peers
from .curve_topics import AVRO, FEW_KEYS, SCHEMA, Events, fill, fill_joined, protobuf_files
from .measure import line
from .processor import head

RUNS = int(os.environ.get("BENCH_RUNS", "1"))
MESSAGES = int(os.environ.get("CURVE_MESSAGES", "500_000"))
WITHIN_MS = 60_000
"""The largest distance between joined events."""
LARGEST_TOPIC = 200_000_000
PEERS = os.environ.get("BENCH_PEERS", "yes") != "no"
LARGE = os.environ.get("BENCH_LARGE", "") == "1"
RESULTS = os.environ.get("BENCH_RESULTS", "")
MACHINE = ("-XX:+UseParallelGC", "-Xmx3g")
TIMEOUT = 300
"""Seconds that one run of one engine may take."""
DOUBLING = 2.5
"""A doubling of a variable that costs more than so many times as much is a cliff."""


@dataclass(frozen=True)
class Query:
    """What a run computes."""

    window: str = "tumbling"
    """Also hopping, session."""
    length_ms: int = 60_000
    """Of a session, the gap."""
    step_ms: int = 60_000
    aggregates: int = 4
    """A count, a sum, distinct users, quantiles, by turns."""
    delivery: str = "exactly_once"
    deduplicated: bool = False
    joined: str = ""
    """``table``: with a table of all keys, aggregated by its column; ``events``: with another topic."""

    def read(self, events: Events) -> int:
        """How many messages a run reads, not counting those of a joined table."""
        return events.messages * (2 if self.joined == "events" else 1)


@dataclass(frozen=True)
class Point:
    """One value of a curve's variable."""

    value: Any
    events: Events = field(default_factory=lambda: Events(MESSAGES))
    query: Query = Query()
    engines: tuple[str, ...] = ("streamgauge", "Flink", "Kafka Streams")
    exact: bool = True
    """Whether all engines must count alike: which rows are late depends on how far each has read."""


@dataclass(frozen=True)
class Result:
    """Nanoseconds by the clock and of CPU time of a message, peak memory, and the totals of all windows."""

    wall: float
    spent: float
    peak: int
    counted: int
    rows: int
    sum: float
    distinct: float


OURS, WITH_FLINK = ("streamgauge",), ("streamgauge", "Flink")


def curves() -> dict[str, list[Point]]:
    """The points of each curve, by its name."""
    base = Events(MESSAGES)
    keys = [1, 1_000, 100_000, 1_000_000, *([10_000_000] if LARGE else [])]
    sizes = [50, 500, 5_000, 50_000]
    session = {"window": "session", "step_ms": 0}
    return {
        "keys": [Point(n, replace(base, keys=n)) for n in keys],
        "keys_zipf": [Point(n, replace(base, keys=n, zipf=True)) for n in keys[1:]],
        "overlap": [
            Point(n, base, Query("hopping" if n > 1 else "tumbling", 60_000, 60_000 // n))
            for n in (1, 5, 20, 60)
        ],
        "session_gap_s": [
            Point(s, replace(base, keys=20_000), Query(length_ms=1_000 * s, **session), WITH_FLINK)
            for s in (1, 10, 60)
        ],
        "aggregates": [Point(n, base, Query(aggregates=n)) for n in (1, 5, 20, 50)],
        "partitions": [
            Point(n, replace(base, partitions=n)) for n in (1, 16, 128, *([1_000] if LARGE else []))
        ],
        "message_bytes": [
            Point(n, replace(base, size=n, messages=max(min(MESSAGES, LARGEST_TOPIC // n), 1_000)))
            for n in sizes
        ],
        "format": [
            Point(name, replace(base, format=name, size=100), Query(), WITH_FLINK)
            for name in ("json", "avro", "protobuf", "csv")
        ],
        "table_keys": [
            Point(n, replace(base, keys=n), Query(joined="table"), WITH_FLINK)
            for n in (1_000, 100_000, 1_000_000)
        ],
        "join_partners": [
            Point(n, replace(base, keys=MESSAGES // (5 * n)), Query(joined="events"), WITH_FLINK)
            for n in (1, 4, 16)
        ],
        "compression": [Point(name, replace(base, compression=name)) for name in ("none", "lz4", "zstd")],
        "deduplication": [
            Point(name, replace(base, twice=True), Query(deduplicated=name == "by id"), OURS)
            for name in ("none", "by id")
        ],
        "delivery": [
            Point(name, base, Query(delivery=name), OURS) for name in ("at_least_once", "exactly_once")
        ],
        "late_percent": [
            Point(n, replace(base, late=n), Query(), WITH_FLINK, exact=not n) for n in (0, 5, 20)
        ],
    }


def stream_of(bootstrap: str, topic: str, events: Events, query: Query) -> sg.Stream:
    """Our side of a point."""
    value = {
        "json": lambda: sg.json(SCHEMA),
        "csv": lambda: sg.csv({**SCHEMA, "pad": pl.String}),
        "avro": lambda: sg.avro(AVRO),
        "protobuf": lambda: sg.protobuf(schema=protobuf_files()),
    }[events.format]()
    address: dict[str, Any] = {"bootstrap_servers": bootstrap}
    time_of = pl.from_epoch("ts", time_unit="ms")
    rows = sg.Stream.from_kafka(topic, value=value, time=time_of, **address)
    if query.joined == "table":
        group = sg.json({"g": pl.Int64})
        rows = rows.join(
            sg.LookupTable.from_kafka(f"{topic}-table", value=group, key=pl.Int64, **address), on="k"
        )
    if query.joined == "events":
        value = sg.json({"k": pl.Int64, "ts": pl.Int64})
        others = sg.Stream.from_kafka(f"{topic}-events", value=value, time=time_of, **address)
        rows = rows.join(others, on="k", within=f"{WITHIN_MS}ms")
    if query.deduplicated:
        rows = rows.deduplicate("u", "ts", within="1m")
    keyed = rows.group_by("g" if query.joined == "table" else "k")
    length, step = f"{query.length_ms}ms", f"{query.step_ms}ms"
    windowed = {
        "tumbling": lambda: keyed.tumbling(length, delay="0s"),
        "hopping": lambda: keyed.hopping(length, every=step, delay="0s"),
        "session": lambda: keyed.session(length, delay="0s"),
    }[query.window]()
    kinds = [lambda: sg.count(), lambda: sg.sum("v"), lambda: sg.distinct("u"), lambda: sg.kll_quantiles("v")]
    return windowed.agg(**{f"a{n}": kinds[n % 4]() for n in range(query.aggregates)})


def side(text: str) -> None:
    """Two runs of ours in this process; prints the second's result, as `Curve.java` does."""
    given = json.loads(text)
    events, query = Events(**given["events"]), Query(**given["query"])
    stream = stream_of(given["bootstrap"], given["topic"], events, query)
    for _ in range(2):
        begun, before = time.perf_counter(), time.process_time()
        run = stream.run(until="latest", delivery=query.delivery, progress=False)  # type: ignore[arg-type]
        answers = run.windows()
        wall, spent = time.perf_counter() - begun, time.process_time() - before
        assert run.account.read == query.read(events), run.account
    each = 1e9 / query.read(events)
    total = answers["a1"].sum() if query.aggregates > 1 else 0.0
    distinct = answers["a2"].struct["estimate"].sum() if query.aggregates > 2 else 0.0
    peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        json.dumps(
            [wall * each, spent * each, int(answers["a0"].sum()), answers.height, total, distinct, peak]
        )
    )


def ours(bootstrap: str, topic: str, point: Point) -> Result:
    """One result of ours, from a process of its own."""
    given = {
        "bootstrap": bootstrap,
        "topic": topic,
        "events": asdict(point.events),
        "query": asdict(point.query),
    }
    code = f"import bench.curves as b; b.side({json.dumps(given)!r})"
    return measured([sys.executable, "-c", code])


def peer(engine: str, bootstrap: str, topic: str, point: Point) -> Result:
    """One result of an engine in Java. Raises `RuntimeError` if it can't be fetched, or fails."""
    program, artifacts = {
        "Flink": ("FlinkCurve", java_peers.FLINK_FORMATS),
        "Kafka Streams": ("StreamsCurve", java_peers.KAFKA_STREAMS),
    }[engine]
    query = point.query
    given = {
        "bootstrap": bootstrap,
        "topic": topic,
        "format": point.events.format,
        "messages": query.read(point.events),
        "joined": query.joined,
        "within": WITHIN_MS,
        "aggregates": query.aggregates,
        "window": query.window,
        "length": query.length_ms,
        "step": query.step_ms,
    }
    arguments = [f"{name}={own}" for name, own in given.items()]
    return measured(java_peers.command(program, artifacts, *arguments, options=MACHINE))


def measured(command: list[str]) -> Result:
    """The result that a process prints in its last line, with its peak memory."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            out, error = process.communicate(timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            raise RuntimeError(f"not done after {TIMEOUT} s") from None
    if process.returncode:
        causes = [text for text in error.splitlines() if text.startswith("Caused by: ")]
        raise RuntimeError(
            causes[-1] if causes else error.strip()[-500:] or f"ended with {process.returncode}"
        )
    wall, spent, counted, rows, total, distinct, peak = json.loads(out.rstrip().splitlines()[-1])
    return Result(wall, spent, peak, counted, rows, total, distinct)


def disagreement(one: Result, other: Result) -> str:
    """What two engines' answers differ in, or nothing.

    HLLs hash alike, so they are nearly equal; sums are of doubles, in any order.
    """
    if (one.counted, one.rows) != (other.counted, other.rows):
        return f"{one.counted:,} messages in {one.rows:,} rows, not {other.counted:,} in {other.rows:,}"
    for name, mine, theirs, bound in (
        ("sums", one.sum, other.sum, 1e-9),
        ("distinct users", one.distinct, other.distinct, 0.02),
    ):
        if abs(mine - theirs) > bound * max(abs(theirs), 1):
            return f"{name} of {mine:,.2f}, not {theirs:,.2f}"
    return ""


def cliffs(points: list[tuple[Any, float]], limit: float = DOUBLING) -> list[str]:
    """Between which values of a variable a doubling of it costs more than so many times as much.

    >>> cliffs([(1, 100.0), (4, 400.0), (8, 1_200.0), (1_000, 1_500.0)])
    ['4 to 8: 3.0 × per doubling']
    """
    from itertools import pairwise
    from math import log2

    numbers = [(value, cost) for value, cost in points if isinstance(value, (int, float)) and value > 0]
    result = []
    for (low, before), (high, after) in pairwise(numbers):
        growth = (after / before) ** (1 / log2(high / low))
        if growth > limit:
            result.append(f"{low:,} to {high:,}: {growth:.1f} × per doubling")
    return result


def run_point(bootstrap: str, curve: str, point: Point, topic: str) -> Iterator[dict[str, Any]]:
    """A record for each engine, the least of its runs."""
    first: Result | None = None
    for engine in point.engines if PEERS else OURS:
        record: dict[str, Any] = {"curve": curve, "value": point.value, "engine": engine}
        runs: list[Result] = []
        try:
            for _ in range(RUNS):
                runs.append(
                    ours(bootstrap, topic, point) if engine in OURS else peer(engine, bootstrap, topic, point)
                )
        except (RuntimeError, OSError, ValueError) as error:
            record["failed"] = str(error).strip()[-300:]
        if runs:
            best = min(runs, key=lambda own: own.spent)
            record |= asdict(best) | {"messages": point.query.read(point.events)}
            first = first or best
            compared = best
            if point.query.aggregates < 3:  # ours has no sum or no distinct users then
                compared = replace(compared, distinct=first.distinct)
            if point.query.aggregates < 2:
                compared = replace(compared, sum=first.sum)
            if engine == "Kafka Streams" and point.events.keys < FEW_KEYS:  # counts a key in each partition
                compared = replace(compared, rows=first.rows, distinct=first.distinct)
            if point.exact and (differs := disagreement(compared, first)):
                record["disagrees"] = differs
        yield record


def shown(record: dict[str, Any]) -> str:
    """A record as a cell shows it."""
    if "failed" in record:
        return f"{record['engine']}: failed ({record['failed'].splitlines()[-1][-160:]})"
    wall, spent, peak = 1e3 / record["wall"], record["spent"], record["peak"] / 1e6
    text = f"{record['engine']}: {wall:.2f} M/s, {spent:,.0f} ns, {peak:,.0f} MB"
    return text + (f" DISAGREES: {record['disagrees']}" if "disagrees" in record else "")


def rows_of(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for each point, and one for each curve with its cliffs."""
    rows, by_curve = [], {}
    for record in records:
        by_curve.setdefault(record["curve"], {}).setdefault(str(record["value"]), []).append(record)
    for curve, points in by_curve.items():
        costs = []
        for value, engines in points.items():
            mine, others = engines[0], engines[1:]
            if "spent" in mine:
                costs.append((mine["value"], mine["spent"]))
            ratios = [
                f"{one['spent'] / mine['spent']:.1f} × {one['engine']}"
                for one in others
                if "spent" in one and "spent" in mine
            ]
            peers = "; ".join(map(shown, others))
            rows.append(line(f"{curve} {value}", shown(mine), peers, ", ".join(ratios), "≥ 3 × Flink, CPU"))
        steep = cliffs(costs)
        rows.append(
            line(f"{curve}: cliffs", "; ".join(steep) or "none", "", "", f"≤ {DOUBLING} × per doubling")
        )
    return rows


def selected(names: list[str]) -> dict[str, list[Point]]:
    """The curves of these names, or all. Raises `ValueError` for one that doesn't exist."""
    known = curves()
    if unknown := [name for name in names if name not in known]:
        raise ValueError(f"no curve is called {', '.join(unknown)}; there are {', '.join(known)}")
    return {name: known[name] for name in names or known}


def main(names: list[str] | None = None) -> list[dict[str, Any]]:
    chosen = selected(names or [name for name in os.environ.get("BENCH_CURVES", "").split(",") if name])
    records: list[dict[str, Any]] = []
    begun, total = time.monotonic(), sum(map(len, chosen.values()))
    done = 0
    with EmbeddedKafka() as broker:
        topics: dict[Events, str] = {}
        for curve, points in chosen.items():
            for point in points:
                if point.events not in topics:
                    topics[point.events] = f"events-{len(topics)}"
                    fill(broker.bootstrap_servers, topics[point.events], point.events)
                if point.query.joined:
                    other = f"{topics[point.events]}-{point.query.joined}"
                    fill_joined(broker.bootstrap_servers, other, point.query.joined, point.events)
                for record in run_point(broker.bootstrap_servers, curve, point, topics[point.events]):
                    records.append(record)
                    place = f"{time.monotonic() - begun:4.0f} s  {done + 1}/{total}  {curve} {point.value}"
                    print(f"{place}  {shown(record)}", file=sys.stderr, flush=True)
                    if RESULTS:
                        with Path(RESULTS).open("a") as file:
                            file.write(json.dumps({**record, "processor": head()}) + "\n")
                done += 1
    return rows_of(records)


if __name__ == "__main__":
    for row in main(sys.argv[1:]):
        print(row)
