"""Over Spark Connect streams count as written down, too: a part of the cases, in one server of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .test_joins import expected as expected_pairs
from .test_joins import topics  # noqa: F401 - a fixture
from .test_windows import expected, partitions_of, send

ROOT = Path(__file__).resolve().parents[2]
BATCH, STREAM = ("hopping", "session"), "cumulate"
HOW = "left"

CLIENT = """
import json, os, sys
os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ["SPARK_TESTING"] = "1"  # the server takes a port that is free
from pathlib import Path
from pyspark.sql import SparkSession
from streamgauge.spark_udafs.streaming.run import on_spark
from streamgauge.spark_udafs.frames.tables import as_table
from tests.engines.test_connect import BATCH, HOW, STREAM
from tests.engines.test_joins import joined, joined_in
from tests.engines.test_windows import counted_in, stream_of
from streamgauge.operators.table.schema import read_parquet
from streamgauge.spark_udafs.streaming.run import account_of, write
from streamgauge.spark_udafs.streaming.sinks import SketchesToParquet

servers, prefix, folder, sides = *sys.argv[1:4], json.loads(sys.argv[4])
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
results = {}
for kind in BATCH:
    stream = stream_of(kind, prefix + kind, servers, buckets=True)
    table = as_table(on_spark(stream, spark, streaming=False, dead_letters=None))
    results[kind] = {name: list(map(list, of.items())) for name, of in counted_in(table, kind).items()}
source = stream_of(STREAM, prefix + STREAM, servers)
table = on_spark(source, spark, dead_letters=None, close_at_end=True)
running = write(table, f"{folder}/state", SketchesToParquet(f"{folder}/windows"), available_now=True)
assert running.awaitTermination(600)
windows, account = read_parquet(f"{folder}/windows"), account_of(running)
results[STREAM] = {name: list(map(list, of.items())) for name, of in counted_in(windows, STREAM).items()}
results["account"] = account.to_dict()
pairs = on_spark(joined(HOW, sides, bootstrap_servers=servers), spark, streaming=False, dead_letters=None)
by_case = joined_in(as_table(pairs).to_arrow())
results["pairs"] = {name: sorted(map(list, of.items())) for name, of in by_case.items()}
print(json.dumps(results))
"""


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.spark
def test_streams_count_as_written_down_over_connect(
    kafka: Any,
    topics: dict[str, str],  # noqa: F811
    tmp_path: Path,
) -> None:
    pytest.importorskip("grpc")
    for kind in (*BATCH, STREAM):
        kafka.create_topic(f"connect-{kind}", len(partitions_of(kind)))
        send(kafka, f"connect-{kind}", partitions_of(kind))
    arguments = [kafka.bootstrap_servers, "connect-", str(tmp_path), json.dumps(topics)]
    done = subprocess.run(
        [sys.executable, "-c", CLIENT, *arguments], capture_output=True, text=True, timeout=900, cwd=ROOT
    )
    assert done.stdout, done.stderr[-3000:]
    results = json.loads(done.stdout.splitlines()[-1])
    for kind in (*BATCH, STREAM):
        counted, account = expected(kind)
        of_case = {
            name: {tuple(window): n for window, n in windows} for name, windows in results[kind].items()
        }
        assert of_case == counted
    assert results["account"] == account.to_dict()
    pairs, _ = expected_pairs(HOW)
    assert results["pairs"] == {
        name: sorted([start, list(n)] for start, n in of.items()) for name, of in pairs.items()
    }
