"""The whole line once: an agent, a topic, a script of SQL, an archive, and the archive's replay."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from typer.testing import CliRunner

from streamgauge.apps.cli.commands import app

_SCRIPT = """
CREATE STREAM readings (time TIMESTAMP, sensor VARCHAR, value DOUBLE)
  WITH (KAFKA_TOPIC='{topic}', VALUE_FORMAT='JSON', TIMESTAMP='time');
CREATE TABLE minutes WITH (KAFKA_TOPIC='{topic}.minutes') AS
  SELECT sensor, COUNT(*) AS readings, MAX(value) AS high FROM readings
  WINDOW TUMBLING (SIZE 1 MINUTE, GRACE PERIOD 10 SECONDS) GROUP BY sensor;
CREATE ALERT hot AS
  SELECT sensor, MAX(value) AS value FROM readings
  WINDOW TUMBLING (SIZE 1 MINUTE, GRACE PERIOD 10 SECONDS) GROUP BY sensor
  HAVING MAX(value) >= 30 WITH (CLEAR = 28, TO = '{topic}.hot');
"""


def values_of(servers: str, topic: str) -> list[dict[str, Any]]:
    """What the messages of a topic say, as plain values, without what differs from run to run."""
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": uuid.uuid4().hex, "enable.partition.eof": True}
    )
    partitions = consumer.list_topics(topic, timeout=120).topics[topic].partitions
    consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
    values, ended = [], 0
    while ended < len(partitions):
        message = consumer.poll(120)
        if message.error() is not None:
            ended += 1
        else:
            values.append(json.loads(message.value()))
    consumer.close()
    return values


@pytest.mark.kafka
def test_a_replayed_archive_gives_the_same_tables_and_alerts(kafka: Any, tmp_path: Path) -> None:
    topic, again = (f"{name}-{uuid.uuid4().hex[:8]}" for name in ("sensors", "again"))
    log, archive, at = tmp_path / "sensors.log", str(tmp_path / "archive"), datetime(2026, 1, 1, tzinfo=UTC)
    with log.open("w") as lines:
        for number in range(600):
            time = at + timedelta(seconds=number)
            value = 20.0 + (number // 60 == 4) * 15 + number % 7
            reading = {"time": time.isoformat(), "sensor": f"s{number % 3}", "value": value}
            lines.write(json.dumps(reading) + "\n")

    def streamgauge(*arguments: str) -> list[dict[str, Any]]:
        command = [*arguments, "--json", "--bootstrap-servers", kafka.bootstrap_servers]
        result = CliRunner().invoke(app, command)
        assert result.exit_code == 0, (command, result.output, result.exception)
        return [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]

    def run_script(name: str) -> tuple[list[str], list[str]]:
        script = tmp_path / f"{name}.sql"
        script.write_text(_SCRIPT.format(topic=name))
        streamgauge("sql", str(script), "--once")
        rows = values_of(kafka.bootstrap_servers, f"{name}.minutes")
        alerts = values_of(kafka.bootstrap_servers, f"{name}.hot")
        reported = [(alert["key"], alert["state"], alert["at"]) for alert in alerts]
        return sorted(map(json.dumps, rows)), sorted(map(str, reported))

    [account] = streamgauge("ingest", "tail", str(log), "--topic", topic, "--once", "--name", topic)
    assert (account["read"], account["sent"]) == (600, 600)
    rows, alerts = run_script(topic)
    assert len(rows) == 30 and len(alerts) >= 3
    [kept] = streamgauge("archive", topic, "--output", archive, "--once")
    assert kept["messages"] == 600
    [sent] = streamgauge("replay", archive, "--topic", again, "--speed", "max")
    assert sent["sent"] == 600
    assert run_script(again) == (rows, alerts)
