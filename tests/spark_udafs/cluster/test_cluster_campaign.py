"""Two hundred faults of a cluster: the windows of each episode are those of the trades, each row counts once.

FAULTS=50 SEED=17 make soak ARGS=tests/spark_udafs/cluster/test_cluster_campaign.py
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from .conftest import Trades, check
from .standalone import Cluster, descendants, end, executors, reports

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.apart, pytest.mark.soak]

PATIENCE = 900.0
"""Seconds after which a query that commits nothing counts as hanging."""
FAULTS = int(os.environ.get("FAULTS", 200))
SEED = int(os.environ.get("SEED", random.randrange(1_000_000)))
CONNECT = float(os.environ.get("CONNECT", 1 / 3))
"""The share of episodes whose drivers are clients of a Connect server."""
MOST = 24
"""Messages of a micro-batch, of which an episode has 150."""
WAYS = {"stream": "Catalyst", "buckets": "buckets"}
PATIENT = {
    # As many as a campaign needs: each of its faults costs one.
    "spark.task.maxFailures": "100",
    "spark.stage.maxConsecutiveAttempts": "100",
    "spark.deploy.maxExecutorRetries": "-1",
}
CONFIGS = (
    {},
    {
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.multiplier": "1.01",
        "spark.speculation.quantile": "0.25",
    },
    {
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.minExecutors": "0",
        "spark.dynamicAllocation.maxExecutors": "2",
        "spark.dynamicAllocation.executorIdleTimeout": "1s",
        "spark.dynamicAllocation.schedulerBacklogTimeout": "1s",
    },
)
STRUCK = ("python", "executor", "worker")
"""Killed by a task, in the middle of a micro-batch."""


@contextmanager
def small_disk(folder: Path) -> Iterator[bool]:
    """Whether the folder is a disk of its own, which can be filled; only root can mount one."""
    folder.mkdir(parents=True)
    options = ["-t", "tmpfs", "-o", "size=96m", "tmpfs", str(folder)]
    mounted = not subprocess.run(["mount", *options], capture_output=True, check=False).returncode
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)


class Episode:
    """A stream that drivers take up one after the other until it has read the topic."""

    def __init__(
        self,
        cluster: Cluster,
        trades: Trades,
        folder: Path,
        job: str,
        config: Any,
        disk: bool,
        connect: bool,
    ) -> None:
        self.job, self.disk, self.folder, self.done = job, disk, folder, Counter[str]()
        self._cluster, self._config, self._connect = cluster, {**PATIENT, **config}, connect
        self._given = {"servers": trades.servers, "topic": trades.topic, "folder": folder, "most": MOST}
        self._logs = folder.with_name(f"{folder.name}-logs")
        self._logs.mkdir()
        self._strike = self._logs / "strike"
        self._excused_until = 0.0
        self._start()

    def _start(self) -> None:
        with (self._logs / "output").open("w") as output, (self._logs / "errors").open("a") as errors:
            self.driver = self._cluster.start(
                output,
                errors,
                config=self._config,
                jobs=[self.job],
                strike=self._strike,
                connect=self._connect,
                **self._given,
            )

    def ended(self, seconds: float) -> bool:
        """Whether the driver has ended after so long at most."""
        with suppress(subprocess.TimeoutExpired):
            self.driver.wait(seconds)
        return self.driver.poll() is not None

    def over(self, seconds: float) -> bool:
        """Whether the topic is read. A driver that ended because of the last fault is followed by another."""
        if not self.ended(seconds):
            return False
        if self.driver.returncode != 0 and time.monotonic() < self._excused_until:
            self._start()
            return False
        return True

    def result(self) -> dict[str, Any]:
        """What the last driver printed."""
        errors = (self._logs / "errors").read_text()
        assert self.driver.returncode == 0, errors[-6_000:]
        return reports((self._logs / "output").read_text())

    def batches(self) -> int:
        """How many micro-batches have been committed."""
        commits = self.folder / f"stream-{WAYS[self.job]}" / "checkpoint" / "commits"
        return max((int(path.name) + 1 for path in commits.glob("[0-9]*")), default=0)

    def wait_for_more_than(self, batches: int) -> None:
        """Faults that come faster than micro-batches would let none be committed."""
        deadline = time.monotonic() + PATIENCE
        while self.batches() <= batches and not self.ended(0.1):
            assert time.monotonic() < deadline, f"nothing was committed after batch {batches}"

    def strike(self, victim: str) -> None:
        """Let the next task kill it."""
        waiting = self._strike.with_suffix(".new")
        waiting.write_text(victim)
        waiting.rename(self._strike)
        deadline = time.monotonic() + PATIENCE
        while self._strike.exists():
            assert time.monotonic() < deadline, "no task ran"
            if self.ended(0.05):
                self._strike.unlink(missing_ok=True)
                return
        if victim == "worker":
            self.ended(0.5)
            self._cluster.replace_dead()
        self.done[f"kill -9 of {NAMED[victim]} within a micro-batch"] += 1

    def kill_driver(self) -> None:
        if self.ended(0):
            return
        end(self.driver)
        self.done["kill -9 of the driver"] += 1
        self._start()

    def kill_connect_server(self) -> None:
        """Its client would wait for it for ten minutes, so it is ended as well; the next has a new server."""
        servers = [one for one in descendants(self.driver.pid) if _program(one) == "java"]
        if not self._connect or not servers:
            return
        for server in servers:
            with suppress(ProcessLookupError):
                os.kill(server, signal.SIGKILL)
        self.ended(1.0)
        end(self.driver)
        self.done["kill -9 of the Connect server"] += 1
        self._start()

    def pause_executor(self, seconds: float) -> None:
        running = [one for worker in self._cluster.workers for one in executors(worker)]
        if not running:
            return
        with suppress(ProcessLookupError):
            os.kill(running[0], signal.SIGSTOP)
            self.ended(seconds)
            os.kill(running[0], signal.SIGCONT)
            self.done["SIGSTOP of an executor for up to 12 s"] += 1

    def hide_checkpoint(self, seconds: float) -> None:
        """A file stands in its place, so that nothing can be written."""
        checkpoint = self.folder / f"stream-{WAYS[self.job]}" / "checkpoint"
        if not (checkpoint / "commits").is_dir():
            return
        away = checkpoint.with_name("away")
        checkpoint.rename(away)
        checkpoint.write_bytes(b"")
        self.ended(seconds)
        checkpoint.unlink()
        away.rename(checkpoint)
        self._after("checkpoint folder unreachable for up to 15 s")

    def fill_disk(self, seconds: float) -> None:
        if not self.disk:
            return
        ballast = self.folder / "ballast"
        with suppress(OSError), ballast.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4_096))
        self.ended(seconds)
        ballast.unlink()
        self._after("disk of checkpoint and windows full for up to 15 s")

    def _after(self, fault: str) -> None:
        self.done[fault] += 1
        self._excused_until = time.monotonic() + 120


def _program(process: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{process}/comm").read_text().strip()
    return ""


NAMED = {"python": "Python's workers", "executor": "an executor", "worker": "a worker"}


def episode(cluster: Cluster, trades: Trades, folder: Path, dice: random.Random, most: int) -> Counter[str]:
    """Faults until the topic is read; the table and the account must be exact."""
    job, config, connect = dice.choice([*WAYS]), dice.choice(CONFIGS), dice.random() < CONNECT
    with small_disk(folder) as disk:
        run = Episode(cluster, trades, folder, job, config, disk, connect)
        faults: list[Callable[[], None]] = [
            *(lambda victim=victim: run.strike(victim) for victim in STRUCK),
            *([run.kill_connect_server] if connect else []),
            run.kill_driver,
            lambda: run.pause_executor(dice.uniform(1, 12)),
            lambda: run.hide_checkpoint(dice.uniform(1, 15)),
            lambda: run.fill_disk(dice.uniform(1, 15)),
        ]
        try:
            while not run.over(dice.uniform(0, 2)):
                if run.done.total() < most:
                    batches = run.batches()
                    dice.choice(faults)()
                    run.wait_for_more_than(batches)
            result = run.result()
        finally:
            end(run.driver)
    way = WAYS[job]
    check(result[f"stream {way}"], trades)
    assert result[f"account {way}"] == len(trades.rows)
    return run.done


def test_two_hundred_faults(
    cluster: Cluster, trades: Trades, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    dice, done, began = random.Random(SEED), Counter[str](), time.monotonic()
    episodes = 0
    while done.total() < FAULTS:
        episodes += 1
        done += episode(cluster, trades, tmp_path / f"episode-{episodes}", dice, FAULTS - done.total())
        minutes = (time.monotonic() - began) / 60
        print(f"{minutes:.0f} min: {done.total()} faults, all exact: {dict(done)}", flush=True)
    lines = [f"{count:4} {fault}" for fault, count in done.most_common()]
    head = f"SEED={SEED}: {done.total()} faults in {episodes} episodes, {minutes:.0f} minutes"
    record_property("table", "\n".join((head, *lines)))
