"""A Parquet file of 20 M rows (BENCH_ROWS) by minute and language, beside what other engines have for that.

Each reads the same file: rows counted, different users, three quantiles, and, if the engine has it, the top
10 tags, by 60 windows of a minute and 20 languages. Seconds by the clock on all cores, and of processor time.
Ours has errors of 1.6 % (distinct, one standard deviation) and 1 % (quantiles). DuckDB's
`approx_count_distinct` has an error of 3 to 4 % and states none, its `approx_quantile` (a t-digest) and
`approx_top_k` none either; DataFusion and chDB (`uniqHLL12`) have HLLs and t-digests. Polars counts distinct
values and finds quantiles exactly, and so needs all rows in memory. An engine that isn't installed is left
out (`make bench` installs them).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import polars as pl

from bench.measure import line

ROWS, PART, RUNS = int(os.environ.get("BENCH_ROWS", "20_000_000")), 1_000_000, 3

TIMED = """
import json, resource, sys, time
def report(answer):
    used = time.process_time() - processor
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps([time.perf_counter() - clock, used, peak, answer]))
path = sys.argv[1]
"""
OURS = """
import polars as pl, streamgauge as sg
asked = dict(n=sg.count(), users=sg.distinct("user"), ms=sg.quantiles("ms"))
if TOP: asked["tags"] = sg.top_k("tag", k=10)
stream = sg.Stream.from_files(path, time="at").group_by("lang").tumbling("1m").agg(**asked)
stream.over(pl.scan_parquet(path).head(1_000))  # kernels are compiled or read
clock, processor = time.perf_counter(), time.process_time()
report(stream.run(progress=False).table.answers().height)
"""
DUCKDB = """
import duckdb
top = ", approx_top_k(tag, 10)" if TOP else ""
query = f'''SELECT time_bucket(INTERVAL 1 minute, "at") AS w, lang, count(*), approx_count_distinct("user"),
  approx_quantile(ms, [0.5, 0.9, 0.99]){top} FROM '{path}' GROUP BY w, lang'''
connection = duckdb.connect()
clock, processor = time.perf_counter(), time.process_time()
report(len(connection.execute(query).fetchall()))
"""
DATAFUSION = """
import datafusion
context = datafusion.SessionContext()
context.register_parquet("readings", path)
quantiles = ", ".join(f"approx_percentile_cont({q}) WITHIN GROUP (ORDER BY ms)" for q in (0.5, 0.9, 0.99))
query = f'''SELECT date_trunc('minute', "at") AS w, lang, count(*), approx_distinct("user"), {quantiles}
  FROM readings GROUP BY w, lang'''
clock, processor = time.perf_counter(), time.process_time()
report(sum(batch.num_rows for batch in context.sql(query).collect()))
"""
CHDB = """
import chdb
top = ", topK(10)(tag)" if TOP else ""
query = f'''SELECT toStartOfMinute(at) AS w, lang, count(), uniqHLL12(user),
  quantilesTDigest(0.5, 0.9, 0.99)(ms){top} FROM file('{path}', Parquet) GROUP BY w, lang'''
clock, processor = time.perf_counter(), time.process_time()
report(chdb.query(query, "ArrowTable").num_rows)
"""
POLARS = """
import polars as pl
clock, processor = time.perf_counter(), time.process_time()
frame = pl.scan_parquet(path).group_by(pl.col("at").dt.truncate("1m"), "lang").agg(
    pl.len(), pl.col("user").n_unique(), *(pl.col("ms").quantile(q).alias(str(q)) for q in (0.5, 0.9, 0.99))
)
report(frame.collect().height)
"""


def main() -> list[dict[str, Any]]:
    """Rows of the table."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        write(path)
        lines = []
        for top in (False, True):
            peers = {"DuckDB": DUCKDB, "chDB": CHDB}
            peers |= {} if top else {"DataFusion": DATAFUSION, "Polars (exact)": POLARS}
            peers = {name: code for name, code in peers.items() if find_spec(name.split()[0].lower())}
            measured = run({"ours": OURS, **peers}, path, top)
            what = "rows, distinct, quantiles" + (", top 10" if top else "")
            ours = measured.pop("ours")
            for peer, theirs in measured.items():
                said = f"{what}: {{}} beside {peer}"
                lines += [
                    compared(said.format("clock"), ours[0], theirs[0], "s", "≥ 1"),
                    compared(said.format("processor"), ours[1], theirs[1], "s", "≥ 2 (DuckDB)"),
                    compared(said.format("peak memory"), ours[2], theirs[2], "MB", ""),
                ]
        return lines


def compared(claim: str, ours: float, theirs: float, unit: str, target: str) -> dict[str, Any]:
    return line(claim, f"{ours:.2f} {unit}", f"{theirs:.2f} {unit}", theirs / ours, target)


def run(programs: dict[str, str], path: Path, top: bool) -> dict[str, list[float]]:
    """Medians of each program's seconds, processor seconds and peak megabytes, in turns."""
    results: dict[str, list[list[float]]] = {name: [] for name in programs}
    for _ in range(RUNS):
        for name, program in programs.items():
            code = TIMED + f"TOP = {top}\n" + program
            done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True)
            if done.returncode:
                raise SystemExit(done.stderr)
            results[name].append(json.loads(done.stdout.splitlines()[-1]))
    assert len({int(runs[0][3]) for runs in results.values()}) == 1
    return {name: [median(one[at] for one in runs) for at in range(3)] for name, runs in results.items()}


def write(path: Path) -> None:
    """An hour of rows in order, a million at a time."""
    import pyarrow.parquet as pq

    rng, writer = np.random.default_rng(0), None
    for begin in range(0, ROWS, PART):
        at = 1_767_225_600_000_000 + np.arange(begin, begin + PART) * (3_600_000_000 // ROWS)
        table = pl.DataFrame(
            {
                "at": pl.Series(at).cast(pl.Datetime("us")),
                "lang": pl.Series(rng.integers(0, 20, PART)).cast(pl.String),
                "user": rng.integers(0, 5_000_000, PART),
                "ms": rng.exponential(20.0, PART),
                "tag": rng.zipf(1.3, PART) % 100_000,
            }
        ).to_arrow()
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()
