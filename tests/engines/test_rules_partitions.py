"""Rules say the same however many partitions the table topic has: a rule's key lives where its rows are."""

from __future__ import annotations

import random
import uuid
from typing import Any

import polars as pl
import pytest

from streamgauge import count, rules
from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import run
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.kafka.log_faults import DeltaError

from .test_rules import Collected, said
from .test_windows import send, source_of
from .window_cases import DAY

PARTITIONS = 3
BY_KEY = rules.Absence("gone", longer="40s"), rules.Threshold("busy", value="n", at_least=4)
RULES: dict[str, list[rules.Rule]] = {
    "of each group": [*BY_KEY, rules.RollingSum("hour", value="n", over="2m", at_least=20)],
    "of some keys": [*BY_KEY, rules.Change("jump", value="n", above=2, by="times", per=("key",))],
    "of all keys": [
        *BY_KEY,
        rules.NewTerm("new", learn="1m"),
        rules.Burst("burst", value="n", above=2, least=3, warm=3),
        rules.Change("more", value="n", against="mean", over=5, above=2, by="times", absent=0),
    ],
}
"""Rules by what they look at."""


def drawn() -> list[list[dict[str, Any]]]:
    """Some minutes of rows of keys that come and go, in three partitions."""
    draw = random.Random(3)
    partitions: list[list[dict[str, Any]]] = [[] for _ in range(PARTITIONS)]
    for second in range(0, 600, 2):
        key = "abcdefgh"[min(int(draw.expovariate(0.4)), 7)]
        for _ in range(6 if second // 100 == 3 and key == "b" else 1):
            at = round((DAY + second + draw.random()) * 1e6)
            partitions[draw.randrange(PARTITIONS)].append({"at": at, "case": draw.randrange(2), "key": key})
    return partitions


@pytest.fixture(scope="module")
def topic(kafka: Any) -> Stream:
    name = f"rules-{uuid.uuid4().hex[:8]}"
    kafka.create_topic(name, PARTITIONS)
    send(kafka, name, drawn())
    return source_of(name, kafka.bootstrap_servers)


def windowed(rows: Stream) -> Stream:
    return rows.group_by("case", "key").tumbling("10s", delay="5s", max_ahead=None).agg(n=count())


def readings(rows: Stream) -> Stream:
    """Each row a reading of its own time."""
    own = rows.with_columns(read_at=pl.from_epoch("at", time_unit="us")).group_by("key", "read_at")
    return own.tumbling("10s", delay="5s", max_ahead=None).agg(n=count())


def by_consumer(stream: Stream, alerting: rules.Alerting, to: Collected, partitions: int) -> list[str]:
    summary = run(stream, RunOptions(until="latest", sinks=[alerting], table_partitions=partitions))
    assert summary.account.counted == sum(map(len, drawn()))
    return said(to)


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.parametrize("which", RULES)
def test_several_partitions_of_the_table_give_the_alerts_of_one(which: str, topic: Stream) -> None:
    chosen = RULES[which]
    stream = windowed(topic)
    one, several = (Collected() for _ in range(2))
    wanted = by_consumer(stream, rules.Alerting(chosen, [one]), one, 1)
    assert by_consumer(stream, rules.Alerting(chosen, [several]), several, 4) == wanted
    for rule in chosen:
        assert any(rule.name in alert for alert in wanted), rule.name


@pytest.mark.kafka
def test_readings_of_a_key_are_in_one_partition(topic: Stream) -> None:
    chosen = [rules.Absence("gone", longer="30s"), rules.Threshold("alone", value="n", at_least=1)]
    stream = readings(topic)
    one, several = (Collected() for _ in range(2))
    wanted = by_consumer(stream, rules.Alerting(chosen, [one], at="read_at"), one, 1)
    assert by_consumer(stream, rules.Alerting(chosen, [several], at="read_at"), several, 4) == wanted
    assert len(wanted) > 10


@pytest.mark.kafka
def test_other_rules_do_not_cut_groups_in_two(topic: Stream) -> None:
    """Groups would be spread otherwise: what one partition of the table knows of them, another doesn't."""
    group, stream, out = f"g{uuid.uuid4().hex[:8]}", windowed(topic), Collected()

    def options(which: str) -> RunOptions:
        sinks = [rules.Alerting(RULES[which], [out])]
        return RunOptions(until="latest", group_id=group, table_partitions=4, sinks=sinks)

    run(stream, options("of each group"))
    with pytest.raises(DeltaError, match=r"by all keys, but the rules of this run need 'key'.*new group_id"):
        run(stream, options("of some keys"))
