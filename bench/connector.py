"""Spark's own Kafka connector, as the peer of our source.

No registry has it whole for this version of Spark: the connector of 4.2 with the token provider of 4.0 works
with 4.3. The jars are fetched once by the Ivy that is in pyspark, and kept in the user's cache.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamgauge.apps.dev.kafka import jars as kafka_jars
from streamgauge.apps.environment.cache import cache_folder
from streamgauge.operators.java import find_java

JARS = (
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.2.0"),
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
    ("org.apache.kafka", "kafka-clients", "3.9.1"),
    ("org.apache.commons", "commons-pool2", "2.12.0"),
)
FIELDS = "user STRING, tag STRING, price DOUBLE, ts BIGINT"


def connector_jars() -> str:
    """The jars, as ``spark.jars`` takes them; nothing, with a line on stderr, without network."""
    folder = cache_folder() / "spark-connector"
    wanted = [folder / f"{name}-{revision}.jar" for _, name, revision in JARS]
    if not all(jar.exists() for jar in wanted):
        reported = _fetch(folder)
        if not all(jar.exists() for jar in wanted):
            print(f"Spark's Kafka connector can't be had here: {reported}", file=sys.stderr)
            return ""
    return ",".join(map(str, wanted))


def _fetch(folder: Path) -> str:
    depends = "\n".join(
        f'<dependency org="{org}" name="{name}" rev="{revision}" transitive="false" conf="default->default"/>'
        for org, name, revision in JARS
    )
    with tempfile.TemporaryDirectory() as scratch:
        module = Path(scratch) / "ivy.xml"
        module.write_text(
            '<ivy-module version="2.0"><info organisation="streamgauge" module="connector"/>'
            f"<dependencies>{depends}</dependencies></ivy-module>"
        )
        command = [
            str(find_java().program),
            *("-cp", str(kafka_jars._ivy_jar()), "org.apache.ivy.Main"),
            *kafka_jars._settings_options(Path(scratch)),
            *("-ivy", str(module), "-confs", "default", "-types", "jar", "-cache", f"{scratch}/cache"),
            *("-retrieve", str(folder / "[artifact]-[revision].[ext]")),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    return (done.stdout + done.stderr)[-500:]


def connected(reader: Any, bootstrap: str, topic: str, **options: str) -> DataFrame:
    """The rows of a topic's JSON messages, read by the connector and parsed by Spark."""
    messages = (
        reader.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .options(**options)
        .load()
    )
    rows = messages.select(F.from_json(F.col("value").cast("string"), FIELDS).alias("row")).select("row.*")
    return rows.withColumn("at", F.timestamp_millis("ts"))


def native_sketches(rows: DataFrame, *keys: str) -> DataFrame:
    """Spark's own HLL, KLL and frequent items of each minute, by its own aggregates."""
    return rows.groupBy(F.window("at", "1 minute"), *keys).agg(
        F.expr("hll_sketch_agg(user, 12)").alias("users"),
        F.expr("kll_sketch_agg_double(price)").alias("prices"),
        F.expr("approx_top_k_accumulate(tag)").alias("tags"),
    )
