"""Archivers that are killed, paused and revived leave each message in the archive once, in order."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
import uuid
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer

from streamgauge.operators.archive.chain import segments
from streamgauge.operators.archive.store import LocalStore
from streamgauge.operators.archive.verify import verify

from ...waiting import until

pytestmark = pytest.mark.kafka

FAULTS = int(os.environ.get("FAULTS", 200))
"""Of the campaign; fewer only to try it."""
SEED = int(os.environ.get("SEED", 11))
_PARTITIONS = 3
_DELTA = find_spec("deltalake") is not None
_PROGRAM = "from streamgauge.apps.cli.program import main; main()"


class Archivers:
    """Processes that archive one topic in one group."""

    def __init__(self, servers: str, topic: str, folder: Path) -> None:
        self._arguments = [
            *(sys.executable, "-c", _PROGRAM, "archive", topic, "--output", str(folder)),
            *("--bootstrap-servers", servers, "--interval", "300ms", "--size", "2KB"),
            *("--config", "session.timeout.ms=2000", "--config", "heartbeat.interval.ms=300"),
            *(["--delta"] if _DELTA else []),
        ]
        self.running: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        self.running.append(subprocess.Popen(self._arguments, stderr=subprocess.PIPE))

    def stop(self) -> None:
        for one in self.running:
            one.send_signal(signal.SIGCONT)
            one.terminate()
        for one in self.running:
            _, log = one.communicate(timeout=300)
            assert one.returncode in (0, -signal.SIGTERM, 130), log.decode()
        self.running.clear()


def archive_under_faults(kafka: Any, folder: Path, faults: int, seed: int) -> None:
    draw = random.Random(seed)
    topic, store = f"kills-{uuid.uuid4().hex[:8]}", LocalStore(folder)
    kafka.create_topic(topic, _PARTITIONS)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True})
    sent = [0] * _PARTITIONS
    archivers = Archivers(kafka.bootstrap_servers, topic, folder)
    for _ in range(2):
        archivers.start()

    def send() -> None:
        for _ in range(200):
            partition = draw.randrange(_PARTITIONS)
            producer.produce(topic, b"%d" % sent[partition] * 10, partition=partition)
            sent[partition] += 1
        assert producer.flush(120) == 0

    def files() -> int:
        return sum(len(store.files(f"topic={topic}/partition={p}")) for p in range(_PARTITIONS))

    for _ in range(faults):
        send()
        before = files()
        until(lambda before=before: files() > before)
        send()
        time.sleep(draw.random() * 0.3)
        victim = archivers.running[draw.randrange(2)]
        if draw.random() < 0.3:
            # Long enough for the group to give its partitions away; then it wakes with what it held.
            victim.send_signal(signal.SIGSTOP)
            time.sleep(3.0)
            victim.send_signal(signal.SIGCONT)
        else:
            victim.kill()
            victim.wait(60)
            archivers.running.remove(victim)
            archivers.start()
    until(lambda: sum(_archived(store, topic)) == sum(sent), 600)
    archivers.stop()
    for partition in range(_PARTITIONS):
        values = [
            value
            for one in segments(store, topic, partition)
            for value in pq.ParquetFile(folder / one.path).read().column("value").to_pylist()
        ]
        assert values == [b"%d" % n * 10 for n in range(sent[partition])]
    checks = list(verify(store, {topic: list(range(_PARTITIONS))}))
    assert [check.problems for check in checks] == [[]] * _PARTITIONS
    if _DELTA:
        import pyarrow as pa
        from deltalake import DeltaTable

        table = pa.table(DeltaTable(str(folder / f"topic={topic}")).to_pyarrow_table())
        rows = sorted(zip(*(table.column(name).to_pylist() for name in ("partition", "offset", "value"))))
        assert rows == [(p, n, b"%d" % n * 10) for p in range(_PARTITIONS) for n in range(sent[p])]
    # A file that was published by an archiver that was killed then is covered once another one continues.
    assert all(check.unhashed <= 1 for check in checks)


def _archived(store: LocalStore, topic: str) -> list[int]:
    return [sum(one.rows for one in segments(store, topic, p)) for p in range(_PARTITIONS)]


@pytest.mark.slow
def test_killed_and_paused_archivers_leave_each_message_once(kafka: Any, tmp_path: Path) -> None:
    archive_under_faults(kafka, tmp_path, faults=4, seed=5)


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_two_hundred_faults(kafka: Any, tmp_path: Path) -> None:
    archive_under_faults(kafka, tmp_path, faults=FAULTS, seed=SEED)
