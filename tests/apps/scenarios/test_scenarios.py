"""Every scenario gives its alerts, commands and answers: in memory, on the consumer and on Spark."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from confluent_kafka import Producer
from typer.testing import CliRunner

from streamgauge import Stream, run_together
from streamgauge import json as json_value
from streamgauge.apps.cli.commands import app
from streamgauge.apps.scenarios.run import FIELDS, Kept, ScenarioResult, alerting, chosen, run, scenarios
from streamgauge.apps.scenarios.scenario import Scenario

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.slow
@pytest.mark.parametrize("field", FIELDS)
def test_each_scenario_happens_as_it_must(field: str) -> None:
    assert {one.name: one.differences for one in map(run, chosen([field])) if one.differences} == {}


def test_a_scenario_whose_alert_does_not_come_is_shown_as_such() -> None:
    from dataclasses import replace

    hot = scenarios()["temperature-reached"]
    silent = run(replace(hot, rules=hot.rules.replace("at_least = 30", "at_least = 300")))
    assert silent.differences == [
        'alerts: [["fired", "greenhouse"], ["cleared", "greenhouse"]] expected, got []'
    ]


def test_the_page_has_every_scenario_with_what_it_gives() -> None:
    page = (ROOT / "docs" / "scenarios.md").read_text()
    for one in scenarios().values():
        (line,) = [row for row in page.splitlines() if f"`{one.name}`" in row and row.startswith("|")]
        assert one.question in line, one.name
        for topic, _ in one.commands:
            assert f"`{topic}`" in line, one.name
        assert all(f"`{rule.__class__.__name__}`" in line for rule in one.rule_list()), one.name


def test_the_command_shows_one_with_its_definition_and_names_what_there_is() -> None:
    runner = CliRunner()
    shown = runner.invoke(app, ["demo", "scenarios", "light-turns-on"])
    assert shown.exit_code == 0 and "def light_turns_on" in shown.output and "[[rule]]" in shown.output
    assert "light hall light fired" in shown.output
    listed = runner.invoke(app, ["demo", "scenarios", "things", "--json"])
    assert [one["field"] for one in json.loads(listed.output)] == ["things"] * 6
    with pytest.raises(ValueError, match="'light' is not a scenario; there are the fields social, logs"):
        chosen(["light"])


def in_topic(kafka: Any) -> dict[str, Stream]:
    """All messages in one topic, by their times; the stream of each scenario reads its own."""
    topic = f"scenarios-{uuid.uuid4().hex[:8]}"
    kafka.create_topic(topic, 1)
    producer = Producer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "enable.idempotence": True,
            "linger.ms": 5,
            "log_level": 0,
        }
    )
    rows = [(row["at"], name, row) for name, one in scenarios().items() for row in one.messages()]
    for at, name, row in sorted(rows, key=lambda one: one[:2]):
        message = {**row, "at": at.isoformat(), "scenario": name}
        producer.produce(topic, json.dumps(message).encode())
    assert producer.flush(120) == 0
    return {name: one.stream(source(kafka, topic, one)) for name, one in scenarios().items()}


def source(kafka: Any, topic: str, one: Scenario) -> Stream:
    """The messages of one scenario, of those of all."""
    columns = {name: kind for other in scenarios().values() for name, kind in other.schema.items()}
    value = json_value({**columns, "scenario": pl.String})
    rows = Stream.from_kafka(topic, value=value, time="at", bootstrap_servers=kafka.bootstrap_servers)
    return rows.filter(pl.col("scenario") == one.name)


def differences(outlets: dict[str, Kept], windows: dict[str, pl.DataFrame]) -> dict[str, list[str]]:
    """What isn't as it must be, of each scenario of which something isn't."""
    wrong_by_name = {}
    for name, one in scenarios().items():
        answers = one.answer(windows[name]) if one.answer else None
        if wrong := ScenarioResult(one, 0, outlets[name].alerts, answers).differences:
            wrong_by_name[name] = wrong
    return wrong_by_name


def halves() -> list[list[Scenario]]:
    """A broker has room beside an offset for the event times of some streams, not of all."""
    listed = list(scenarios().values())
    return [listed[::2], listed[1::2]]


@pytest.mark.kafka
def test_the_consumer_gives_the_same(kafka: Any) -> None:
    streams, outlets = in_topic(kafka), {name: Kept() for name in scenarios()}
    windows: dict[str, pl.DataFrame] = {}
    for half in halves():
        results = run_together(
            {one.name: streams[one.name] for one in half},
            until="latest",
            progress=False,
            sinks={one.name: [alerting(one, outlets[one.name])] for one in half if one.rules},
        )
        windows |= {one.name: results[one.name].windows() for one in half if one.answer}
    assert differences(outlets, windows) == {}


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.spark
def test_spark_gives_the_same(spark: Any, kafka: Any, tmp_path: Path) -> None:
    from streamgauge.spark_udafs.streaming.alerts import AlertingSink
    from streamgauge.spark_udafs.streaming.shared_query import write_together

    streams, outlets = in_topic(kafka), {name: Kept() for name in scenarios()}
    tables: dict[str, list[Any]] = {name: [] for name in scenarios()}
    for number, half in enumerate(halves()):
        sinks: dict[str, list[Any]] = {}
        for one in half:
            name, keep = one.name, tables[one.name].append
            sinks[name] = [lambda table, batch, keep=keep: keep(table)]
            if one.rules:
                sinks[name] = [AlertingSink(streams[name], alerting(one, outlets[name]), tmp_path / name)]
        folder, own = tmp_path / f"query {number}", {one.name: streams[one.name] for one in half}
        query = write_together(own, spark, folder, sinks, available_now=True, close_at_end=True)
        assert query.awaitTermination(600)
    windows = {
        name: pl.concat([table.answers() for table in tables[name]])
        for name, one in scenarios().items()
        if one.answer
    }
    assert differences(outlets, windows) == {}
