"""Other versions of PySpark than the one that is installed, each in an environment that its test makes.

Table formats come with jars for some versions of Spark only: upserts are held to Delta and to Iceberg on the
newest one that each has jars for. PySpark and the jars are fetched, 450 MB a version.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.apart, pytest.mark.soak]

ROOT = Path(__file__).resolve().parents[2]
DELTA = {
    "spark.jars.packages": "io.delta:delta-spark_4.2_2.13:4.4.0",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.sources.default": "delta",
    "spark.databricks.delta.snapshotPartitions": "2",
}
ICEBERG = {
    "spark.jars.packages": "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.lake.type": "hadoop",
}
MERGING = """
import json, sys
import polars as pl
from pyspark.sql import functions as F
from streamgauge import Stream, StreamTester, count, distinct, query
from streamgauge.spark_udafs.frames.frames import sketch
from streamgauge.spark_udafs.streaming.run import write
from streamgauge.spark_udafs.session.session import session
from streamgauge.spark_udafs.streaming.sinks import Batch
from streamgauge.spark_udafs.streaming.table_sink import SketchesToTable
from streamgauge.spark_udafs.frames.tables import as_table

name, folder, settings = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
warehouse = {"spark.sql.warehouse.dir": folder, "spark.sql.catalog.lake.warehouse": folder}
spark = session("merging", "local[2]", {"spark.ui.enabled": "false", **warehouse, **settings})
spark.sql(f"CREATE NAMESPACE {name}")
columns = {"at": pl.Int64, "site": pl.String, "user": pl.Int64}
stream = Stream.from_schema(columns, time=pl.from_epoch("at")).group_by("site").tumbling("1m")

def windows(rows):
    tester = StreamTester(stream.agg(rows=count(), users=distinct("user")))
    tester.feed([{"at": n, "site": ("a", "b", None)[n % 3], "user": n % 40} for n in range(rows)])
    return tester.finish().tables()

for upsert in (True, False):
    sink = SketchesToTable(f"{name}.upsert_{upsert}", upsert)
    for rows, number in ((90, 0), (180, 1), (180, 1)):
        sink(windows(rows), Batch("one", number))
    stored = as_table(spark.table(f"{name}.upsert_{upsert}"))
    print(stored.num_rows, query(stored)["rows"].sum(), flush=True)

# Windows that change, as a stream gives them: each file is a micro-batch, which replaces what the last said.
rows = spark.range(120).selectExpr("id % 40 AS user", "id % 2 AS site", "timestamp_seconds(id % 60) AS at")
rows.repartition(2).write.parquet(f"{folder}/rows")
read = spark.readStream.schema(rows.schema).option("maxFilesPerTrigger", 1).parquet(f"{folder}/rows")
timed = sketch(read).outputMode("update").withWatermark("at", "1 hour")
minutes = timed.groupBy("site", F.window("at", "1 minute")).agg(rows=F.count("*"), users=distinct("user"))
sink = SketchesToTable(f"{name}.changing", upsert=True)
write(minutes, f"{folder}/checkpoint", sink, available_now=True).awaitTermination()
print(sorted(query(as_table(spark.table(f"{name}.changing")))["rows"]), flush=True)
spark.stop()
"""
GIVEN = "9 180\n15 270\n[60, 60]\n"
_BATCHES = [
    "spark_udafs/frames/test_catalyst_streams.py",
    "spark_udafs/frames/test_frames_streams.py::test_sessions_of_all_rows_together",
    "spark_udafs/frames/test_row_definitions.py",
    "spark_udafs/functions/test_examples.py",
    "spark_udafs/merge/test_plan.py::test_every_aggregate_is_merged_as_by_ourselves",
    "spark_udafs/parquet/test_readable.py::test_rows_with_the_folders_columns",
    "spark_udafs/kafka/test_sink.py",
]
"""A batch and a stream of each merge, SQL functions, sources and sinks."""
_STREAMS = [
    "spark_udafs/frames/test_watermarks.py",
    "spark_udafs/kafka/test_source.py",
    *(
        f"engines/test_windows.py::test_spark_counts_as_written_down[{case}]"
        for case in (
            "hopping-True-True-Asia/Kolkata",
            "days-True-False-America/St_Johns",
            "together-True-False-UTC",
        )
    ),
]
"""Streams of our own sources, and a quarter of the suite that both engines pass."""
MATRIX = {"4.1": _BATCHES, "4.2": [*_BATCHES, *_STREAMS], "4.3": [*_BATCHES, *_STREAMS]}
"""What `make versions` tests with each version; 4.1 has no streams of our own sources."""
_FOLDERS = ["spark_udafs/frames", "spark_udafs/functions", "spark_udafs/streaming/test_table_sink.py"]
WHOLE = {
    "4.2": [*_FOLDERS, *(f"spark_udafs/{name}" for name in ("streaming", "kafka", "merge", "parquet"))],
}
"""What `make soak` tests besides; many of these tests need functions and triggers that 4.1 lacks."""


@pytest.fixture(scope="module")
def interpreters(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """An interpreter for each version: PySpark by itself, all else from this one's packages."""
    return {version: environment(tmp_path_factory.mktemp("version"), version) for version in MATRIX}


def environment(folder: Path, version: str) -> Path:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    packages = next(folder.glob("lib/python3*/site-packages"))
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "-q", "--no-deps"]
    subprocess.run([*pip, "--target", packages, f"pyspark=={version}.*"], check=True)
    (folder / "src").mkdir()
    (folder / "src" / "streamgauge").symlink_to(ROOT)
    (packages / "shared.pth").write_text(f"{folder}/src\n{sysconfig.get_path('purelib')}\n")
    return folder / "bin" / "python"


def run(*command: object) -> subprocess.CompletedProcess[str]:
    # A distribution of Spark that this environment names would be of another version.
    env = {name: value for name, value in os.environ.items() if name not in ("SPARK_HOME", "PYSPARK_PYTHON")}
    return subprocess.run([*map(str, command)], env=env, capture_output=True, text=True, cwd=ROOT)


@pytest.mark.parametrize(
    ("version", "name", "settings"),
    [
        pytest.param("4.2", "sinks", DELTA, id="Delta"),
        pytest.param("4.1", "lake.sinks", ICEBERG, id="Iceberg"),
    ],
)
def test_upserts_in_formats_that_merge(
    interpreters: dict[str, Path], tmp_path: Path, version: str, name: str, settings: dict[str, str]
) -> None:
    done = run(interpreters[version], "-c", MERGING, name, tmp_path / "lake", json.dumps(settings))
    assert done.stdout == GIVEN, done.stderr[-5000:]


@pytest.mark.parametrize("version", list(MATRIX))
def test_the_matrix_of_versions(interpreters: dict[str, Path], version: str) -> None:
    check(interpreters[version], MATRIX[version])


@pytest.mark.parametrize("version", list(WHOLE))
def test_what_a_version_can_it_does_right(interpreters: dict[str, Path], version: str) -> None:
    check(interpreters[version], WHOLE[version])


def check(interpreter: Path, tests: list[str]) -> None:
    """Run tests of this folder's parent in another version."""
    selected = [ROOT / "tests" / name for name in tests]
    done = run(interpreter, "-m", "pytest", "-q", "-m", "not soak", "-p", "no:cacheprovider", *selected)
    assert done.returncode == 0, done.stdout[-8000:]
