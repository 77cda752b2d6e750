"""Faults while files are rotated under an agent: lines equal messages, in their order."""

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
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ...agents.ingest.agents import fresh, values
from ...agents.ingest.sources.postgres_server import PostgresServer, find_programs
from ...faulty_proxy import Request

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
        *(f"{log}*", "--topic", topic),
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
    hold_to_written(kafka, log, topic, writer.written)


def hold_to_written(kafka: Any, log: Path, topic: str, written: int) -> None:
    """Send what is left, and hold the topic to the lines that were written."""
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
    in_order = numbers == list(range(written))
    assert in_order, _differs(numbers, written)


@pytest.mark.slow
def test_killed_under_rotation(kafka: Any, tmp_path: Path) -> None:
    killed(kafka, tmp_path, kills=3, seed=1)


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize("seed", range(10))
def test_killed_under_rotation_twenty_times(kafka: Any, tmp_path: Path, seed: int) -> None:
    killed(kafka, tmp_path, kills=20, seed=100 + seed)


FAULTS = int(os.environ.get("FAULTS", 140))
SEED = int(os.environ.get("SEED", 7))
_HELD_SECONDS = 7.0
"""Longer than the agent's transactions may last in the campaign."""


class FaultyAgent:
    """An agent that reaches its broker by the faulty proxy, and is started again whenever it has ended."""

    def __init__(self, kafka: Any, options: list[str]) -> None:
        self._kafka, self._options = kafka, options
        self._process: subprocess.Popen[bytes] | None = None
        self.faults: dict[str, Callable[[], object]] = {
            "kill -9 of the agent": lambda: self.running().kill(),
            "SIGTERM of the agent": lambda: self.running().terminate(),
            "SIGSTOP of the agent past its transaction": self._pause,
            "connections reset": kafka.proxy.reset,
            "a broker that hangs": self._hold,
            "a broker that refuses connections": self._refuse,
            "kill -9 of the broker": self._restart_broker,
        }
        for kind in (Request.PRODUCE, Request.END_TRANSACTION, Request.ADD_PARTITIONS):
            self.faults[f"request lost: {kind.name}"] = lambda kind=kind: kafka.proxy.lose_request(kind)
            self.faults[f"answer lost: {kind.name}"] = lambda kind=kind: kafka.proxy.lose_answer(kind)

    def running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(self._options, stderr=subprocess.DEVNULL)
        return self._process

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _pause(self) -> None:
        process = self.running()
        process.send_signal(signal.SIGSTOP)
        time.sleep(_HELD_SECONDS)
        process.send_signal(signal.SIGCONT)

    def _hold(self) -> None:
        self._kafka.proxy.holding = True
        time.sleep(_HELD_SECONDS)
        self._kafka.proxy.mend()

    def _refuse(self) -> None:
        self._kafka.proxy.away = True
        self._kafka.proxy.reset()
        time.sleep(2.0)
        self._kafka.proxy.mend()

    def _restart_broker(self) -> None:
        self._kafka.kill()
        self._kafka.start()


def inject(agent: FaultyAgent, chance: random.Random, injected: Counter[str]) -> None:
    """All kinds of faults in turn, in a random order."""
    kinds: list[str] = []
    for _ in range(FAULTS):
        if not kinds:
            kinds = chance.sample(list(agent.faults), len(agent.faults))
        agent.running()
        time.sleep(1.0 + 2 * chance.random())
        kind = kinds.pop()
        agent.faults[kind]()
        injected[kind] += 1


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_each_line_arrives_once_under_faults_of_every_kind(
    kafka: Any, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    topic, log = fresh("faults"), tmp_path / "a.log"
    chance, injected = random.Random(SEED), Counter[str]()
    kafka.create_topic(topic)
    options = command(kafka, log, topic)
    options[options.index(kafka.bootstrap_servers)] = kafka.proxied
    options += ["--config", "transaction.timeout.ms=5000"]
    writer, agent = Writer(log, SEED), FaultyAgent(kafka, options)
    try:
        inject(agent, chance, injected)
    finally:
        writer.end()
        agent.stop()
        kafka.proxy.mend()
    hold_to_written(kafka, log, topic, writer.written)
    rows = [f"| {kind} | {count} |" for kind, count in sorted(injected.items())]
    record_property("table", "\n".join([*rows, f"| lines | {writer.written:,} |"]))


class TableWriter:
    """Writes numbered rows to a table of PostgreSQL, in transactions of any size, in a thread."""

    def __init__(self, server: PostgresServer, seed: int) -> None:
        self._server, self._random = server, random.Random(seed)
        self.written = 0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._end.is_set():
            count = self._random.choice((1, 10, 3_000))
            rows = f"SELECT generate_series({self.written}, {self.written + count - 1})"
            with suppress(Exception):  # it is restarted; whether this was committed is asked of it
                self._server.execute(f"INSERT INTO rows {rows}")
            self.written = self._counted()
            time.sleep(self._random.random() / 5)

    def _counted(self) -> int:
        while True:
            try:
                return self._server.execute("SELECT count(*) FROM rows")[0][0]
            except Exception:  # it is restarted again
                self._server.wait()


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.skipif(find_programs() is None, reason="no PostgreSQL here")
def test_each_change_arrives_once_under_faults_of_every_kind(
    kafka: Any, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    pytest.importorskip("psycopg")
    topic = fresh("changes")
    chance, injected, server = random.Random(SEED), Counter[str](), PostgresServer()
    server.execute("CREATE TABLE rows (n int PRIMARY KEY)", "CREATE PUBLICATION streamgauge FOR TABLE rows")
    kafka.create_topic(topic)
    program = [sys.executable, "-c", "from streamgauge.apps.cli.program import main; main()", "ingest"]

    def options(bootstrap: str) -> list[str]:
        path = tmp_path / f"{bootstrap.replace(':', '-')}.toml"
        path.write_text(
            f"""name = "{topic}"
            [sources.rows]
            type = "postgres"
            dsn = "{server.dsn}"
            [sinks.kafka]
            type = "kafka"
            topic = "{topic}"
            bootstrap_servers = "{bootstrap}"
            config = {{ "transaction.timeout.ms" = 5000 }}
            """
        )
        return [*program, str(path)]

    subprocess.run([*options(kafka.bootstrap_servers), "--once"], check=True, stderr=subprocess.DEVNULL)
    agent = FaultyAgent(kafka, options(kafka.proxied))
    agent.faults |= {
        "kill -9 of PostgreSQL": lambda: (server.stop(), server.start()),
        "a shutdown of PostgreSQL": lambda: (server.stop("fast"), server.start()),
        "PostgreSQL ends the connection": lambda: server.execute(
            "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots"
        ),
    }
    writer = TableWriter(server, SEED)
    try:
        inject(agent, chance, injected)
        writer.end()
        agent.stop()
        kafka.proxy.mend()
        subprocess.run([*options(kafka.bootstrap_servers), "--once"], check=True, stderr=subprocess.DEVNULL)
        numbers = [json.loads(value)["row"]["n"] for value in values(kafka, topic)]
        in_order = numbers == list(range(writer.written))
        assert in_order, _differs(numbers, writer.written)
    finally:
        agent.stop()
        kafka.proxy.mend()
        server.close()
    rows = [f"| {kind} | {count} |" for kind, count in sorted(injected.items())]
    record_property("table", "\n".join([*rows, f"| changes | {writer.written:,} |"]))


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
