"""What a follower knows while its partitions are revoked, without a broker."""

from __future__ import annotations

import polars as pl
from confluent_kafka import TopicPartition

from streamgauge.operators.consumer.merge.closed_windows import ClosedWindows
from streamgauge.operators.consumer.merge.merge_worker import MergeWorker
from streamgauge.operators.consumer.merge.merger import Merger
from streamgauge.operators.consumer.run_plan import Plan
from streamgauge.operators.definition.aggregates import count
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json.decoder import json
from streamgauge.operators.sketching.account import Account
from streamgauge.operators.table.schema import schema_of


def test_what_is_known_stays_known_while_the_group_is_lost() -> None:
    stream = Stream.from_kafka(
        "posts", value=json({"user": pl.Int64}), time=None, bootstrap_servers="127.0.0.1:1"
    )
    plan = Plan(stream.tumbling("1m").agg(posts=count()), "group", "table", {"posts": 1})
    follower = MergeWorker(plan, ClosedWindows(schema_of(plan.stream), 1), lambda: True)
    follower.mergers[0] = Merger(plan.stream, plan.inputs)
    follower.mergers[0].state.account = Account(read=7, counted=7)
    follower._lost(follower._consumer, [TopicPartition("table", 0)])
    assert [state.account.read for state in follower.states()] == [7]
    follower._consumer.close()


def test_a_message_whose_partition_goes_while_more_are_fetched_is_left_to_its_next_owner() -> None:
    stream = Stream.from_kafka("posts", value=json({"user": pl.Int64}), bootstrap_servers="127.0.0.1:1")
    plan = Plan(stream.tumbling("1m").agg(posts=count()), "group", "table", {"posts": 1})
    follower = MergeWorker(plan, ClosedWindows(schema_of(plan.stream), 1), lambda: True)
    real = follower._consumer
    follower.mergers[0] = Merger(plan.stream, plan.inputs)

    class Fetched:
        def partition(self) -> int:
            return 0

    class Rebalancing:
        def poll(self, seconds: float) -> Fetched:
            return Fetched()

        def consume(self, most: int, seconds: float) -> list[Fetched]:
            follower._lost(real, [TopicPartition("table", 0)])
            return []

    follower._consumer = Rebalancing()
    assert follower._read() == []
    real.close()


def test_what_others_leave_while_it_closes_is_not_taken_up(monkeypatch) -> None:
    """Two mergers that end together hand partitions to each other; no broker answers a consumer then."""
    stream = Stream.from_kafka("posts", value=json({"user": pl.Int64}), bootstrap_servers="127.0.0.1:1")
    plan = Plan(stream.tumbling("1m").agg(posts=count()), "group", "table", {"posts": 1})
    follower = MergeWorker(plan, ClosedWindows(schema_of(plan.stream), 1), lambda: True)
    real = follower._consumer

    class Closing:
        def poll(self, seconds: float) -> None:
            return None

        def memberid(self) -> None:
            return None

        def assignment(self) -> list[TopicPartition]:
            return []

        def position(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
            return []

        def close(self) -> None:
            follower._assigned(real, [TopicPartition("table", 0)])

    monkeypatch.setattr(follower, "_consumer", Closing())
    monkeypatch.setattr(follower._checkpoints, "find", lambda *_: 1 / 0)
    follower.run()
    assert not follower.mergers
    real.close()
