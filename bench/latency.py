"""From a message's append to its alert in a topic: p50, p99 and p99.9 at several rates, exactly once.

10,000 sensors report by turns, in 4 partitions; one of 1,000 readings, by chance, is past a limit, and each
such reading raises an alert. Besides that rule there are a jump against the last reading, and a sensor's
absence. The clock runs from the broker's time of append of the reading (`LogAppendTime`) until a consumer
of committed messages has the alert; both are on one machine. Sides run one after another, each warmed up
for WARM seconds and then measured for SECONDS.

Ours: windows of WINDOW (1ms) by reading's sensor and time, a checkpoint every CHECKPOINT seconds (0.1).
Flink: a keyed process function, checkpoints of 100 ms, and the exactly-once sink. Kafka Streams: a
processor with its state on the heap, `exactly_once_v2`, a commit every 100 ms.
BENCH_RATES=1000,10000,100000. A peer that can't be fetched, or a rate that the machine doesn't reach, is
reported in its row.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import polars as pl
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

import streamgauge as sg
from streamgauge.apps.dev.kafka.broker import EmbeddedKafka
from streamgauge.rules import Absence, Alerting, AlertsToKafka, Change, Threshold

from . import java_peers
from .measure import line

RATES = [int(rate) for rate in os.environ.get("BENCH_RATES", "1000,10000,100000").split(",")]
SECONDS = float(os.environ.get("SECONDS", "20"))
WARM = float(os.environ.get("WARM", "10"))
WINDOW = os.environ.get("WINDOW", "1ms")
CHECKPOINT = float(os.environ.get("CHECKPOINT", "0.1"))
SENSORS, PARTITIONS, ONE_OF = 10_000, 4, 1_000
STEP = 0.01
"""Seconds between two portions of a rate."""
START_SECONDS = 120
"""How long an engine may take until its first alert."""
LAST_SECONDS = 5
"""How long alerts may still come after the last reading."""
MACHINE = ("-XX:+UseParallelGC", "-Xmx2g")


def stream_of(bootstrap: str, topic: str) -> sg.Stream:
    """Readings by sensor and time, in short windows."""
    types = {"sensor": pl.String, "at": pl.Int64, "v": pl.Float64}
    at = pl.from_epoch("at", time_unit="us")
    rows = sg.Stream.from_kafka(topic, value=sg.json(types), time=at, bootstrap_servers=bootstrap)
    readings = rows.with_columns(time=at).group_by("sensor", "time")
    return readings.tumbling(WINDOW, delay="0s").agg(v=sg.last("v"))


def ours(bootstrap: str, topic: str, alerts: str) -> None:
    """Our side in this process, until it is killed."""
    rules = [
        Threshold("hot", value="v", above=95, every=True),
        Change("jump", value="v", against="last", by="distance", above=1_000, every=True),
        Absence("dead", longer="1h"),
    ]
    stream_of(bootstrap, topic).run(
        start="latest",
        checkpoint_seconds=CHECKPOINT,
        sinks=[Alerting(rules, to=[AlertsToKafka(alerts)], at="time")],
        progress=False,
    )


@contextmanager
def running(engine: str, bootstrap: str, topic: str, alerts: str) -> Iterator[subprocess.Popen[str]]:
    """An engine in a process of its own. Raises `RuntimeError` if it can't be fetched."""
    if engine == "streamgauge":
        call = f"import bench.latency as b; b.ours({bootstrap!r}, {topic!r}, {alerts!r})"
        command = [sys.executable, "-c", call]
    else:
        program, artifacts = {
            "Flink": ("FlinkAlerts", java_peers.FLINK_DATASTREAM),
            "Kafka Streams": ("StreamsAlerts", java_peers.KAFKA_STREAMS),
        }[engine]
        command = java_peers.command(program, artifacts, bootstrap, topic, alerts, options=MACHINE)
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def send(bootstrap: str, topic: str, rate: int, seconds: float) -> None:
    """Send readings at a rate; prints the time when it begins, and then the rate that was reached."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "linger.ms": 1,
            "queue.buffering.max.messages": 1_000_000,
            "enable.idempotence": True,
            "log_level": 3,
        }
    )
    portion, first = max(round(rate * STEP), 1), 0
    # Every thousandth reading would come at the same moment between two checkpoints each time.
    random = np.random.default_rng(1)
    print(time.time(), flush=True)
    begun = due = time.monotonic()
    while due < begun + seconds:
        past = random.random(portion) < 1 / ONE_OF
        for number, hot in enumerate(past.tolist(), first):
            value = 100 if hot or number == 0 else 50  # each call raises an alert
            sensor, at = number * 7 % SENSORS, time.time_ns() // 1000
            text = f'{{"sensor":"s{sensor}","at":{at},"v":{value},"n":{number}}}'
            producer.produce(topic, text, partition=sensor % PARTITIONS)
        first += portion
        producer.poll(0)
        due += portion / rate
        time.sleep(max(0.0, due - time.monotonic()))
    producer.flush(60)
    print(first / (time.monotonic() - begun))


class Alerts:
    """Committed alerts of a topic as they come: when each came, and the event time of its reading in µs."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        settings = {"bootstrap.servers": bootstrap, "group.id": "delays", "isolation.level": "read_committed"}
        self._consumer = Consumer({**settings, "fetch.wait.max.ms": 10, "enable.auto.commit": False})
        self._consumer.assign([TopicPartition(topic, 0, 0)])

    def until(self, end: float) -> Iterator[tuple[float, int]]:
        """Those that come before a time of `time.monotonic`."""
        while (left := end - time.monotonic()) > 0:
            for message in self._consumer.consume(1_000, min(left, 0.005)):
                if message.error() is None and (at := event_time(message.value() or b"")) is not None:
                    yield time.time(), at

    def close(self) -> None:
        self._consumer.close()


def event_time(value: bytes) -> int | None:
    """The event time of an alert for a reading past the limit, of either form, in µs."""
    alert = json.loads(value)
    if alert.get("rule") != "hot":
        return None
    at = alert["at"]
    if isinstance(at, int):
        return at
    return int(np.datetime64(at.removesuffix("Z").removesuffix("+00:00"), "us").astype(np.int64))


def appended(bootstrap: str, topic: str) -> dict[int, float]:
    """When the readings past the limit were appended, by their event time: seconds since 1970."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "appended", "enable.partition.eof": True}
    )
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    result: dict[int, float] = {}
    ended = 0
    while ended < PARTITIONS:
        for message in consumer.consume(10_000, 1.0):
            if message.error() is not None:
                ended += 1
            elif b'"v":100' in (value := message.value() or b""):
                result[json.loads(value)["at"]] = message.timestamp()[1] / 1e3
    consumer.close()
    return result


def delays(engine: str, bootstrap: str, rate: int) -> tuple[np.ndarray, float]:
    """The delays of alerts in seconds, and the rate that was really sent.

    Raises `RuntimeError` if the engine ends or raises no alerts.
    """
    topic, alerts = (f"{kind}-{engine.replace(' ', '-')}-{rate}" for kind in ("readings", "alerts"))
    admin = AdminClient({"bootstrap.servers": bootstrap})
    kinds = {"message.timestamp.type": "LogAppendTime"}
    created = [NewTopic(topic, PARTITIONS, 1, config=kinds), NewTopic(alerts, 1, 1)]
    for future in admin.create_topics(created).values():
        future.result(60)
    with running(engine, bootstrap, topic, alerts) as process:
        reader = Alerts(bootstrap, alerts)
        _first_alert(process, reader, bootstrap, topic, rate)
        call = f"import bench.latency as b; b.send({bootstrap!r}, {topic!r}, {rate}, {WARM + SECONDS})"
        with subprocess.Popen([sys.executable, "-c", call], stdout=subprocess.PIPE, text=True) as sender:
            assert sender.stdout is not None
            since = float(sender.stdout.readline()) + WARM
            came = [*reader.until(time.monotonic() + WARM + SECONDS)]
            reached = float(sender.communicate(timeout=120)[0])
        came += reader.until(time.monotonic() + LAST_SECONDS)
        reader.close()
        if process.poll() is not None:
            raise RuntimeError(process.stderr.read()[-300:] if process.stderr else "it ended")
    begins = appended(bootstrap, topic)
    seen: dict[int, float] = {}
    for at_clock, at in came:
        seen.setdefault(at, at_clock)
    # The windows of the last readings are closed by silence, for which some engines wait.
    steady = {at for at, begin in begins.items() if since <= begin < since + SECONDS - 1}
    measured = [at_clock - begins[at] for at, at_clock in seen.items() if at in steady]
    expected = len(steady)
    if len(measured) < expected:
        raise RuntimeError(
            f"{expected - len(measured)} of {expected} alerts did not come within {LAST_SECONDS} s"
        )
    return np.array(measured), reached


def _first_alert(process: Any, reader: Alerts, bootstrap: str, topic: str, rate: int) -> None:
    """Wait until an engine has started: send a second's readings again and again until an alert comes."""
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        call = f"import bench.latency as b; b.send({bootstrap!r}, {topic!r}, {min(rate, 5_000)}, 1.0)"
        subprocess.run([sys.executable, "-c", call], stdout=subprocess.DEVNULL, check=True)
        if any(True for _ in reader.until(time.monotonic() + 2)):
            return
    error = process.stderr.read() if process.poll() is not None else ""
    raise RuntimeError(error.strip()[-300:] or f"no alert in {START_SECONDS} s")


def shown(result: np.ndarray | str) -> str:
    """Percentiles as a cell shows them, or why there are none."""
    if isinstance(result, str):
        return result
    p50, p99, p999 = np.quantile(result, [0.5, 0.99, 0.999]) * 1e3
    return f"p50 {p50:.0f} ms, p99 {p99:.0f} ms, p99.9 {p999:.0f} ms ({len(result):,} alerts)"


def main() -> list[dict[str, Any]]:
    rows = []
    engines = [
        "streamgauge",
        *(["Flink", "Kafka Streams"] if os.environ.get("BENCH_PEERS", "yes") != "no" else []),
    ]
    with EmbeddedKafka() as broker:
        for rate in RATES:
            results: dict[str, np.ndarray | str] = {}
            sent: list[str] = []
            for engine in engines:
                try:
                    results[engine], reached = delays(engine, broker.bootstrap_servers, rate)
                    sent.append(f"{reached:,.0f}")
                except (RuntimeError, OSError, subprocess.SubprocessError) as error:
                    results[engine] = (
                        "failed: " + (str(error).strip().splitlines() or ["without a word"])[-1][:200]
                    )
                print(f"{rate:,}/s {engine}: {shown(results[engine])}", file=sys.stderr, flush=True)
            others = "; ".join(f"{engine}: {shown(results[engine])}" for engine in engines[1:])
            claim = f"{rate:,} messages/s (sent: {', '.join(sent)}), from append to alert"
            rows.append(
                line(
                    claim,
                    shown(results["streamgauge"]),
                    others,
                    "",
                    "p99 ≤ 200 ms" if rate == 10_000 else "report",
                )
            )
    return rows


if __name__ == "__main__":
    for row in main():
        print(row)
