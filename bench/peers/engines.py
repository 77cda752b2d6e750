"""One engine's approximate answers over the columns of the benchmarks: ``engines.py ENGINE THREADS QUERY…``.

Prints a JSON object: for each query its median seconds of three runs after a first, the rows it read, and its
answer. Columns lie in the engine's own memory tables before the clock starts. The clock is the processor's:
what other processes take of it doesn't count; Spark's, which runs in another process, is the wall's.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from bench.columns import ROWS, SLICES, TEXTS, columns, texts

QUANTILES = "0.5, 0.99, 0.999"
SPARK_ROWS = 2_000_000


def duckdb(threads: int) -> tuple[Callable[[str], Any], dict[str, str]]:
    import duckdb

    connection = duckdb.connect(config={"threads": threads})
    connection.execute("SET enable_progress_bar = false")
    for name, held in (("t", columns()), ("s", pa.table({"s": texts()}))):
        connection.register("held", held)
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM held")
    sql = {"distinct": "approx_count_distinct(v)", "texts": "approx_count_distinct(s)"}
    return lambda query: connection.execute(query).fetchall(), sql


def datafusion(threads: int) -> tuple[Callable[[str], Any], dict[str, str]]:
    import datafusion

    context = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(threads))
    for name, table in (("t", columns()), ("s", pa.table({"s": texts()}))):
        batches = table.to_batches(max_chunksize=65_536)
        parts = [batches[i::threads] for i in range(threads)]
        context.register_record_batches(name, [part for part in parts if part])
    sql = {"distinct": "approx_distinct(v)", "texts": "approx_distinct(s)"}

    def run(query: str) -> Any:
        rows = pa.Table.from_batches(context.sql(query).collect())
        return [list(row.values()) for row in rows.to_pylist()]

    return run, sql


def chdb(threads: int) -> tuple[Callable[[str], Any], dict[str, str]]:
    from chdb import session

    connection = session.Session()
    t, s = columns(), pa.table({"s": texts()})  # which chDB finds by these names
    connection.query("CREATE TABLE t ENGINE = Memory AS SELECT * FROM Python(t)")
    connection.query(f"CREATE TABLE s ENGINE = Memory AS SELECT * FROM Python(s) LIMIT {s.num_rows}")
    del t
    sql = {
        "distinct": "uniq(v)",
        "distinct, HLL": "uniqHLL12(v)",
        "texts": "uniq(s)",
        "quantiles": f"quantiles({QUANTILES})(x)",
        "t-digest": f"quantilesTDigest({QUANTILES})(x)",
        "DDSketch": f"quantilesDD(0.01, {QUANTILES})(x)",
    }

    def run(query: str) -> Any:
        answer = connection.query(f"{query} SETTINGS max_threads = {threads}", "JSONCompactColumns")
        return list(zip(*json.loads(answer.bytes())))

    return run, sql


def spark(threads: int) -> tuple[Callable[[str], Any], dict[str, str]]:
    import tempfile

    import pyarrow.parquet as pq

    from streamgauge.spark_udafs.session.session import session

    running = session("bench", master=f"local[{threads}]")
    folder = tempfile.mkdtemp()
    pq.write_table(columns().slice(0, SPARK_ROWS), f"{folder}/t.parquet")
    running.read.parquet(folder).cache().createOrReplaceTempView("t")
    running.sql("SELECT count(*) FROM t").collect()
    sql = {
        "distinct": "hll_sketch_estimate(hll_sketch_agg(v, 12))",
        "theta": "theta_sketch_estimate(theta_sketch_agg(v, 12))",
        "count-min": "length(count_min_sketch(v, 0.001D, 0.99D, 1))",
        "KLL": "kll_sketch_get_quantile_double(kll_sketch_agg_double(x), 0.99D)",
    }
    return lambda query: [list(row) for row in running.sql(query).collect()], sql


def polars(threads: int) -> tuple[Callable[[str], Any], dict[str, str]]:
    os.environ["POLARS_MAX_THREADS"] = str(threads)  # before its first import
    import polars as pl

    context = {"t": pl.from_arrow(columns()).lazy(), "s": pl.DataFrame({"s": texts()}).lazy()}

    def run(query: str) -> Any:
        name, _, rest = query.removeprefix("SELECT ").partition(" FROM ")
        column = pl.col(name.split()[-1])
        frame = context[rest.split()[0]]
        if "WHERE" in rest:
            frame = frame.filter(pl.col("b") == int(rest.split()[-1]))
        if "GROUP BY" in rest:
            return frame.group_by("k").agg(column.approx_n_unique()).sort("k").collect().rows()
        return frame.select(column.approx_n_unique()).collect().rows()

    return run, {"distinct": "v", "texts": "s"}


ENGINES = {"duckdb": duckdb, "datafusion": datafusion, "chdb": chdb, "spark": spark, "polars": polars}


def timed(run: Callable[[str], Any], query: str, runs: int, clock: Callable[[], float]) -> tuple[float, Any]:
    times, answer = [], None
    for _ in range(runs + 1):
        start = clock()
        answer = run(query)
        times.append(clock() - start)
    return statistics.median(times[1:]), answer


def main(engine: str, threads: int, queries: list[str]) -> dict[str, Any]:
    run, sql = ENGINES[engine](threads)
    by_key = {}
    for query in queries:
        name, _, form = query.partition(" by ")
        select = f"SELECT {sql[name]} FROM {'s' if name == 'texts' else 't'}"
        if form == "slice":
            answers = [run(f"{select} WHERE b = {i}")[0][0] for i in range(SLICES)]
            by_key[query] = {"answer": answers}
            continue
        if form == "key":
            select = f"SELECT k, {sql[name]} FROM t GROUP BY k ORDER BY k"
        clock = time.perf_counter if engine == "spark" else time.process_time
        seconds, answer = timed(run, select, 3, clock)
        rows = TEXTS if name == "texts" else SPARK_ROWS if engine == "spark" else ROWS
        by_key[query] = {"seconds": seconds, "rows": rows, "answer": answer}
    return by_key


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], int(sys.argv[2]), sys.argv[3:]), default=str))
