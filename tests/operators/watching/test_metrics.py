"""A run's figures as Prometheus reads them."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parsed_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parsed

from streamgauge.errors import OutletError
from streamgauge.operators.rules.outlets.grouping import Notification
from streamgauge.operators.sketching.account import Account
from streamgauge.operators.watching.figures import Figures, InputFigures, WorkFigures
from streamgauge.operators.watching.health import Health, health_of
from streamgauge.operators.watching.metrics import PARTITIONS, families, watch
from streamgauge.rules import Alert, AlertsToWebhook

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC).timestamp()


def figures(group: str = "g", partitions: int = 2, **others: object) -> Figures:
    inputs = {
        ("posts", p): InputFigures(p, int((NOON - p) * 1e6), idle=p == 1, held_back=int(p == 1))
        for p in range(partitions)
    }
    work = WorkFigures(rebalances=3, assigned=frozenset(inputs))
    for seconds in (0.004, 0.3, 100.0):
        work = WorkFigures(
            work.checkpoints.with_value(seconds), work.deltas.with_value(5_000), 3, work.assigned
        )
    reported = {
        "account": Account(10, 4, 3, 2, 1),
        "missed": 1,
        "inputs": inputs,
        "work": work,
        "state_bytes": 64,
    }
    reported |= {"group": group, "watermark_us": int(NOON * 1e6), "now": NOON + 5}
    return Figures(**{**reported, **others})


def test_every_figure_is_exposed_under_its_name() -> None:
    registry = CollectorRegistry()
    stop = watch(registry, lambda: (figures(), health_of(figures())))

    def sample(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(f"streamgauge_{name}", {"group": "g", **labels})

    assert sample("messages_read_total") == 10
    outcomes = {"counted": 4, "filtered": 3, "late": 2, "dead_lettered": 1}
    assert {name: sample("messages_total", outcome=name) for name in outcomes} == outcomes
    assert sample("messages_unaccounted") == 0 and sample("messages_missed_total") == 1
    assert sample("lag_messages") == 1
    assert sample("partition_lag_messages", topic="posts", partition="1") == 1
    assert sample("partition_held_back_messages", topic="posts", partition="1") == 1
    assert sample("partition_held_back_messages", topic="posts", partition="0") is None
    assert sample("partition_idle", topic="posts", partition="0") == 0
    assert sample("partition_watermark_timestamp_seconds", topic="posts", partition="1") == NOON - 1
    assert sample("watermark_timestamp_seconds") == NOON and sample("watermark_lag_seconds") == 5
    assert sample("rebalances_total") == 3 and sample("assigned_partitions") == 2
    assert sample("checkpoint_duration_seconds_count") == 3
    assert sample("checkpoint_duration_seconds_sum") == 100.304
    assert sample("checkpoint_duration_seconds_bucket", le="0.005") == 1
    assert sample("checkpoint_duration_seconds_bucket", le="60.0") == 2
    assert sample("checkpoint_duration_seconds_bucket", le="+Inf") == 3
    assert sample("delta_size_bytes_bucket", le="16384.0") == 3
    assert (sample("healthy"), sample("ready")) == (1, 0)
    stop()
    assert generate_latest(registry) == b""


def test_a_message_in_no_place_of_the_account_shows() -> None:
    [result] = [
        f for f in families([(figures(account=Account(10, 4)), Health(True, True))]) if "unacc" in f.name
    ]
    assert result.samples[0].value == 6


def test_names_units_and_types_are_those_of_prometheus() -> None:
    registry = CollectorRegistry()
    for group in ("one", "two"):
        watch(registry, lambda group=group: (figures(group), Health(True, True)))
    decoded = {family.name: family for family in parsed(generate_latest(registry).decode())}
    strict = {family.name for family in parsed_openmetrics(openmetrics(registry).decode())}
    assert strict == decoded.keys() and len(decoded) > 20
    for name, family in decoded.items():
        assert re.fullmatch(r"streamgauge_[a-z_]+", name) and family.documentation.endswith(".")
        if not name.startswith("streamgauge_outlet_"):  # which are of the process, of no group
            assert {sample.labels["group"] for sample in family.samples} == {"one", "two"}
        if family.type == "histogram":
            assert name.endswith(("_seconds", "_bytes"))


def test_what_is_not_known_is_left_out_and_is_not_0() -> None:
    unknown = {("posts", 0): InputFigures(), ("posts", 1): InputFigures(lag=5)}
    result = {
        f.name: f.samples
        for f in families([(figures(inputs=unknown, watermark_us=None), Health(True, True))])
    }
    assert result["streamgauge_lag_messages"] == result["streamgauge_watermark_lag_seconds"] == []
    assert [s.labels["partition"] for s in result["streamgauge_partition_lag_messages"]] == ["1"]


def test_the_number_of_series_is_bounded() -> None:
    many = figures(partitions=3 * PARTITIONS)
    result = list(families([(many, Health(True, True))]))
    # Those of outlets are of all that this process has, from other tests as well.
    ours = [family for family in result if not family.name.startswith("streamgauge_outlet")]
    assert sum(len(family.samples) for family in ours) < 3 * PARTITIONS + 100
    [lag] = [family for family in result if family.name == "streamgauge_lag_messages"]
    assert lag.samples[0].value == sum(range(3 * PARTITIONS))


def test_outlets_are_counted_by_their_names() -> None:
    class Nobody(AlertsToWebhook):
        def send(self, notification: Notification) -> None:
            raise OutletError("not here")

    alert = Alert("hot", "threshold", "fired", ("a",), 0, 0, 31.0, 31.0, 31.0, 30.0, "31 > 30")
    outlets = [Nobody("http://127.0.0.1:9/", name="two of them", match=["rule=hot"]) for _ in range(2)]
    for outlet in outlets:
        outlet.write(alert)
        outlet.write(replace(alert, rule="cold"))
        outlet.close(60)
    registry = CollectorRegistry()
    stop = watch(registry, lambda: (figures(), health_of(figures())))
    labels = {"outlet": "two of them"}
    for result, count in (("failed", 2), ("unmatched", 2), ("sent", 0), ("silenced", 0)):
        name = "streamgauge_outlet_alerts_total"
        assert registry.get_sample_value(name, {**labels, "result": result}) == count
    assert registry.get_sample_value("streamgauge_outlet_pending_alerts", labels) == 0
    stop()
