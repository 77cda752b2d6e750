"""Windowed distinct counts by tag in Flink SQL: ``flink_sql.py FILE``; prints its processor's time as JSON.

The file holds a JSON object a line. Flink runs in the Java that this process starts, with one slot; the time
is Java's from the query's start to its end, as the operating system counts it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from pyflink.table import EnvironmentSettings, TableEnvironment


def java_seconds() -> float:
    """The processor's time of all processes below this one."""
    total, tick = 0.0, os.sysconf("SC_CLK_TCK")
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == os.getpid():
            total += (int(fields[11]) + int(fields[12])) / tick
    return total


def main(file: str) -> None:
    """Run the query twice, and print what the second took."""
    table = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    table.get_config().set("parallelism.default", "1")
    table.execute_sql(
        "CREATE TABLE posts (`at` BIGINT, usr STRING, tag STRING, price DOUBLE,"
        " ts AS TO_TIMESTAMP_LTZ(`at`, 3))"
        f" WITH ('connector'='filesystem', 'path'='file://{file}', 'format'='json')"
    )
    query = (
        "SELECT tag, window_start, COUNT(*) AS n, COUNT(DISTINCT usr) AS users FROM TABLE("
        "TUMBLE(TABLE posts, DESCRIPTOR(ts), INTERVAL '10' SECONDS)) WHERE price > 1"
        " GROUP BY tag, window_start, window_end"
    )
    for _ in range(2):
        before, wall = java_seconds(), time.perf_counter()
        rows = sum(1 for _ in table.execute_sql(query).collect())
        spent, elapsed = java_seconds() - before, time.perf_counter() - wall
    print(json.dumps({"cpu_seconds": spent, "seconds": elapsed, "rows": rows}))


main(sys.argv[1])
