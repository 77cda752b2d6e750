"""What a run reports of itself while it goes on: metrics, health, lag and who has its partitions."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import httpx
import polars as pl
import pytest
from confluent_kafka import IsolationLevel
from confluent_kafka.admin import AdminClient
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families as parsed

from streamgauge.operators.consumer.log.merger_state import LogState
from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.run import Run
from streamgauge.operators.consumer.run_plan import Plan
from streamgauge.operators.consumer.runner import start
from streamgauge.operators.consumer.supervision.run_monitor import PartitionOwners, RunMonitor
from streamgauge.operators.definition.aggregates import count
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json.decoder import json
from streamgauge.operators.kafka.topics import TopicError
from streamgauge.operators.sketching.account import Account
from streamgauge.operators.watching.figures import WorkFigures
from streamgauge.operators.watching.health import Health, health_of

from ....faulty_proxy import FaultyProxy, ProxiedKafka, Request
from ....waiting import until


@pytest.fixture
def proxy(kafka: ProxiedKafka) -> Iterator[FaultyProxy]:
    yield kafka.proxy
    kafka.proxy.mend()
    kafka.proxy.injected.clear()


def get(run: Run, page: str) -> httpx.Response:
    return httpx.get(f"http://{run.metrics_address}/{page}", trust_env=False, timeout=120)


def scrape(run: Run) -> dict[str, float]:
    """The metrics of a run by name and, if there are more, labels."""
    by_key = {}
    for family in parsed(get(run, "metrics").text):
        for sample in family.samples:
            others = [
                sample.labels[name] for name in ("outcome", "topic", "partition") if name in sample.labels
            ]
            by_key["/".join([sample.name.removeprefix("streamgauge_"), *others])] = sample.value
    return by_key


@pytest.mark.slow
@pytest.mark.kafka
def test_metrics_and_health_over_http_while_connections_fail(kafka, proxy: FaultyProxy, posts) -> None:
    topic, registry = posts(2, servers=kafka.proxied), CollectorRegistry()
    options = RunOptions(group_id=topic.topic, metrics=0, registry=registry, checkpoint_seconds=0.1)
    running = start(topic.stream, options)
    topic.send(2_000)
    seen = []
    for fault in (None, Request.PRODUCE, Request.END_TRANSACTION, None):
        if fault is None:
            proxy.reset()
        else:
            proxy.lose_answer(fault)
        topic.send(1_000)
        while not seen or seen[-1]["messages_read_total"] < sum(map(len, topic.sent)):
            seen.append(scrape(running))
    assert proxy.waiting() == 0
    assert {messages["messages_unaccounted"] for messages in seen} == {0}
    by_key: dict[str, float] = {}

    def is_healthy() -> bool:
        """All at the same moment: a member that is missed for a while has nothing."""
        by_key.update(scrape(running))
        present = all(
            by_key.get(name, 0) > 0 for name in ("open_windows", "open_groups", "replayed_messages")
        )
        return (
            by_key["ready"] == 1
            and by_key.get("lag_messages") == 0
            and by_key["assigned_partitions"] == 2
            and present
        )

    until(is_healthy)
    account = topic.one_pass()[1]
    outcomes = {name: by_key[f"messages_total/{name}"] for name in account.to_dict() if name != "read"}
    assert outcomes == {name: n for name, n in account.to_dict().items() if name != "read"}
    assert by_key["messages_read_total"] == account.read == 6_000
    for partition in "01":
        assert by_key[f"partition_lag_messages/{topic.topic}/{partition}"] == 0
        assert by_key[f"partition_watermark_timestamp_seconds/{topic.topic}/{partition}"] > 0
    assert by_key["checkpoint_duration_seconds_count"] > 1 and by_key["delta_size_bytes_sum"] > 1_000
    assert by_key["rebalances_total"] >= 1 and by_key["open_groups"] >= by_key["open_windows"]
    assert by_key["state_bytes"] > 100 and by_key["closed_windows_total"] > 0
    assert by_key["healthy"] == 1 and by_key["join_rows_held_up"] == 0
    until(lambda: registry.get_sample_value("streamgauge_ready", {"group": topic.topic}) == 1)
    until(lambda: get(running, "health").json() == {"healthy": True, "ready": True, "why": ""})
    address = running.metrics_address
    running.stop()
    running.wait(120)
    assert running.metrics_address is None
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"http://{address}/health", trust_env=False)
    assert registry.get_sample_value("streamgauge_ready", {"group": topic.topic}) is None


@pytest.mark.slow
@pytest.mark.kafka
def test_the_figures_and_logs_of_worker_processes_come_together(posts, caplog) -> None:
    topic = posts(4)
    topic.send(2_000)
    # However long it takes until the killed worker's partitions are read again, none is idle: no row is late.
    options = RunOptions(workers=2, group_id=topic.topic, checkpoint_seconds=0.1, idle_seconds=600.0)
    running = start(topic.stream, options)
    until(lambda: running.figures().account.read == 2_000)
    until(lambda: len(running.figures().work.assigned) == 4 and running.health().ready)
    until(lambda: sum(running.figures().work.deltas.counts) >= 4)
    before = running.figures().work
    assert sum(before.checkpoints.counts) > 0
    os.kill(running.worker_pids[0], signal.SIGKILL)
    topic.send(2_000)
    until(lambda: running.figures().account.read == 4_000)
    until(lambda: len(running.figures().work.assigned) == 4)
    after = running.figures()
    assert all(map(int.__le__, before.checkpoints.counts, after.work.checkpoints.counts))
    assert after.work.rebalances > before.rebalances and after.unaccounted == 0
    [ended] = [record for record in caplog.records if "a worker process ended" in record.getMessage()]
    assert (ended.group, ended.topic) == (topic.topic, topic.topic) and ended.run
    running.stop()
    assert running.wait(120).account == topic.one_pass()[1]


@pytest.mark.kafka
def test_a_run_that_failed_says_so_until_its_error_is_taken(kafka, posts) -> None:
    topic = posts(1)
    running = start(topic.stream, RunOptions(metrics=0))
    until(lambda: get(running, "ready").status_code == 200)
    client = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    client.delete_topics([topic.topic])[topic.topic].result(120)
    until(lambda: not running.running)
    failed = get(running, "health")
    assert failed.status_code == 503 and "was deleted" in failed.json()["why"]
    with pytest.raises(TopicError, match="was deleted"):
        running.wait(120)
    assert running.metrics_address is None and not running.health().healthy


def posts_stream() -> Stream:
    source = Stream.from_kafka("posts", value=json({"n": pl.Int64}), bootstrap_servers="nowhere:1")
    return source.tumbling("1m").agg(posts=count())


class Brokers:
    """What brokers say of offsets and groups, at once."""

    def __init__(self) -> None:
        self.end = self.behind_transaction = 0

    def list_offsets(
        self, requested: dict[Any, Any], isolation_level: IsolationLevel, **_: Any
    ) -> dict[Any, Future[Any]]:
        committed = isolation_level is IsolationLevel.READ_COMMITTED

        class Offset:
            offset = self.end + (0 if committed else self.behind_transaction)

        answers = {place: Future() for place in requested}
        for answer in answers.values():
            answer.set_result(Offset)
        return answers


class Merging:
    """A merger that has counted so many messages of the one partition."""

    caught_up, emitted_windows, replayed = True, 0, 0

    def __init__(self) -> None:
        self.state = LogState(account=Account())

    def states(self) -> list[Any]:
        return [self.state]

    def window_counts(self) -> tuple[int, int]:
        return 0, 0

    def state_bytes(self) -> int:
        return 0


def test_what_waits_and_does_not_move_is_distinguished_from_silence() -> None:
    brokers, merging, now = Brokers(), Merging(), [0.0]
    work = WorkFigures(assigned=frozenset({("posts", 0)}))
    plan = Plan(posts_stream(), "g", "table", {"posts": 1}, starts={("posts", 0): 0})
    lookout = RunMonitor(plan, brokers, merging, lambda: work, clock=lambda: now[0])

    def stalled(seconds: float) -> float:
        for _ in range(2):  # one to ask, one to take the answer in
            now[0] += seconds / 2
            lookout.poll(plan.inputs)
        return lookout.figures().stalled_seconds

    assert lookout.figures().lag is None
    assert stalled(10_000) == 0 and lookout.figures().lag == 0
    brokers.end = 5
    assert stalled(10) < 10 and lookout.figures().lag == 5
    assert 100 <= stalled(100) < 110
    merging.state.account = Account(read=3, counted=3)
    assert stalled(8) < 8 and lookout.figures().lag == 5
    brokers.end = 0
    assert stalled(1_000) == 0 and lookout.figures().owned


def test_an_open_transaction_is_no_silence_and_is_named_once_it_hangs() -> None:
    brokers, merging, now = Brokers(), Merging(), [0.0]
    work = WorkFigures(assigned=frozenset({("posts", 0)}))
    plan = Plan(posts_stream(), "g", "table", {"posts": 1}, starts={("posts", 0): 0})
    monitor = RunMonitor(plan, brokers, merging, lambda: work, clock=lambda: now[0])

    def health(seconds: float) -> Health:
        for _ in range(2):
            now[0] += seconds / 2
            monitor.poll(plan.inputs)
        return health_of(monitor.figures())

    brokers.behind_transaction = 9
    assert health(10) == Health(True, True) and monitor.figures().lag == 9
    assert monitor.figures().inputs["posts", 0].held_back == 9
    health(40)
    hanging = health(40)
    assert not hanging.healthy and "9 messages wait, and none was counted" in hanging.why
    assert "a transaction on posts[0], open for 8" in hanging.why and "groups show g" in hanging.why
    # Other partitions go on: the run does its work, and says all the same what holds this one back.
    merging.state.account = Account(read=3, counted=3)
    going = health(2)
    assert going.healthy and going.ready and "holds back 9 messages" in going.why
    brokers.end, brokers.behind_transaction = 9, 3  # the next transaction is another one
    assert health(10).why == "" and monitor.figures().lag == 12


class Members:
    """Brokers that say which partitions the members of a group have, each time they are asked."""

    def __init__(self) -> None:
        self.members: list[list[int]] = []
        self.requests = 0

    def describe_consumer_groups(self, groups: list[str], **_: Any) -> dict[str, Future[Any]]:
        self.requests += 1
        answer: Future[Any] = Future()
        places = [[SimpleNamespace(topic="posts", partition=p) for p in own] for own in self.members]
        members = [SimpleNamespace(assignment=SimpleNamespace(topic_partitions=own)) for own in places]
        answer.set_result(SimpleNamespace(members=members))
        return {groups[0]: answer}


def test_a_partition_is_owned_by_this_run_or_by_another_of_its_group() -> None:
    plan, brokers, now = Plan(posts_stream(), "g", "table", {"posts": 3}), Members(), [0.0]
    owners = PartitionOwners(plan, brokers, lambda: now[0])

    def owned(*own: int) -> bool:
        for _ in range(2):
            now[0] += 10
            owners.poll(plan.inputs, {("posts", p) for p in own})
        return owners.all_owned

    assert owned(0, 1, 2) and brokers.requests == 0
    assert not owned(0, 1)
    brokers.members = [[0, 1], [2]]
    assert owned(0, 1)
    brokers.members = [[0], [1]]
    assert not owned()
