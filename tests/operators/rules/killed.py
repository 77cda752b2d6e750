"""A run with rules, in a process that is killed: ``python -m streamgauge.tests.operators.rules.killed``."""

from __future__ import annotations

import sys

import polars as pl

from streamgauge import Stream, json, last
from streamgauge.rules import Alerting, AlertsToFile, AlertsToKafka, Threshold


def main(servers: str, topic: str, file: str) -> None:
    source = Stream.from_kafka(
        topic,
        value=json({"at": pl.Datetime("us", "UTC"), "sensor": pl.String, "value": pl.Float64}),
        time="at",
        bootstrap_servers=servers,
        config={"session.timeout.ms": 6_000, "transaction.timeout.ms": 10_000},
    )
    readings = source.group_by("sensor", "at").tumbling("1m", delay="0s").agg(value=last("value"))
    hot = Threshold("hot", value="value", above=60, clear=40, hold="2m")
    alerting = Alerting([hot], [AlertsToKafka(f"{topic}.alerts"), AlertsToFile(file)], at="at")
    readings.run(group_id=f"{topic}-rules", sinks=[alerting], checkpoint_seconds=0.2, progress=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
