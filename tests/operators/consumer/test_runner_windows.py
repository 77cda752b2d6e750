"""Windows of every kind on a real broker: workers killed, the run started again, late messages on a topic."""

from __future__ import annotations

import json
import os
import signal
import threading
import uuid
from typing import Any

import numpy as np
import polars as pl
import pytest

from streamgauge import Stream, count, query
from streamgauge import json as json_value
from streamgauge import sum as total
from streamgauge.operators.sketching.sketcher import Sketcher
from streamgauge.operators.watermarks.partition_watermark import PartitionTime

from ...faulty_proxy import IMPATIENT
from ...waiting import readable, until
from .merge.recomputed import Row, windows_of

SECOND = 1_000_000


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.parametrize(
    "kinds",
    [["sliding"], pytest.param(["hopping", "sliding", "session"], marks=pytest.mark.soak)],
    ids=["sliding", "side by side"],
)
def test_every_kind_of_window_is_exact_after_kills_and_a_restart(
    kafka: Any, missed: list[Any], kinds: list[str]
) -> None:
    """One kind has it quickly; `merge/test_merger_windows.py` has all of them with restarts."""
    from confluent_kafka import Producer

    topic = f"windows-{uuid.uuid4().hex[:8]}"
    kafka.create_topic(topic, 2)
    rows = _rows()
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True})

    def send(low: int, high: int) -> None:
        for partition, own in enumerate(rows):
            for row in own[low:high]:
                value = json.dumps({"at": row[0], "key": row[1], "n": row[2]})
                producer.produce(topic, value, partition=partition)
        assert producer.flush(120) == 0

    source = Stream.from_kafka(
        topic,
        value=json_value({"at": pl.Int64, "key": pl.String, "n": pl.Int64}),
        time=pl.from_epoch("at", time_unit="us"),
        bootstrap_servers=kafka.bootstrap_servers,
        config=IMPATIENT,
    ).group_by("key")
    windowed = {
        "hopping": source.hopping("10s", every="2s", delay="3s", max_ahead=None),
        "sliding": source.sliding("8s", step="2s", delay="3s", max_ahead=None),
        "session": source.session("400ms", delay="3s", max_ahead=None),
    }
    streams = {name: windowed[name].agg(rows=count(), sum=total("n")) for name in kinds}
    options = {
        "workers": 2,
        "table_partitions": 2,
        "idle_seconds": 600.0,
        "checkpoint_seconds": 0.2,
        "late": f"{topic}.late",
        "emit": "both",
        "state_bytes": 1_000_000,
    }
    send(0, 500)
    reported: dict[str, list[Any]] = {name: [] for name in streams}
    lock = threading.Lock()

    def noting(name: str) -> Any:
        def note(table: Any) -> None:
            with lock:
                reported[name].append(table)

        return note

    runs = {
        name: stream.start(group_id=f"{topic}-{name}", on_window=noting(name), **options)
        for name, stream in streams.items()
    }
    for run in runs.values():
        until(lambda run=run: run.summary().account.read > 0)
        os.kill(run.worker_pids[0], signal.SIGKILL)
    send(500, 1_000)
    for run in runs.values():
        until(lambda run=run: run.summary().account.read == 2_000)
    for run in runs.values():
        run.drain(300)
    send(1_000, 1_500)
    for name, stream in streams.items():
        bounded = stream.run(
            group_id=f"{topic}-{name}", until="latest", on_window=noting(name), **{**options, "workers": 1}
        )
        reached = [_with_reached(own, stream.delay_us) for own in rows]
        everything = [row for own in reached for row in own]
        assert bounded.account.read == 3_000 and bounded.account.balanced
        last: dict[Any, Any] = {}
        final: dict[Any, int] = {}
        for table in reported[name]:
            for row in query(table).to_dicts():
                start, end = row["window_start"], row["window_end"]
                key = row["key"], start if name != "session" else (start, end), end
                last[key] = row["rows"], row["sum"]
                final[key] = final.get(key, 0) + bool(table.is_final)
        wanted = windows_of(stream, everything)
        result = {
            (key[0], _us(key[1] if name != "session" else key[1][0]), _us(key[2])): v
            for key, v in last.items()
        }
        expected = {key: value[:2] for key, value in wanted.items()}
        assert {key: result.get(key) for key in expected} == expected
        if name != "session":  # whose parts were shown while they grew
            assert result.keys() == expected.keys()
        assert max(final.values()) == 1 or missed
        assert sum(final.values()) > len(expected) // 2
    late = sum(_late(stream, rows) for stream in streams.values())
    assert _messages(kafka, f"{topic}.late") == late > 0


def _rows() -> list[list[tuple[int, str | None, int]]]:
    random = np.random.default_rng(4)
    collected = []
    for _ in range(2):
        times = np.sort(random.integers(0, 60 * SECOND, 1_500))
        lag = np.where(random.random(1_500) < 0.2, random.exponential(5 * SECOND, 1_500), 0)
        at = (1_767_225_600 * SECOND + times - lag).astype(np.int64).tolist()
        collected.append([(t, [None, "a", "b"][random.integers(3)], int(random.integers(9))) for t in at])
    return collected


def _with_reached(own: list[tuple[int, str | None, int]], delay_us: int) -> list[Row]:
    latest, collected = -(2**62) + delay_us, []
    for at, key, n in own:
        collected.append(Row(at, key, n, latest - delay_us))
        latest = max(latest, at)
    return collected


def _us(time: Any) -> int:
    return round(time.timestamp() * 1e6)


def _late(stream: Stream, rows: list[list[tuple[int, str | None, int]]]) -> int:
    accounts = []
    for own in rows:
        frame = pl.DataFrame(own, schema=stream.source.schema, orient="row")
        accounts.append(Sketcher(stream).add(frame, PartitionTime()))
    return sum(account.late for account in accounts)


def _messages(kafka: Any, topic: str) -> int:
    """How many messages a topic has, committed ones alone, each with how late it was."""
    from confluent_kafka import Consumer, TopicPartition

    readable(kafka.bootstrap_servers, topic)
    config = {"bootstrap.servers": kafka.bootstrap_servers, "group.id": "x", "enable.partition.eof": True}
    consumer = Consumer({**config, "isolation.level": "read_committed"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    result = 0
    while True:
        message = consumer.poll(120)
        assert message is not None
        if message.error() is not None:
            break
        assert int(dict(message.headers())["late_by"]) >= 0 and json.loads(message.value())["at"]
        result += 1
    consumer.close()
    return result
