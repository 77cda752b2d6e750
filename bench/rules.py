"""Rules: 10,000 sensors that report once a second, every reading looked at singly by three rules.

Evaluating alone, in the processor's time of one thread: the readings of a second are closed as one window,
the rules see them, their state is written down. The other side is the same rules as somebody's own, which
see every row. Then what a key takes in memory, by kind of rule, beside the same memory as dictionaries.

At last through Kafka, all of it on one core but the broker: how long after a reading its alert is there, when
500 of the 10,000 readings of each second are past a limit. BENCH_SECONDS says for how long.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from streamgauge import Stream, last
from streamgauge import json as json_value
from streamgauge.apps.dev.kafka.broker import EmbeddedKafka
from streamgauge.operators.rules.evaluation.evaluators import evaluator_of
from streamgauge.operators.rules.evaluation.rule_engine import RuleEngine, rule_view
from streamgauge.operators.rules.window_rows import RowColumns, WindowBatch, by_window
from streamgauge.operators.table.window_groups import WindowGroups
from streamgauge.operators.testing import StreamTester
from streamgauge.rules import Absence, Alert, Alerting, Change, Flatline, Rule, Threshold

from .measure import line, medians

SENSORS, SECONDS = 10_000, 5
START = 1_767_225_600_000_000
KEYS, SOME_KEYS = 200_000, 20_000
TOPIC = "sensors"
KAFKA_SECONDS = float(os.environ.get("BENCH_SECONDS", "30"))

RULES = [
    Threshold("hot", value="v", above=95, clear=80, hold="2s"),
    Change("jump", value="v", against="last", by="distance", above=60, every=True),
    Absence("dead", longer="10s"),
]
ROWS = Stream.from_schema({"at": pl.Datetime("us"), "sensor": pl.String, "v": pl.Float64}, time="at")
READINGS = ROWS.group_by("sensor", "at").tumbling("1s").agg(v=last("v"))

PRODUCE = """
import json, sys, time
import numpy as np
from confluent_kafka import Producer
address, topic, sensors, seconds, step = sys.argv[1], sys.argv[2], *map(float, sys.argv[3:])
producer = Producer({"bootstrap.servers": address, "linger.ms": 5, "queue.buffering.max.messages": 1_000_000})
random, size, first, due = np.random.default_rng(1), int(sensors * step), 0, time.time()
until = due + seconds
while time.time() < until:
    hot = random.random(size) < 0.05
    for number, past in zip(range(first, first + size), hot.tolist()):
        at = int(time.time() * 1e6)
        value = {"sensor": f"s{number % int(sensors)}", "at": at, "v": 50 + 50 * past}
        producer.produce(topic, json.dumps(value))
    first += size
    producer.poll(0)
    due += step
    time.sleep(max(0.0, due - time.time()))
producer.flush()
"""


def main() -> list[dict[str, Any]]:
    """Rows."""
    return [*evaluating(), *remembering(), through_kafka()]


def evaluating() -> Iterator[dict[str, Any]]:
    """The processor's time of a second's readings, by columns and row by row."""
    groups = readings(SENSORS, SECONDS)
    whole, rows = medians(lambda: evaluated(groups, RULES), lambda: evaluated(groups, own(RULES)), runs=3)
    ours, peer = whole / SECONDS, rows / SECONDS
    claim = f"{SENSORS:,} readings, three rules, and their state written down"
    yield line(claim, f"{ours * 1e3:.0f} ms", f"{peer * 1e3:.0f} ms row by row", peer / ours, "under 1 s")


def remembering() -> Iterator[dict[str, Any]]:
    """The memory of a key, all of which are remembered."""
    many, some = readings(KEYS, 1), readings(SOME_KEYS, 1)
    kinds: list[tuple[str, Rule]] = [
        ("Absence", Absence("dead", longer="10s")),
        ("Flatline", Flatline("stuck", value="v", longer="10s")),
        ("Change against the last", RULES[1]),
        ("Change against an EWMA", Change("wave", value="v", against="ewma", above=9)),
        ("Change against the hour", Change("odd", value="v", against="hour", above=9)),
        ("Threshold, all past it", Threshold("hot", value="v", above=-1e9)),
    ]
    for name, rule in kinds:
        ours, peer = bytes_a_key(many, rule), bytes_a_key(some, *own([rule]))
        yield line(f"a key of {name}", f"{ours:,.0f} bytes", f"{peer:,.0f} row by row", peer / ours)


def through_kafka() -> dict[str, Any]:
    """How long after readings their alerts are there, on one core."""
    outlet = Delays()
    with EmbeddedKafka() as kafka:
        kafka.create_topic(TOPIC, 1)
        types = {"sensor": pl.String, "at": pl.Int64, "v": pl.Float64}
        source = Stream.from_kafka(
            TOPIC,
            value=json_value(types),
            time=pl.from_epoch("at", time_unit="us"),
            bootstrap_servers=kafka.bootstrap_servers,
        )
        rows = source.with_columns(time=pl.from_epoch("at", time_unit="us"))
        stream = rows.group_by("sensor", "time").tumbling("250ms", delay="100ms").agg(v=last("v"))
        rules = [Threshold("hot", value="v", above=95, every=True), *RULES[1:]]
        producer = [sys.executable, "-c", PRODUCE, kafka.bootstrap_servers, TOPIC, str(SENSORS)]
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
        run = stream.start(
            group_id="sensors", checkpoint_seconds=0.25, sinks=[Alerting(rules, to=[outlet], at="time")]
        )
        try:
            while not outlet.delays:  # until the kernels are loaded
                subprocess.run([*producer, "2", "0.05"], check=True)
            outlet.since_us = int(time.time() * 1e6)
            outlet.delays.clear()
            before, begun = time.process_time(), time.monotonic()
            subprocess.run([*producer, str(KAFKA_SECONDS), "0.05"], check=True)
            share = (time.process_time() - before) / (time.monotonic() - begun)
        finally:
            run.stop()
            run.wait(60)
    p50, p99 = np.quantile(outlet.delays, [0.5, 0.99])
    return line(
        f"{SENSORS:,} readings a second through Kafka, from a reading to its alert",
        f"p50 {p50:.2f} s, p99 {p99:.2f} s",
        f"{share:.0%} of a core",
        f"{len(outlet.delays):,} alerts",
        "p99 under 2 s",
    )


class Delays:
    """An outlet that notes how old readings are when their alerts come, of those since a time."""

    def __init__(self) -> None:
        self.delays: list[float] = []
        self.since_us = 0

    def begin(self) -> None:
        """Nothing is to be opened."""

    def write(self, alert: Alert) -> None:
        if alert.rule == "hot" and alert.at_us >= self.since_us:
            self.delays.append(time.time() - alert.at_us / 1e6)


def readings(sensors: int, seconds: int) -> WindowGroups:
    """The windows of so many seconds, a reading of each sensor in each."""
    random, tester = np.random.default_rng(1), StreamTester(READINGS)
    names = pl.Series([f"sensor-{number}" for number in range(sensors)])
    for second in range(seconds):
        times = START + second * 1_000_000 + random.integers(0, 1_000_000, sensors)
        at = pl.Series(times).cast(pl.Datetime("us"))
        tester.feed(pl.DataFrame({"at": at, "sensor": names, "v": random.normal(50, 10, sensors)}))
    return WindowGroups.of_table(tester.finish().tables().to_arrow())


def evaluated(groups: WindowGroups, rules: Sequence[Rule]) -> None:
    """Each second's readings seen by rules, whose state is then written down."""
    engine = RuleEngine(rules, rule_view(rules, groups.schema, "at"))
    cuts = [*np.flatnonzero(np.diff(groups.starts, prepend=-1)).tolist(), len(groups)]
    for low, high in pairwise(cuts):
        engine.evaluate(WindowGroups.of_table(groups.slice(low, high).table), final=True)
        json.loads(engine.state())


def own(rules: Sequence[Rule]) -> list[Rule]:
    """The same rules as rules of a user's own, which see every row."""

    def window(kind: type[Rule]) -> Callable[..., Iterator[Alert]]:
        return lambda self, *rest: kind.window(self, *rest)

    return [
        type(type(rule).__name__, (type(rule),), {"window": window(type(rule))})(
            **{field.name: getattr(rule, field.name) for field in fields(rule)}
        )
        for rule in rules
    ]


def bytes_a_key(groups: WindowGroups, rule: Rule) -> float:
    """The memory of a rule that remembers every key, its text included."""
    evaluator = evaluator_of(rule)
    tracemalloc.start()
    columns = RowColumns(groups, ["sensor"], ["v"], "at")
    evaluator.evaluate(WindowBatch(by_window(columns, slice(0, len(groups)))), 0, False)
    del columns
    used = tracemalloc.get_traced_memory()[0] / len(groups)
    tracemalloc.stop()
    return used
