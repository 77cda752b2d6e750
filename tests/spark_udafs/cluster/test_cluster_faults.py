"""Faults of a cluster leave no trace: the windows are those of an undisturbed run, each row counts once."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ...waiting import until
from .conftest import Trades, check
from .standalone import HOSTS, Cluster, end, reports

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.apart, pytest.mark.soak]

MOST = 1_200
"""Messages of a micro-batch: three of them hold all trades, the last one closes the windows."""
WAYS = {"stream": "Catalyst", "buckets": "buckets"}


@pytest.fixture(scope="module")
def undisturbed(cluster: Cluster, trades: Trades, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What both merges give when nothing happens."""
    given = {"servers": trades.servers, "topic": trades.topic, "folder": tmp_path_factory.mktemp("whole")}
    result = cluster.run(**given, jobs=list(WAYS), most=MOST)
    for way in WAYS.values():
        check(result[f"stream {way}"], trades)
    return result


def given(trades: Trades, folder: Path, **more: Any) -> dict[str, Any]:
    """What a driver of one of these tests needs to know."""
    return {"servers": trades.servers, "topic": trades.topic, "folder": folder, "most": MOST, **more}


def same(result: dict[str, Any], undisturbed: dict[str, Any], trades: Trades, *jobs: str) -> None:
    """The jobs gave the windows of the undisturbed run, and counted each row once."""
    for job in jobs:
        way = WAYS[job]
        assert result[f"stream {way}"] == undisturbed[f"stream {way}"]
        assert result[f"account {way}"] == len(trades.rows)


@pytest.mark.parametrize("victim", ["python", "executor"])
@pytest.mark.parametrize("job", list(WAYS))
def test_what_dies_within_a_batch_is_run_again(
    cluster: Cluster, trades: Trades, undisturbed: dict[str, Any], tmp_path: Path, job: str, victim: str
) -> None:
    strike = tmp_path / "strike"
    strike.touch()
    result = cluster.run(**given(trades, tmp_path, jobs=[job], strike=strike, victim=victim))
    assert not strike.exists()
    same(result, undisturbed, trades, job)


def test_a_worker_is_killed_within_a_batch_and_another_takes_its_place(
    trades: Trades, undisturbed: dict[str, Any], tmp_path: Path
) -> None:
    strike = tmp_path / "strike"
    strike.touch()
    with Cluster(tmp_path / "cluster") as cluster:
        driver = cluster.start(**given(trades, tmp_path, jobs=["buckets"], strike=strike, victim="worker"))
        try:
            until(lambda: not strike.exists() or driver.poll() is not None, 900)
            until(lambda: any(worker.process.poll() is not None for worker in cluster.workers))
            cluster.add_worker()
            output, complaints = driver.communicate(timeout=900)
        finally:
            end(driver)
    assert driver.returncode == 0, complaints[-6000:]
    same(reports(output), undisturbed, trades, "buckets")


@pytest.mark.parametrize("job", list(WAYS))
def test_a_driver_goes_on_from_the_checkpoint_of_one_that_was_killed(
    cluster: Cluster, trades: Trades, undisturbed: dict[str, Any], tmp_path: Path, job: str
) -> None:
    for batch in (0, 2):
        killed = cluster.start(**given(trades, tmp_path, jobs=[job], die_at=batch))
        try:
            killed.communicate(timeout=900)
        except subprocess.TimeoutExpired:
            pytest.fail("the driver never came to its end")
        finally:
            end(killed)
        assert killed.returncode < 0
    same(cluster.run(**given(trades, tmp_path, jobs=[job])), undisturbed, trades, job)


def test_executors_come_and_go_as_spark_likes(
    cluster: Cluster, trades: Trades, undisturbed: dict[str, Any], tmp_path: Path
) -> None:
    config = {
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.minExecutors": "0",
        "spark.dynamicAllocation.maxExecutors": "2",
        "spark.dynamicAllocation.executorIdleTimeout": "1s",
        "spark.dynamicAllocation.schedulerBacklogTimeout": "1s",
    }
    result = cluster.run(**given(trades, tmp_path, jobs=list(WAYS), config=config))
    same(result, undisturbed, trades, *WAYS)


@pytest.mark.parametrize("job", list(WAYS))
def test_a_task_that_runs_twice_counts_once(
    trades: Trades, undisturbed: dict[str, Any], tmp_path: Path, job: str
) -> None:
    strike = tmp_path / "strike"
    strike.touch()
    config = {
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.multiplier": "1.01",
        "spark.speculation.quantile": "0.25",
    }
    with Cluster(tmp_path / "cluster", workers=0) as cluster:
        # Spark begins no second attempt on the host of the first.
        for host in HOSTS:
            cluster.add_worker(host=host)
        result = cluster.run(
            **given(trades, tmp_path, jobs=[job], config=config, strike=strike, victim="slow")
        )
        assert not strike.exists()
        assert attempted_twice(cluster)
    same(result, undisturbed, trades, job)


def attempted_twice(cluster: Cluster) -> bool:
    """Whether an executor has begun a second attempt at a task."""
    logs = cluster.folder.glob("worker-*/work/*/*/stderr")
    return any(
        re.search(r"Running task \d+\.[1-9] in stage", log.read_text(errors="replace")) for log in logs
    )


def test_executors_of_another_processor_compile_kernels_of_their_own(
    trades: Trades, undisturbed: dict[str, Any], tmp_path: Path
) -> None:
    kernels = {"NUMBA_CACHE_DIR": str(tmp_path / "kernels")}
    with Cluster(tmp_path / "cluster", workers=0, warm=False) as cluster:
        for more in ({}, {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}):
            cluster.add_worker({**kernels, **more})
        result = cluster.run(**given(trades, tmp_path, jobs=list(WAYS)))
        same(result, undisturbed, trades, *WAYS)
        kept = sorted((tmp_path / "kernels").rglob("*record_kernel.split-*.kernel"))
        assert len(kept) == 2
        # Those of the first run serve the second, which compiles nothing.
        known = set((tmp_path / "kernels").rglob("*.kernel"))
        again = cluster.run(**given(trades, tmp_path / "again", jobs=list(WAYS)))
        same(again, undisturbed, trades, *WAYS)
        assert set((tmp_path / "kernels").rglob("*.kernel")) == known
