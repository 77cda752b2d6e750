"""Rows a second from Parquet into one HyperLogLog: read and sketched in Python workers, or all by Spark.

Random int64 in 16 files of row groups of a million, into an HLL of lgK 12. Medians of three turns after one
that warms up. A second row is of a tenth of the files' rows, which a condition selects by their statistics:
ours skips the row groups, and so does Spark.

What bounds ours, in nanoseconds of a core for each row, measured in two processes at once: to read the column
alone takes Polars 6 and Arrow 10, nearly all of it for Snappy's blocks; to read it with Polars and sketch it
takes 8. Ours takes 8 to 9 in Spark's workers, so with this reader they are as fast as they get. Half a second
of the JVM's processor time comes on top for the query, however many its rows are. Spark's plan takes about
40, and with `max` in the sketch's place 17.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import functions as F

from streamgauge import distinct
from streamgauge.spark import as_table, sketch_parquet
from streamgauge.spark_udafs.session.session import session

from .measure import line

ROWS = int(os.environ.get("ROWS", 200_000_000))
"""Fewer only to try the script."""
FILES, RUNS = 16, 3


def write_rows(folder: Path) -> None:
    """`user` at random, `at` rising over all files."""
    random = np.random.default_rng(1)
    each = ROWS // FILES
    for number in range(FILES):
        table = pa.table(
            {
                "user": random.integers(0, 1 << 40, each),
                "at": np.arange(number * each, (number + 1) * each),
            }
        )
        pq.write_table(table, folder / f"{number:02d}.parquet", row_group_size=min(1 << 20, each // 4))


def timed(call: Any) -> float:
    """Seconds of a call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def main() -> list[dict[str, Any]]:
    """All rows, and a tenth of them."""
    collected = []
    with tempfile.TemporaryDirectory() as folder:
        write_rows(Path(folder))
        spark = session("bench", "local[2]", {"spark.ui.enabled": "false"})
        for share, reported in ((1.0, "all rows"), (0.1, "the tenth of them that a condition selects")):
            last = int(ROWS * share)
            where = None if share == 1 else pc.field("at") < last

            def ours(where: Any = where) -> None:
                table = sketch_parquet(folder, where=where, spark=spark).agg(users=distinct("user"))
                assert as_table(table).num_rows == 1

            def native(share: float = share, last: int = last) -> None:
                rows = spark.read.parquet(folder)
                # Whole files aren't filtered by either: a condition would cost Spark a second column.
                rows = rows if share == 1 else rows.where(F.col("at") < last)
                assert rows.agg(F.hll_sketch_agg("user", 12)).collect()

            turns = [(timed(ours), timed(native)) for _ in range(RUNS + 1)][1:]
            mine, theirs = (statistics.median(column) for column in zip(*turns))
            rates = [f"{last / seconds / 1e6:,.0f} M/s" for seconds in (mine, theirs)]
            target = "≥ 3" if share == 1 else "report"
            claim = f"Parquet, {ROWS / 1e6:,.0f} M int64 into an HLL: {reported}"
            collected.append(line(claim, rates[0], f"hll_sketch_agg {rates[1]}", theirs / mine, target))
        spark.stop()
    return collected


if __name__ == "__main__":
    for row in main():
        print(row)
