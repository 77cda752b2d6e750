"""Everything public over Spark Connect: one server in a process of its own, which has one kind of session."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import streamgauge.spark_udafs

CLIENT = """
import os, sys
os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ["SPARK_TESTING"] = "1"  # the server takes a port that is free
import polars as pl
import pyarrow.compute as pc
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import streamgauge.spark.functions as S
from streamgauge import Stream, count, distinct, json, quantiles, query, read_table, sample, top_k
from streamgauge.spark import (
    SketchesToKafka, SketchesToParquet, SketchesToTable, account_of, as_frame, as_table, register, rollup,
    sketch, sketch_parquet, window, with_definitions, write,
)

servers, topic, out, folder = sys.argv[1:]
settings = {
    "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2",
    "spark.sql.warehouse.dir": f"{folder}/warehouse",
}
builder = SparkSession.builder.remote("local[2]")
for name, value in settings.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
assert type(spark).__module__.startswith("pyspark.sql.connect")
spark.conf.set(
    "spark.sql.streaming.stateStore.providerClass",
    "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
)

def report(name, *values):
    print(name, *values, flush=True)

# DataFrames, and what Catalyst merges and what it doesn't.
rows = spark.range(1000).selectExpr("id", "timestamp_seconds(id) at", "cast(id % 7 as string) tag")
request = sketch(rows).groupBy(F.window("at", "10 minutes"))
sketched = request.agg(n=F.count("*"), ids=distinct("id"), tags=top_k("tag", k=1), some=sample("id", k=2))
table = query(as_table(sketched)).sort("window_start")
report("sketch", table["n"].to_list(), table["tags"].list.len().to_list())
bucketed = request.agg(n=count(), ids=quantiles("id"))
report("buckets", sorted(spread["n"] for spread in query(as_table(bucketed))["ids"]))

# Tables of sketches: there and back, rolled up, after SQL, in files.
arrow = as_table(bucketed)
report("as_frame", as_table(as_frame(arrow, spark)).num_rows)
report("rollup", query(as_table(rollup(sketched, every="20 minutes")))["n"].to_list())
report("rollup buckets", query(as_table(rollup(bucketed, by=[])))["n"].sort().to_list())
sketched.createOrReplaceTempView("minutes")
computed = "window_start, window_end, sum(n) n, hll_union_agg(ids) ids"
by_hand = with_definitions(spark.sql(f"SELECT {computed} FROM minutes GROUP BY ALL"), like=sketched)
report("with_definitions", query(as_table(by_hand))["n"].sort().to_list())
rows.write.parquet(f"{folder}/rows")
in_files = sketch_parquet(f"{folder}/rows", where=pc.field("id") < 500, spark=spark)
report("sketch_parquet", query(as_table(in_files.agg(n=count(), ids=distinct("id"))))["n"].to_list())

# SQL, and messages by the source's plain name.
register(spark)
rows.createOrReplaceTempView("numbers")
most = "answer_top_k_string(sketch_top_k(tag, max_size => 64), 1).upper"
(upper,) = spark.sql(f"SELECT {most} FROM numbers").first()
ids = rows.agg(S.sketch_distinct("id", lg_k=14).alias("ids"))
twice = S.answer_distinct(S.union_distinct("ids", "ids"))
(row,) = ids.select(twice.alias("ids"), S.print_distinct("ids").alias("printed")).collect()
report("register", upper, row.ids.lower <= 1000 <= row.ids.upper, "lg_k=14" in row.printed)
try:
    spark.sql("SELECT count(*), sketch_distinct(id) FROM numbers").collect()
except AnalysisException as error:
    report("note", "Use streamgauge.spark.sketch(df)" in error.__notes__[0])
messages = spark.read.format("streamgauge-kafka").option("kafka.bootstrap.servers", servers)
report("messages", messages.option("subscribe", topic).load().count())
"""

STREAMS = """
# Streams of a DataFrame, merged both ways, and a stream of the windows that one of them wrote.
streamed = spark.readStream.schema(rows.schema).parquet(f"{folder}/rows")
timed = sketch(streamed).withWatermark("at", "1 second").groupBy(window("at", "1 minute"))
for way, ids in {"native": distinct("id"), "buckets": quantiles("id")}.items():
    sinks = SketchesToParquet(f"{folder}/{way}"), SketchesToTable(f"stored_{way}")
    table = timed.agg(n=F.count("*"), ids=ids)
    write(table, f"{folder}/of-{way}", *sinks, available_now=True).awaitTermination(240)
    stored = read_table(f"{folder}/{way}").to_arrow().sort_by("window_start")
    known = as_table(spark.table(f"stored_{way}")).to_arrow().sort_by("window_start")
    report("stream", way, stored["n"].to_pylist() == [60] * 16, known.equals(stored))
schema = spark.read.parquet(f"{folder}/native").schema
minutes = spark.readStream.schema(schema).parquet(f"{folder}/native")
wider = rollup(minutes, every="5 minutes")
to_wider = SketchesToParquet(f"{folder}/wider")
write(wider, f"{folder}/of-wider", to_wider, available_now=True).awaitTermination(240)
report("rollup of a stream", read_table(f"{folder}/wider")["n"].to_pylist())
"""

MESSAGES = """
# A Kafka stream's definition: once, and as a query with sinks and an account.
stream = Stream.from_kafka(
    topic, value=json({"at": pl.Datetime("us")}), time="at", bootstrap_servers=servers
).tumbling("1m").agg(n=count())
report("on_spark", as_table(stream.on_spark(spark, streaming=False, dead_letters=None))["n"].to_pylist())
running = write(
    stream.on_spark(spark, dead_letters=None, close_at_end=True), f"{folder}/kafka",
    SketchesToParquet(f"{folder}/windows"), SketchesToKafka(out, servers), available_now=True,
)
ended = running.awaitTermination(240)
report("write", ended, account_of(running), read_table(f"{folder}/windows")["n"].to_pylist())

spark.stop()
"""

REPORTED = """\
sketch [600, 400] [1, 1]
buckets [400, 600]
as_frame 2
rollup [1000]
rollup buckets [400, 600]
with_definitions [400, 600]
sketch_parquet [500]
register [143] True True
note True
messages 2
"""

STREAMS_REPORTED = """\
stream native True True
stream buckets True True
rollup of a stream [300, 300, 300]
"""

MESSAGES_REPORTED = """\
on_spark [2]
write True Account(read=2, counted=2, filtered=0, late=0, dead_lettered=0) [2]
"""


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.parametrize(
    ("streams", "of_streams"),
    [
        pytest.param("", "", id="all but streams of DataFrames"),
        pytest.param(STREAMS, STREAMS_REPORTED, id="all", marks=pytest.mark.soak),
    ],
)
def test_everything_public_over_connect(
    kafka: Any, topic: Any, send: Any, tmp_path: Path, streams: str, of_streams: str
) -> None:
    pytest.importorskip("grpc")
    name, out = topic(), topic()
    send(name, [b'{"at":"2026-01-01T00:00:01"}', b'{"at":"2026-01-01T00:00:02"}'])
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            CLIENT + streams + MESSAGES,
            kafka.bootstrap_servers,
            name,
            out,
            str(tmp_path),
        ],
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.stdout == REPORTED + of_streams + MESSAGES_REPORTED, done.stderr[-3000:]


def test_no_handle_of_the_jvm_is_used() -> None:
    folder = Path(streamgauge.spark_udafs.__path__[0])
    classic = (
        *("session.py", "describing.py", "columns.py", "map_in_arrow.py", "worker_interpreter.py"),
        "shuffle_partitions.py",
    )
    handles = re.compile(
        r"\b_(jvm|jdf|jc|jsparkSession|jwrite|jschema|jreader|sc)\b|\.sparkContext\b|\.rdd\b"
    )
    result = {
        f"{path.relative_to(folder)}:{number}"
        for path in folder.rglob("*.py")
        # Of classic sessions alone: their end, DESCRIBE FUNCTION, what is in their columns, faster batches,
        # which interpreter their workers run, how many cores they have.
        if path.name not in classic
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if handles.search(line)
    }
    assert result == set()
