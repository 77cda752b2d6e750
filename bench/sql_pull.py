"""Pull queries over 30 days of minutes of 1,000 keys: 43 million rows of sketches, a Parquet file a day.

The process is warm, the table is not: each query reads what it needs of the files. Their pages may be in the
page cache. The processor's time is that of all threads; the clock's is for a machine with nothing else to do.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

import streamgauge as sg
from streamgauge.operators.table.compaction import write_sorted
from streamgauge.operators.table.schema import END, START

from .measure import line

DAYS, MINUTES, KEYS = 30, 1_440, 1_000
DAY_US, BEGIN_US = 86_400_000_000, 1_767_225_600_000_000
QUERIES = {
    "a key's count and distinct values of 30 days of minutes": (
        "SELECT COUNT(*) AS n, APPROX_COUNT_DISTINCT(usr) AS users FROM minutes WHERE key = 'k{key}'"
    ),
    "a key's hours of 30 days of minutes": (
        "SELECT window_start, COUNT(*) AS n, SUM(price) AS total FROM minutes WINDOW TUMBLING (SIZE 1 HOUR)"
        " WHERE key = 'k{key}'"
    ),
    "all keys' counts of the last hour of 30 days": (
        "SELECT key, COUNT(*) AS n FROM minutes WHERE window_start >= '2026-01-30 23:00:00' GROUP BY key"
    ),
}


def main() -> list[dict[str, Any]]:
    """The lines of the table."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder))
        declared = f"CREATE TABLE minutes WITH (SKETCHES='{folder}');"
        return [timed(claim, declared + query) for claim, query in QUERIES.items()]


def write(folder: Path) -> None:
    """The same day of minutes, 30 times."""
    rng = np.random.default_rng(7)
    rows = pl.DataFrame(
        {
            "at": pl.Series(np.repeat(np.arange(MINUTES), KEYS) * 60_000_000).cast(pl.Datetime("us")),
            "key": np.tile(np.arange(KEYS), MINUTES),
            "usr": rng.integers(100_000, size=MINUTES * KEYS),
            "price": rng.random(MINUTES * KEYS),
        }
    ).with_columns(key=pl.format("k{}", "key"))
    minutes = sg.Stream.from_schema(dict(rows.schema), time="at").group_by("key").tumbling("1m")
    stream = minutes.agg(n=sg.count(), total=sg.sum("price"), users=sg.distinct("usr"))
    tester = sg.StreamTester(stream)
    tester.feed(rows)
    table = pa.table(tester.finish().tables())
    for day in range(DAYS):
        columns = [
            pc.add(table[field.name].cast(pa.int64()), BEGIN_US + day * DAY_US).cast(field.type)
            if field.name in (START, END)
            else table[field.name]
            for field in table.schema
        ]
        place = folder / f"window_date=2026-01-{day + 1:02d}"
        place.mkdir()
        write_sorted(pa.table(columns, schema=table.schema), place / "sketches.parquet", {})


def timed(claim: str, query: str) -> dict[str, Any]:
    """The fastest of a few queries, each of another key."""
    sg.sql(query.format(key=0))
    times = []
    for key in range(1, 6):
        cpu, wall = time.process_time(), time.perf_counter()
        sg.sql(query.format(key=key))
        times.append((time.perf_counter() - wall, time.process_time() - cpu))
    wall, cpu = min(times)
    return line(f"{claim} (processor, clock)", f"{cpu:.2f} s, {wall:.2f} s", "", f"{wall:.2f} s", "≤ 1 s")
