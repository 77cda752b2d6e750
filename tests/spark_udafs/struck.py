"""Queries over a DataFrame that can be struck; run by itself, this is a driver of them."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import functions as F

from streamgauge.operators.definition import aggregates as ask
from streamgauge.operators.definition.aggregate import Aggregate
from streamgauge.spark_udafs.frames.frames import sketch
from streamgauge.spark_udafs.streaming.run import write
from streamgauge.spark_udafs.streaming.sinks import SketchesToParquet

SCHEMA = "at timestamp, key long, v long"
WAYS: dict[str, dict[str, Aggregate]] = {
    "Catalyst": {"users": ask.distinct("v"), "often": ask.top_k("v"), "some": ask.sample("v", k=3)},
    "buckets": {"users": ask.distinct("v"), "spread": ask.quantiles("v"), "seen": ask.membership("v")},
}


def start(spark: Any, rows: Path, own: Path, way: str, *sinks: Any) -> Any:
    """A query of one way of merging over a folder of rows, a file a micro-batch; all it keeps is in `own`."""
    read = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(rows))
    timed = sketch(read).withWatermark("at", "5 seconds").groupBy("key", F.window("at", "1 minute"))
    table = timed.agg(n=F.count("*"), **WAYS[way])
    kept = SketchesToParquet(own / way / "windows")
    return write(table, own / way / "checkpoint", kept, *sinks, available_now=True)


def until(last: int) -> Callable[..., None]:
    """A sink that holds its query up for ever at the worst moment: batch `last` written and not committed."""

    def hold(table: Any, batch: Any) -> None:
        if batch.number >= last:
            print(batch.number, flush=True)
            time.sleep(3_600)

    return hold


def drive(folder: Path, last: int) -> None:
    """All ways at once; those that come to batch `last` stay there, others go on to the end."""
    from streamgauge.spark_udafs.session.session import session

    settings = {
        "spark.ui.enabled": "false",
        "spark.python.daemon.module": "struck_workers",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "100",
    }
    spark = session("struck", "local[2,4]", settings)
    queries = [start(spark, folder / "rows", folder / "struck", way, until(last)) for way in WAYS]
    ends = [threading.Thread(target=query.awaitTermination) for query in queries]
    for end in ends:
        end.start()
    for end in ends:
        end.join()
    spark.stop()


if __name__ == "__main__":
    drive(Path(sys.argv[1]), int(sys.argv[2]))
