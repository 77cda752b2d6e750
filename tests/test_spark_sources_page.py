"""The page on sources, roll-ups and stored tables on Spark: its code runs and says what it should."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from streamgauge import query, read_table
from streamgauge.spark import as_table
from streamgauge.spark_udafs.kafka import sink
from streamgauge.spark_udafs.kafka.options import _KNOWN

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "spark_sources.md").read_text()
BEGIN_MS = 1_767_225_600_000


def test_every_option_is_listed() -> None:
    listed = set(re.findall(r"`(\w+)`", "".join(line for line in PAGE.splitlines() if line[:1] == "|")))
    # These are set by `on_spark`, under names of its own, and by the runs of apps.
    assert {*_KNOWN, *sink._KNOWN} - listed == {"idleTimeout", "closeAtEnd", "endFile", "lateTopic"}


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.spark
def test_the_code_runs(
    spark: Any, kafka: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    from confluent_kafka import Producer

    monkeypatch.chdir(tmp_path)
    kafka.create_topic("trades", 2)
    kafka.create_topic("answers", 1)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True})
    for n in range(300):
        value = f'{{"user":"u{n % 9}","at":"2026-01-01T00:0{n // 60}:{n % 60:02d}Z"}}'
        producer.produce("trades", value, partition=n % 2, timestamp=BEGIN_MS + 1000 * n)
    assert producer.flush(120) == 0
    rows = spark.range(7200).selectExpr(
        "timestamp_seconds(id) AS at", "concat('u', id % 40) AS user", "id % 50 AS ms", "'north' AS site"
    )
    rows.write.partitionBy("site").parquet(str(tmp_path / "visits"))
    names: dict[str, Any] = {}
    for code in re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S):
        code = code.replace("localhost:9092", kafka.bootstrap_servers)
        for folder in ("visits", "windows-by-day", "windows", "checkpoint"):
            code = code.replace(f'"{folder}', f'"{tmp_path}/{folder}')
        exec(code, names)
    output = capsys.readouterr().out
    assert names["messages"].count() == 300
    written = spark.read.format("streamgauge-kafka").option("subscribe", "answers")
    values = written.option("kafka.bootstrap.servers", kafka.bootstrap_servers).load()
    sent = [json.loads(bytes(row.value)) for row in values.collect()]
    assert sum("USER" in one for one in sent) == 300
    (answer,) = (one for one in sent if "topic" in one)
    assert (answer["topic"], answer["messages"]) == ("trades", 300)
    assert [row["visits"] for row in query(as_table(names["by_hour"])).to_dicts()] == [3528] * 2
    assert "7056" in output
    assert names["north"].count() == 1440 and names["north"].columns == ["at", "user"]
    assert read_table(tmp_path / "visits-by-hour")["visits"].to_pylist() == [3600]
    with sqlite3.connect("answers.db") as database:
        result = database.execute("SELECT trades, round(users) FROM minutes ORDER BY at").fetchall()
    assert result == [(60, 9.0)] * 5
    stored = read_table(tmp_path / "windows-by-day")
    assert stored["trades"].to_pylist() == [60] * 5
    # What is said of tables of Spark's own.
    names["by_hour"].write.option("path", str(tmp_path / "table")).saveAsTable("hours_of_visits")
    try:
        kept = query(as_table(spark.table("hours_of_visits")))
        assert kept["visits"].to_list() == [3528] * 2
        minutes = as_table(spark.table("trades_by_minute"))
        assert (
            minutes.column_names == ["window_start", "window_end", "trades", "users"]
            and minutes["trades"].to_pylist() == [60] * 5
        )
    finally:
        for name in ("hours_of_visits", "trades_by_minute"):
            spark.sql(f"DROP TABLE IF EXISTS {name}")
