"""A fleet of skewed, drifting, silent and delayed devices on Spark: the alerts that plain Python knows."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from streamgauge import Stream, last
from streamgauge import json as json_value
from streamgauge.rules import Alerting
from streamgauge.spark_udafs.streaming.alerts import AlertingSink
from streamgauge.spark_udafs.streaming.run import on_spark, write

from ..operators.rules.plain import NOON
from ..operators.rules.test_key_order import DEAD, HIGH, HOT, fleet, known, lasting
from .test_rules import Collected
from .test_windows import send

SCHEMA = {"us": pl.Int64, "key": pl.String, "value": pl.Float64}


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.parametrize(("devices", "seed"), [(12, 3), pytest.param(1_000, 4, marks=pytest.mark.soak)])
def test_spark_gives_each_alert_of_a_fleet_and_no_other(
    devices: int, seed: int, spark: Any, kafka: Any, tmp_path: Path
) -> None:
    readings, coming = fleet(seed, devices)
    until = max(own[-1][0] for own in readings.values())
    coming += [("end", until + 10 * step, 0.0) for step in range(60)]
    topic = f"fleet-{devices}"
    kafka.create_topic(topic, 1)
    time = pl.from_epoch("us", time_unit="us")
    rows = Stream.from_kafka(
        topic, value=json_value(SCHEMA), time=time, bootstrap_servers=kafka.bootstrap_servers
    )
    each = rows.with_columns(at=time).group_by("key", "at").tumbling("10s", delay="10s", keep_late=True)
    stream, outlet = each.agg(value=last("value")), Collected()
    alerting = Alerting([HOT, HIGH, DEAD], to=[outlet], at="at", lateness="30m")
    sink = AlertingSink(stream, alerting, tmp_path / "rules")
    start = round(NOON.timestamp() * 1e6)
    half = len(coming) // 2
    # The second run resumes from the first one's checkpoint.
    for some in (coming[:half], coming[half:]):
        send(
            kafka,
            topic,
            [[{"us": start + round(at * 1e6), "key": k, "value": value} for k, at, value in some]],
        )
        table = on_spark(stream, spark, dead_letters=None, close_at_end=False)
        assert write(table, tmp_path / "state", sink, available_now=True).awaitTermination(600)
    ends = {key: own[-1][0] for key, own in readings.items()}
    wanted = Counter(known(readings))
    alerts_said = Counter(
        {one: n for one, n in lasting(outlet).items() if one[2] in ends and one[3] <= ends[one[2]]}
    )
    assert alerts_said - wanted == Counter()
    assert wanted - alerts_said == Counter()
    assert sum(wanted.values()) > devices
