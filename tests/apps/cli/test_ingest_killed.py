"""`kill -9` while files are rotated under an agent: lines equal messages, in their order."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from ...agents.ingest.agents import fresh, values

pytestmark = [pytest.mark.kafka]


class Writer:
    """Writes numbered lines to a log, and rotates it as logrotate does, in a thread."""

    def __init__(self, path: Path, seed: int) -> None:
        self.path, self._random = path, random.Random(seed)
        self.written = 0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._end.is_set():
            with self.path.open("ab") as file:
                for _ in range(self._random.randint(1, 40)):
                    size = self._random.choice((10, 200, 3_000))
                    file.write(line(self.written, size))
                    file.flush()
                    self.written += 1
                    time.sleep(self._random.random() / 500)
            self._random.choice((self._rename, self._rename, self._copy, self._pack, lambda: None))()
            # While files are renamed all the time no listing of them is whole.
            time.sleep(0.2)

    def _shift(self) -> Path:
        """Make room for the newest rotated file."""
        rotated = sorted(self.path.parent.glob(f"{self.path.name}.*"), key=_number, reverse=True)
        for path in rotated:
            end = ".gz" if path.suffix == ".gz" else ""
            path.rename(path.with_name(f"{self.path.name}.{_number(path) + 1}{end}"))
        return self.path.with_name(f"{self.path.name}.1")

    def _rename(self) -> None:
        self.path.rename(self._shift())

    def _copy(self) -> None:
        shutil.copy(self.path, self._shift())
        self.path.write_bytes(b"")

    def _pack(self) -> None:
        first = self._shift()
        self.path.rename(first)
        unfinished = self.path.with_name("being-packed")
        unfinished.write_bytes(gzip.compress(first.read_bytes()))
        unfinished.rename(first.with_name(f"{first.name}.gz"))
        first.unlink()


def line(number: int, size: int) -> bytes:
    return b"%08d %s\n" % (number, b"x" * size)


def _number(path: Path) -> int:
    return int(path.name.removesuffix(".gz").rpartition(".")[2])


def _differs(numbers: list[int], written: int) -> str:
    """Short: a whole list says nothing."""
    lost = sorted(set(range(written)) - set(numbers))
    jumps = [pair for pair in itertools.pairwise(numbers) if pair[1] != pair[0] + 1]
    return f"{len(numbers)} of {written}; lost: {lost[:50]}; out of order at: {jumps[:10]}"


def command(kafka: Any, log: Path, topic: str, *options: str) -> list[str]:
    return [
        *(sys.executable, "-c", "from streamgauge.apps.cli.program import main; main()", "ingest", "tail"),
        *(f"{log}*", "--to", topic),
        *("--name", topic, "--bootstrap-servers", kafka.bootstrap_servers, *options),
    ]


def killed(kafka: Any, folder: Path, kills: int, seed: int) -> None:
    """Kill agents so often, and hold what arrived to what was written."""
    topic, log = fresh("killed"), folder / "a.log"
    chance = random.Random(seed)
    writer = Writer(log, seed)
    try:
        for _ in range(kills):
            agent = subprocess.Popen(command(kafka, log, topic), stderr=subprocess.DEVNULL)
            time.sleep(1.5 + 3 * chance.random())
            agent.send_signal(signal.SIGKILL)
            agent.wait()
    finally:
        writer.end()
    last = subprocess.run(
        command(kafka, log, topic, "--once", "--json"),
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    account = json.loads(last.stdout)
    assert account["read"] == account["sent"] and account["unfinished_bytes"] == {}
    numbers = [int(value.split()[0]) for value in values(kafka, topic)]
    in_order = numbers == list(range(writer.written))
    assert in_order, _differs(numbers, writer.written)


def test_killed_under_rotation(kafka: Any, tmp_path: Path) -> None:
    killed(kafka, tmp_path, kills=3, seed=1)


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize("seed", range(10))
def test_killed_under_rotation_twenty_times(kafka: Any, tmp_path: Path, seed: int) -> None:
    killed(kafka, tmp_path, kills=20, seed=100 + seed)


AWAY_SECONDS = float(os.environ.get("AWAY_SECONDS", 600))
"""Fewer only to try it."""


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_a_broker_that_is_away_for_ten_minutes_with_bounded_memory(kafka: Any, tmp_path: Path) -> None:
    topic, log = fresh("away"), tmp_path / "a.log"
    kafka.create_topic(topic)
    options = command(kafka, log, topic)
    options[options.index(kafka.bootstrap_servers)] = kafka.proxied
    with log.open("wb") as file:
        file.writelines(line(number, 190) for number in range(2_000_000))
    agent = subprocess.Popen(options, stderr=subprocess.DEVNULL)
    try:
        while not values(kafka, topic):
            time.sleep(0.1)
        kafka.proxy.away = True
        kafka.proxy.reset()
        largest, end = 0, time.monotonic() + AWAY_SECONDS
        while time.monotonic() < end:
            status = Path(f"/proc/{agent.pid}/status").read_text()
            largest = max(largest, int(status.split("VmRSS:")[1].split()[0]))
            time.sleep(0.5)
        kafka.proxy.mend()
        arrived = values(kafka, topic, 2_000_000)
    finally:
        agent.terminate()
        agent.wait()
    assert [int(value.split()[0]) for value in arrived] == list(range(2_000_000))
    # A transaction of 32 MiB twice, here and in the library's queue, beside what an idle agent has.
    assert largest < 500_000, f"{largest} kB"
