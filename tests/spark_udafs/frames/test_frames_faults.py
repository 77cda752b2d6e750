"""Faults of a query over a DataFrame: it gives out what an undisturbed one does, or says what is damaged."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import polars as pl
import pytest

from streamgauge.operators.table.schema import read_parquet
from streamgauge.spark_udafs.streaming.query_handle import DamagedState

from ...waiting import until
from ..struck import WAYS, start
from ..struck_workers import POINTS, STRIKES

pytestmark = pytest.mark.spark

START_US = 1_700_000_040_000_000


def add(folder: Path, number: int) -> None:
    """A file of rows, which is a micro-batch: the minute `number`, and some of the one before."""
    random = np.random.default_rng(number)
    at = START_US + number * 60_000_000 + random.integers(-20_000_000, 60_000_000, 300)
    columns = {"at": at, "key": random.integers(0, 12, 300), "v": random.integers(0, 1_000, 300)}
    file = folder / f"{number}.parquet"
    pl.DataFrame(columns).with_columns(pl.col("at").cast(pl.Datetime("us", "UTC"))).write_parquet(file)
    os.utime(file, (1_700_000_000 + number,) * 2)


@pytest.fixture(scope="module")
def undisturbed(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of three files of rows, and what queries gave out that nothing has struck."""
    folder = tmp_path_factory.mktemp("frames")
    (folder / "rows").mkdir()
    for number in range(3):
        add(folder / "rows", number)
    # One after the other: Spark gives a source's process ten seconds to come up.
    for way in WAYS:
        assert start(spark, folder / "rows", folder / "whole", way).awaitTermination(300)
    return folder


def struck_driver(folder: Path, strikes: Path, last: int) -> subprocess.Popen[str]:
    """A driver in a process group of its own, with its JVM and its workers; it complains into a file."""
    own = Path(__file__).parent
    with (folder / "complaints").open("a") as complaints:
        return subprocess.Popen(
            [sys.executable, str(own / "struck.py"), str(folder), str(last)],
            env={**os.environ, "PYTHONPATH": str(own), STRIKES: str(strikes)},
            stdout=subprocess.PIPE,
            stderr=complaints,
            text=True,
            start_new_session=True,
        )


@pytest.mark.soak
def test_killed_workers_and_drivers_leave_no_trace(
    spark: Any, undisturbed: Path, tmp_path: Path, same_tables: Callable[..., None]
) -> None:
    for point in POINTS:
        (tmp_path / point).touch()
    driver = struck_driver(undisturbed, tmp_path, last=1)
    try:
        assert driver.stdout is not None
        output = [driver.stdout.readline() for _ in WAYS]
    finally:
        os.killpg(driver.pid, signal.SIGKILL)
        driver.communicate()
    assert output == ["1\n"] * len(WAYS), (undisturbed / "complaints").read_text()[-3000:]
    assert list(tmp_path.iterdir()) == []
    for way in WAYS:
        query = start(spark, undisturbed / "rows", undisturbed / "struck", way)
        assert query.awaitTermination(300)
        assert query.recentProgress[0]["batchId"] == 1
        one, other = (read_parquet(undisturbed / name / way / "windows") for name in ("whole", "struck"))
        assert one.num_rows > 30
        same_tables(one, other, draws=False)


def finished(folder: Path) -> int:
    """How many micro-batches are in the struck queries' checkpoints as done."""
    return len(list(folder.glob("struck/*/checkpoint/commits/[0-9]*")))


def come_to(done: int, driver: subprocess.Popen[str], folder: Path) -> bool:
    """Whether so many are, or the driver has ended by itself."""
    return finished(folder) >= done or driver.poll() is not None


@pytest.mark.soak
def test_a_campaign_of_kills_leaves_no_trace(
    spark: Any, tmp_path: Path, same_tables: Callable[..., None], record_property: Callable[..., None]
) -> None:
    random = Random(int(os.environ.get("SEED", 11)))
    strikes, rows = tmp_path / "strikes", tmp_path / "rows"
    for folder in (strikes, rows):
        folder.mkdir()
    for number in range(24):
        add(rows, number)
    for query in [start(spark, rows, tmp_path / "whole", way) for way in WAYS]:
        assert query.awaitTermination(900)
    killed: Counter[str] = Counter()
    for _ in range(int(os.environ.get("FAULTS", 12))):
        placed = random.sample(POINTS, random.randrange(len(POINTS) + 1))
        for point in placed:
            (strikes / point).touch()
        done = finished(tmp_path) + random.randrange(5)
        driver = struck_driver(tmp_path, strikes, last=10**9)
        try:
            until(partial(come_to, done, driver, tmp_path), 600)
            # Anywhere within the next micro-batch, or before the first one.
            driver.wait(random.uniform(0, 3))
        except subprocess.TimeoutExpired:
            killed["kill -9 of the driver"] += 1
        finally:
            with suppress(ProcessLookupError):
                os.killpg(driver.pid, signal.SIGKILL)
            driver.communicate()
        killed.update(f"kill -9 of a worker, {point}" for point in placed if not (strikes / point).exists())
    for query in [start(spark, rows, tmp_path / "struck", way) for way in WAYS]:
        assert query.awaitTermination(900)
    for way in WAYS:
        one, other = (read_parquet(tmp_path / name / way / "windows") for name in ("whole", "struck"))
        assert one.num_rows > 250
        same_tables(one, other, draws=False)
    record_property("table", "\n".join(f"{times:4} {fault}" for fault, times in sorted(killed.items())))


def flipped(path: Path) -> None:
    image = bytearray(path.read_bytes())
    image[len(image) // 3] ^= 1
    path.write_bytes(image)


DAMAGES: dict[str, Callable[[Path], Any]] = {
    "flipped": flipped,
    "emptied": lambda path: path.write_bytes(b""),
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "gone": Path.unlink,
}


@pytest.mark.slow
@pytest.mark.parametrize("way", ["buckets", pytest.param("Catalyst", marks=pytest.mark.soak)])
@pytest.mark.parametrize(
    "damage", ["flipped", *(pytest.param(name, marks=pytest.mark.soak) for name in list(DAMAGES)[1:])]
)
def test_damaged_state_is_named(spark: Any, undisturbed: Path, tmp_path: Path, way: str, damage: str) -> None:
    """The state as RocksDB wrote it, without the sums that only some file systems keep beside it."""
    shutil.copytree(undisturbed / "whole" / way, tmp_path / way)
    state = tmp_path / way / "checkpoint" / "state"
    kept = [path for path in state.rglob("*") if path.suffix in (".zip", ".sst", ".changelog")]
    for path in kept:
        DAMAGES[damage](path)
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    shutil.copytree(undisturbed / "rows", tmp_path / "rows")
    add(tmp_path / "rows", 3)
    given = sorted((tmp_path / way / "windows").iterdir())
    with pytest.raises(
        DamagedState, match=rf"files in {tmp_path}/{way}/checkpoint/state are damaged or missing"
    ):
        start(spark, tmp_path / "rows", tmp_path, way).awaitTermination(300)
    assert kept and sorted((tmp_path / way / "windows").iterdir()) == given
