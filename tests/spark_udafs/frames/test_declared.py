"""A DataFrame whose schema is declared is never analysed, and gives the same tables as one that is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamgauge import HLL

pytestmark = [pytest.mark.spark, pytest.mark.apart]

PIPELINE = """
from pyspark import pipelines as dp
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType
import streamgauge as sg

spark = SparkSession.active()
POSTS = StructType.fromDDL("lang STRING, user BIGINT, at TIMESTAMP")


@dp.materialized_view
def posts():
    return spark.read.schema(POSTS).parquet("ROWS")


@dp.materialized_view
def languages():
    sketched = sg.spark.sketch(spark.read.table("posts"), schema=POSTS).groupBy("lang")
    return sketched.agg(n=F.count("*"), users=sg.distinct("user"), latest=F.max("at"))


@dp.table
def minutes():
    stream = spark.readStream.schema(POSTS).parquet("ROWS")
    sketched = sg.spark.sketch(stream, schema=POSTS, streaming=True).withWatermark("at", "10 seconds")
    return sketched.groupBy(F.window("at", "1 minute")).agg(n=F.count("*"), users=sg.distinct_set("user"))
"""


def run(folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    (folder / "transformations").mkdir(exist_ok=True)
    (folder / "transformations" / "posts.py").write_text(code.replace("ROWS", str(folder / "rows")))
    (folder / "spark-pipeline.yml").write_text(
        f"name: posts\nstorage: {(folder / 'storage').as_uri()}\nlibraries:\n"
        "  - glob:\n      include: transformations/**\n"
        "configuration:\n  spark.sql.shuffle.partitions: '1'\n"
    )
    program = Path(sys.executable).with_name("spark-pipelines")
    command = [program, "run", "--conf", "spark.ui.enabled=false", "--conf", "spark.sql.shuffle.partitions=1"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def table(folder: Path, name: str) -> pa.Table:
    return pq.read_table(folder / "spark-warehouse" / name)


@pytest.mark.slow
def test_sketches_in_declarative_pipelines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    rows = pl.DataFrame({"user": range(600)}).with_columns(
        lang=pl.when(pl.col("user") % 3 == 0).then(pl.lit("de")).otherwise(pl.lit("en")),
        at=pl.from_epoch(1_767_225_600 + pl.col("user")).cast(pl.Datetime("us", "UTC")),
    )
    (tmp_path / "rows").mkdir()
    rows.write_parquet(tmp_path / "rows" / "one.parquet")
    done = run(tmp_path, PIPELINE)
    assert done.returncode == 0, done.stderr[-3000:]
    languages = table(tmp_path, "languages").sort_by("lang")
    assert languages.select(["lang", "n"]).to_pylist() == [{"lang": "de", "n": 200}, {"lang": "en", "n": 400}]
    estimates = [HLL.from_bytes(image).estimate() for image in languages["users"].to_pylist()]
    assert [round(one) for one in estimates] == [200, 400]
    # The last minute isn't over by the watermark.
    minutes = table(tmp_path, "minutes").sort_by("window_start")
    assert minutes["n"].to_pylist() == [60] * 9
