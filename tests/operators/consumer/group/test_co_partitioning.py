"""Both sides of a join stay together, or the run says why it can't keep them so."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from streamgauge.operators.consumer.group.co_partitioning import (
    check_alike,
    check_joined,
    check_joins,
    check_partners,
    partners_of,
)
from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.run_plan import Plan, Plans
from streamgauge.operators.consumer.runner import start
from streamgauge.operators.definition.aggregates import count
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json.decoder import json
from streamgauge.operators.kafka.topics import TopicError
from streamgauge.operators.watermarks.position import Input


def stream(topics: tuple[str, str] = ("ads", "clicks"), **config: Any) -> Stream:
    left, right = (Stream.from_kafka(topic, value=json({"id": pl.Int64}), config=config) for topic in topics)
    return left.join(right, on="id", within="1m").tumbling("1m").agg(n=count())


@pytest.mark.parametrize("delivery", ["at_most_once", "at_least_once", "effectively_once"])
def test_only_one_transaction_for_both_will_do(delivery: Any) -> None:
    with pytest.raises(ValueError, match='only "exactly_once" commits both together'):
        start(stream(), RunOptions(delivery=delivery))


@pytest.mark.parametrize(
    "config",
    [
        {"group.protocol": "consumer"},
        {"partition.assignment.strategy": "cooperative-sticky"},
        {"partition.assignment.strategy": "roundrobin"},
    ],
)
def test_only_ranges_will_do(config: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=f'config has "{next(iter(config))}"'):
        start(stream(**config), RunOptions())


def test_ranges_are_asked_for_in_joins_alone() -> None:
    joined, requested = stream(), {"partition.assignment.strategy": "range"}
    check_joined(stream(**requested), "exactly_once", requested)
    assert requested.items() <= Plan(joined, "g", "t", {}).config.items()
    plain = Stream.from_kafka("ads", value=json({"id": pl.Int64})).tumbling("1m").agg(n=count())
    assert not requested.keys() & Plan(plain, "g", "t", {}).config.keys()
    plans = [Plan(plain, "g", "t", {}, name="plain"), Plan(joined, "g", "t", {}, name="joined")]
    assert requested.items() <= Plans.of(plans).config.items()
    assert not requested.keys() & Plans.of(plans[:1]).config.keys()
    check_joined(plain, "at_least_once", {"group.protocol": "consumer"})
    check_alike(plain, {"ads": 2})
    check_partners(plain, [Input("ads", 0)], [])


def test_both_topics_have_equally_many_partitions() -> None:
    check_alike(stream(), {"ads": 2, "clicks": 2})
    with pytest.raises(TopicError, match="'ads' has 3 partitions and 'clicks' has 2"):
        check_alike(stream(), {"ads": 3, "clicks": 2})


def test_a_worker_takes_partners_up_together() -> None:
    both = [Input("ads", 1), Input("clicks", 1)]
    check_partners(stream(), both, [Input("ads", 0), Input("clicks", 0)])
    for inputs, others in ((both[:1], []), (both[:1], both[1:]), (both, both[:1])):
        with pytest.raises(TopicError, match="without its partner"):
            check_partners(stream(), inputs, others)


def test_joins_that_run_together_have_both_topics_in_common_or_none() -> None:
    plain = Stream.from_kafka("ads", value=json({"id": pl.Int64})).tumbling("1m").agg(n=count())
    one, swapped, other = stream(), stream(("clicks", "ads")), stream(("sales", "shops"))
    check_joins({"one": one, "swapped": swapped, "other": other, "plain": plain})
    assert partners_of(one, Input("ads", 2)) == {Input("clicks", 2)}
    assert partners_of(plain, Input("ads", 2)) == set()
    with pytest.raises(ValueError, match="'one' and 'ring' both join 'clicks'"):
        check_joins({"plain": plain, "one": one, "ring": stream(("sales", "clicks"))})
