"""Replays of the apps: `streamgauge run` on recordings, start included, and a year of minutes.

Each app runs as people start it, with a broker of its own: the processor's time of all its processes and the
wall's. RECORDINGS names the folder of the recordings; without it only the year is measured, which is made
here: 5,256,000 rows, one a minute for each of 10 keys, by a stream that counts them in windows of a minute.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from streamgauge import Stream, count, last
from streamgauge import json as json_value
from streamgauge.apps.dev.kafka.broker import EmbeddedKafka

from .measure import line

RECORDINGS = {
    "iot: 7,267 readings": "iot --input iot/ambient_temperature_system_failure.csv --set time=timestamp",
    "stocks: 97 trades among 2,340 messages": "stocks --input stocks/coinbase_websocket_capture.txt",
    "trending: 2,369 posts": "trending --input social/2012_Costa_Rica_earthquake-tweetids_entire_period.csv",
    "logs: 10,000 lines": "logs --input logs/apache_combined_10k.log",
}
MINUTES, KEYS = 365 * 24 * 60, 10
START = 1_735_689_600
PRODUCE = """
import sys
import numpy as np
from confluent_kafka import Producer
address, topic, start, minutes, keys = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
config = {"linger.ms": 50, "queue.buffering.max.messages": 1_000_000}
producer = Producer({"bootstrap.servers": address, **config})
for minute in range(minutes):
    at = start + 60 * minute
    for key in range(keys):
        producer.produce(topic, b'{"at":%d,"key":"k%d","v":%d}' % (at, key, minute % 97))
    if minute % 1_000 == 0:
        producer.poll(0)
        while len(producer) > 500_000:
            producer.poll(0.1)
producer.flush()
"""


def main() -> list[dict[str, Any]]:
    """Rows."""
    return [*apps(), year()]


def apps() -> Iterator[dict[str, Any]]:
    """Each app on its recording, twice; the second run counts."""
    folder = os.environ.get("RECORDINGS")
    for claim, arguments in RECORDINGS.items() if folder else ():
        program = Path(sys.executable).with_name("streamgauge")
        command = [str(program), "run", *arguments.split(), "--json"]
        for _ in range(2):
            wall, cpu = run(command, Path(folder or "."))
        yield line(claim, f"{wall:.1f} s", f"{cpu:.1f} s of processors", "", "at most 8 s")


def run(command: list[str], folder: Path) -> tuple[float, float]:
    """A command's wall time and the processor's time of its processes."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wall, after = time.monotonic() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def year() -> dict[str, Any]:
    """A year of windows of a minute, of ten keys, from a topic that holds it all."""
    minutes = int(os.environ.get("BENCH_MINUTES", MINUTES))
    with EmbeddedKafka() as kafka:
        kafka.create_topic("year", 1)
        sizes = map(str, (START, minutes, KEYS))
        subprocess.run([sys.executable, "-c", PRODUCE, kafka.bootstrap_servers, "year", *sizes], check=True)
        types = {"at": pl.Int64, "key": pl.String, "v": pl.Float64}
        rows = Stream.from_kafka(
            "year",
            value=json_value(types),
            time=pl.from_epoch("at"),
            bootstrap_servers=kafka.bootstrap_servers,
        )
        stream = rows.group_by("key").tumbling("1m").agg(n=count(), v=last("v"))
        before, begun = time.process_time(), time.monotonic()
        summary = stream.start(until="latest").wait()
        wall, cpu = time.monotonic() - begun, time.process_time() - before
    counted = int(np.sum(summary.table.to_arrow().column("n").to_numpy()))
    if counted != minutes * KEYS:
        raise AssertionError(f"counted {counted:,} rows of {minutes * KEYS:,}")
    claim = f"{counted:,} rows, {minutes:,} windows of a minute of {KEYS} keys"
    return line(claim, f"{wall:.1f} s", f"{cpu:.1f} s of processors", f"{counted / wall:,.0f} rows/s", "60 s")
