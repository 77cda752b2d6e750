"""As many tuples as a large stream has in a day, in bounded memory, and each counted once.

TUPLES says how many (250,000,000); a producer loops over a topic whose retention drops what was read.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from streamgauge import Stream, count, distinct_set
from streamgauge import json as json_value
from streamgauge import sum as sum_of
from streamgauge.apps.dev.kafka.broker import EmbeddedKafka
from streamgauge.operators.table.query import query

from .flood import BLOCK, BLOCK_MS, answers

pytestmark = [pytest.mark.kafka, pytest.mark.soak]

TUPLES = int(os.environ.get("TUPLES", 250_000_000))
PARTITIONS = 4
AHEAD = 3_000_000
"""How many posts may wait on the topic; its retention keeps more."""
STILL_SECONDS = 300.0
GROWTH = 128 * 1024 * 1024
"""What a process may have grown by from the first fifth of the tuples to the end."""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is looked up in /proc")
def test_a_stream_of_any_length_takes_bounded_memory(tmp_path: Path, record_property: Any) -> None:
    windows: dict[Any, pa.Table] = {}
    with EmbeddedKafka(data=tmp_path / "kafka", settings={"log.retention.check.interval.ms": 1_000}) as kafka:
        topic = f"flood-{uuid.uuid4().hex[:8]}"
        _make(kafka.bootstrap_servers, topic)
        run = _stream(kafka.bootstrap_servers, topic).start(
            group_id=topic,
            workers=2,
            keep_windows=10,
            idle_seconds=3_600.0,  # windows are given out once, however slow the producer is
            on_window=lambda table: windows.update(
                {table.column("window_start")[0].as_py(): table.to_arrow()}
            ),
        )
        flood = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "streamgauge.tests.faults.flood",
                kafka.bootstrap_servers,
                topic,
                str(PARTITIONS),
            ],
            stdin=subprocess.PIPE,
            text=True,
        )
        try:
            early, late = _watched(run, flood)
            table = run.table()
        finally:
            flood.kill()
            run.stop()
        summary = run.wait(300)
        assert (summary.account.read, summary.account.counted, summary.overlaps) == (TUPLES, TUPLES, 0)
        _compare(pa.concat_tables([*windows.values(), _without(table.to_arrow(), windows)]))
    for name, most in late.items():
        assert most <= early[name] + GROWTH, f"{name} grew from {early[name]:,} to {most:,} bytes"
    lines = [f"| {name} | {early[name] / 2**20:.0f} | {most / 2**20:.0f} |" for name, most in late.items()]
    head = f"{TUPLES:,} tuples in {len(windows)} windows\n| MiB | first fifth | later |\n|---|---:|---:|\n"
    record_property("table", head + "\n".join(lines))


def _make(servers: str, topic: str) -> None:
    config = {"retention.bytes": str(256 * 2**20), "segment.bytes": str(64 * 2**20), "retention.ms": "-1"}
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(topic, PARTITIONS, config=config)])[topic].result(120)


def _stream(servers: str, topic: str) -> Stream:
    schema = {"at": pl.Int64, "user": pl.Int64, "tag": pl.String, "amount": pl.Int64}
    time_of = pl.from_epoch("at", time_unit="ms")
    return (
        Stream.from_kafka(topic, value=json_value(schema), time=time_of, bootstrap_servers=servers)
        .group_by("tag")
        .tumbling("1s", delay="0s")
        .agg(posts=count(), amount=sum_of("amount"), users=distinct_set("user"))
    )


def _watched(run: Any, flood: Any) -> tuple[dict[str, int], dict[str, int]]:
    """The most memory of each process in the first fifth and afterwards, once all tuples are counted."""
    early: dict[str, int] = {}
    late: dict[str, int] = {}
    read, moved = 0, time.monotonic()
    while read < TUPLES:
        allowed = min(TUPLES, read + AHEAD)
        print(allowed - allowed % BLOCK, file=flood.stdin, flush=True)
        time.sleep(0.2)
        assert flood.poll() is None and run.running
        before, read = read, run.summary().account.read
        if read > before:
            moved = time.monotonic()
        assert time.monotonic() - moved < STILL_SECONDS, f"nothing was counted any more after {read:,} tuples"
        most = early if read < TUPLES // 5 else late
        pids = {"merger": os.getpid(), **{f"worker {n}": pid for n, pid in enumerate(run.worker_pids, 1)}}
        for name, pid in pids.items():
            most[name] = max(most.get(name, 0), _resident(pid))
    return early, late


def _resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _without(table: pa.Table, closed: dict[Any, pa.Table]) -> pa.Table:
    """The windows that are still open."""
    starts = table.column("window_start").to_pylist()
    return table.filter(pa.array([start not in closed for start in starts], pa.bool_()))


def _compare(table: pa.Table) -> None:
    """All answers with those that follow from a block's."""
    of_block, blocks_a_window = answers(), 1_000 // BLOCK_MS
    rows = sorted(query(table).to_dicts(), key=lambda row: (row["window_start"], row["tag"]))
    blocks = TUPLES // BLOCK
    assert len(rows) == -(-blocks // blocks_a_window) * len(of_block)
    for at, row in enumerate(rows):
        posts, amount, users = of_block[row["tag"]]
        times = min(blocks_a_window, blocks - at // len(of_block) * blocks_a_window)
        estimates = row["posts"], row["amount"], round(row["users"]["estimate"])
        assert estimates == (times * posts, times * amount, users), row
