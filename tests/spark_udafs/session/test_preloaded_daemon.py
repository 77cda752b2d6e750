"""Python workers on a local master are forked from a process that has loaded what our tasks run."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

pytestmark = pytest.mark.spark


def loaded(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Of each batch's names of modules those that are loaded in this worker."""
    for batch in batches:
        names = [name for name in batch.column(0).to_pylist() if name in sys.modules]
        yield pa.RecordBatch.from_arrays([pa.array(names, pa.string())], ["name"])


@pytest.mark.slow
def test_a_worker_begins_with_our_modules_and_none_that_a_fork_breaks(spark: Any) -> None:
    wanted = ["streamgauge.spark_udafs.kafka.source", "streamgauge.spark_udafs.merge.buckets", "numba"]
    code = f"""
import subprocess
import sys
from streamgauge.spark_udafs.session import preloaded_daemon
preloaded_daemon.manager = lambda: print([name for name in {[*wanted, "polars"]} if name in sys.modules])
preloaded_daemon.main("pyspark.worker")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(wanted)
    frame = spark.createDataFrame([(name,) for name in wanted], "name string").coalesce(1)
    assert sorted(row.name for row in frame.mapInArrow(loaded, "name string").collect()) == sorted(wanted)


@pytest.mark.slow
def test_workers_do_not_draw_alike() -> None:
    code = """
import os
from streamgauge.spark_udafs.session import preloaded_daemon

def manager():
    for _ in range(2):
        if os.fork() == 0:
            import numpy
            print(numpy.random.random(), flush=True)
            os._exit(0)
        os.wait()

preloaded_daemon.manager = manager
preloaded_daemon.main("pyspark.worker")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    one, other = done.stdout.split()
    assert one != other
