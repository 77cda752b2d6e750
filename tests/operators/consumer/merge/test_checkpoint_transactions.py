"""Closed windows on topics, once each as committed messages show them, wherever the merging process dies."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from streamgauge import AnswersToKafka, SketchesToKafka
from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import run, start
from streamgauge.operators.kafka import produce
from streamgauge.operators.sinks.sink import SinkError
from streamgauge.operators.sinks.sketches_to_kafka import windows_topic
from streamgauge.operators.table.schema import from_ipc
from streamgauge.operators.table.sketch_table import merge

from ....waiting import readable

pytestmark = pytest.mark.kafka


def committed(kafka: Any, topic: str) -> list[Any]:
    """The messages of a topic that readers of committed ones see."""
    readable(kafka.bootstrap_servers, topic)
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": "look",
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )
    collected: list[Any] = []
    try:
        partitions = consumer.list_topics(topic, timeout=120).topics[topic].partitions
        consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
        ended: set[int] = set()
        while len(ended) < len(partitions):
            message = consumer.poll(120)
            assert message is not None
            if message.error() is None:
                collected.append(message)
            else:
                assert message.error().code() == KafkaError._PARTITION_EOF
                ended.add(message.partition())
        return collected
    finally:
        consumer.close()


def emitted_windows(kafka: Any, topic: str) -> Counter[tuple[str, int]]:
    """The final windows' starts and counts on a topic of answers, and how often each is there."""
    values = [json.loads(m.value()) for m in committed(kafka, topic) if dict(m.headers())["final"] == b"1"]
    return Counter((value["window_start"], value["posts"]) for value in values)


def once(table: Any, until: datetime | None = None) -> Counter[tuple[str, int]]:
    starts = table.column("window_start").to_pylist()
    return Counter(
        (start.isoformat(), posts)
        for start, posts in zip(starts, table.column("posts").to_pylist(), strict=True)
    )


def _die(point: str, after: int) -> None:
    """Have this process killed at a point of its transactions, before the so-manieth one."""
    left = [after]

    def dying(call: Callable[..., Any]) -> Callable[..., Any]:
        def made(self: Any, *given: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                self.flush(10)
                os.kill(os.getpid(), signal.SIGKILL)
            return call(self, *given)

        return made

    class Mortal(Producer):
        pass

    setattr(Mortal, point, dying(getattr(Producer, point)))
    produce.Producer = Mortal


def _merging(stream: Any, options: dict[str, Any], point: str, after: int) -> None:
    _die(point, after)
    start(stream, RunOptions(**options)).wait()


@pytest.mark.parametrize(
    "point",
    [
        pytest.param("commit_transaction", marks=pytest.mark.slow),
        pytest.param("send_offsets_to_transaction", marks=pytest.mark.soak),
        pytest.param("begin_transaction", marks=pytest.mark.soak),
    ],
)
def test_kill_9_of_the_merging_process_around_its_commit(kafka, posts, same, point: str) -> None:
    topic = posts(2)
    answers = f"{topic.topic}.answers"
    options = {
        "group_id": topic.topic,
        "checkpoint_seconds": 0.1,
        "sinks": [AnswersToKafka(answers), SketchesToKafka()],
    }
    topic.send(6_000)
    process = multiprocessing.get_context("spawn").Process(
        target=_merging, args=(topic.stream, options, point, 1), daemon=True
    )
    process.start()
    process.join(240)
    assert process.exitcode == -signal.SIGKILL
    topic.send(3_000)
    summary = run(topic.stream, RunOptions(until="latest", **options))
    whole, account = topic.one_pass()
    assert summary.account == account
    windows = once(whole)
    result = emitted_windows(kafka, answers)
    assert set(result.values()) == {1} and result <= windows and len(windows) - len(result) <= 2
    name = windows_topic(topic.topic, topic.stream.fingerprint())
    tables = {dict(m.headers())["start"]: from_ipc(m.value()) for m in committed(kafka, name)}
    same(merge(tables.values()), whole)


def test_a_message_that_the_sink_s_topic_refuses_names_sink_and_window(kafka, posts) -> None:
    topic = posts(1)
    answers = f"{topic.topic}.answers"
    kafka.create_topic(answers, partitions=1)
    from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

    client = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})

    def limit(size: int) -> None:
        entry = ConfigEntry("max.message.bytes", str(size), incremental_operation=AlterConfigOpType.SET)
        wanted = ConfigResource("topic", answers, incremental_configs=[entry])
        client.incremental_alter_configs([wanted])[wanted].result(120)

    limit(120)
    topic.send(3_000)
    options = {"group_id": topic.topic, "until": "latest", "sinks": [AnswersToKafka(answers)]}
    with pytest.raises(SinkError, match=r"AnswersToKafka\(to='.*: the window 2025-.*max\.message\.bytes"):
        run(topic.stream, RunOptions(**options))
    assert committed(kafka, answers) == []
    limit(1_000_000)
    run(topic.stream, RunOptions(**options))
    whole = once(topic.one_pass()[0])
    values = [json.loads(m.value()) for m in committed(kafka, answers)]
    assert Counter((value["window_start"], value["posts"]) for value in values) == whole
