"""The same script on Spark and as consumers gives the same rows, and goes on where it ended."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from ..cli.test_sql import START, ran

pytestmark = [pytest.mark.kafka, pytest.mark.spark]


def produce(kafka: Any, topic: str, numbers: range) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True})
    for number in numbers:
        row = {"ts": START + number * 1000, "usr": f"u{number % 20}", "lang": "en" if number % 4 else "fi"}
        producer.produce(topic, json.dumps(row).encode())
    producer.flush()


def script(name: str, to: str) -> str:
    return f"""
    CREATE STREAM posts (ts BIGINT, usr VARCHAR, lang VARCHAR)
      WITH (KAFKA_TOPIC='posts-{name}', VALUE_FORMAT='JSON', TIMESTAMP='ts');
    CREATE STREAM finnish WITH (KAFKA_TOPIC='finnish-{to}') AS SELECT ts, usr FROM posts WHERE lang = 'fi';
    CREATE TABLE counts WITH (KAFKA_TOPIC='counts-{to}') AS
      SELECT usr, COUNT(*) AS n, APPROX_COUNT_DISTINCT(ts) AS times FROM finnish
      WINDOW TUMBLING (SIZE 100 SECONDS) GROUP BY usr HAVING COUNT(*) > 4;
    CREATE ALERT many AS SELECT COUNT(*) AS n FROM posts WINDOW TUMBLING (SIZE 100 SECONDS)
      HAVING COUNT(*) > 49 WITH (TO='many-{to}');
    SELECT window_start, usr, n, times FROM counts EMIT CHANGES;
    SELECT state, at, value FROM many EMIT CHANGES;
    SELECT window_start, lang, COUNT(*) AS n, APPROX_COUNT_DISTINCT(usr) AS users FROM posts
      WINDOW TUMBLING (SIZE 100 SECONDS) GROUP BY lang EMIT FINAL;
    """


@pytest.mark.slow
def test_both_engines_give_the_same_rows(kafka: Any, spark: Any, tmp_path: Path) -> None:
    name = uuid.uuid4().hex[:8]
    kafka.create_topic(f"posts-{name}")
    produce(kafka, f"posts-{name}", range(300))
    servers = ("--json", "--once", "--bootstrap-servers", kafka.bootstrap_servers)
    code, consumed = ran("-e", script(name, f"a-{name}"), *servers)
    assert code == 0, consumed[-1]
    code, on_spark = ran("-e", script(name, f"b-{name}"), *servers, "--engine", "spark", "--state", tmp_path)
    assert code == 0, on_spark[-1]
    assert len(on_spark) == 7
    for one, other in zip(on_spark[4:], consumed[4:]):
        assert sorted(map(str, one["rows"])) == sorted(map(str, other["rows"])) and one["rows"]

    # The same folder goes on: what was counted is not counted again.
    code, again = ran("-e", script(name, f"b-{name}"), *servers, "--engine", "spark", "--state", tmp_path)
    assert code == 0 and sorted(again[4]["rows"]) == sorted(on_spark[4]["rows"])
    changed = script(name, f"b-{name}").replace("HAVING COUNT(*) > 4", "HAVING COUNT(*) > 5")
    code, refused = ran("-e", changed, *servers, "--engine", "spark", "--state", tmp_path)
    assert code == 1 and "HAVING changed from" in refused[-1]["error"]["message"]
    assert refused[-1]["error"]["line"] == 5


def test_options_of_the_other_engine_are_refused() -> None:
    for options, message in (
        (("--engine", "spark", "--group", "g"), "--state FOLDER"),
        (("--state", "x"), "--group NAME"),
    ):
        with pytest.raises(AssertionError, match=message):
            ran("-e", "SHOW TOPICS", *options)
