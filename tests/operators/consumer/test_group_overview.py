"""What is seen of a group from outside is what its mergers know, and open transactions don't hide."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer

from streamgauge.apps.cli.commands import main
from streamgauge.operators.consumer.group_overview import describe_group, held_by, list_groups
from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import run, start
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.watermarks.global_watermark import Mark
from streamgauge.operators.watermarks.partition_watermark import PartitionTime
from streamgauge.operators.watermarks.position import Input, Position

from ...waiting import until


def test_the_slowest_partition_that_is_awake_holds_the_watermark() -> None:
    marks = {Input("posts", n): Mark(Position(1, PartitionTime(at))) for n, at in enumerate((70, 50, 60))}
    assert held_by(marks, list(marks), 5) == "posts[1]"
    assert held_by(marks, [*marks, Input("posts", 3)], 5).startswith("posts[3], from which no message")


@pytest.fixture
def hanging(kafka: Any, posts: Any) -> Iterator[Any]:
    """A topic with a transaction that its producer leaves open."""
    topic = posts(2)
    producer = Producer(
        {"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": f"t-{uuid.uuid4()}"}
    )
    producer.init_transactions(120)

    def begin() -> None:
        producer.begin_transaction()
        for _ in range(7):
            producer.produce(topic.topic, b"{}", partition=1)
        assert producer.flush(120) == 0

    topic.begin_transaction = begin
    yield topic
    producer.abort_transaction(120)


@pytest.mark.slow
@pytest.mark.kafka
def test_a_group_is_shown_while_it_runs_and_afterwards(kafka: Any, hanging: Any) -> None:
    topic, config = hanging, {"bootstrap.servers": kafka.bootstrap_servers}
    topic.send(3_000)
    running = start(topic.stream, RunOptions(group_id=topic.topic, table_partitions=2))
    until(lambda: running.summary().account.read == 3_000 and running.health().ready)
    topic.begin_transaction()
    shown = describe_group(config, topic.topic)
    [member], [stream] = shown.members, shown.streams
    assert shown.state == "stable" and member.partitions == (f"{topic.topic}[0]", f"{topic.topic}[1]")
    assert [(one.partition, one.offset, one.lag, one.held_back) for one in shown.partitions] == [
        (0, 1_500, 0, 0),
        (1, 1_500, 7, 7),
    ]
    [warning] = shown.warnings
    assert (
        f"a transaction on {topic.topic}[1] has been open for" in warning and "--start-offset 1500" in warning
    )
    # As the merger of the run sees it.
    figures = running.figures()
    assert stream.account == figures.account == topic.one_pass()[1]
    assert (stream.open_windows, stream.open_groups) == (figures.open_windows, figures.open_groups)
    assert stream.watermark_us == figures.watermark_us and stream.state_bytes > 0
    until(lambda: running.figures().lag == 7)
    running.stop()
    running.wait(120)

    [listed] = [one for one in list_groups(config) if one.group == topic.topic]
    assert (listed.state, listed.members, listed.topics, listed.lag) == ("empty", 0, (topic.topic,), 7)
    shown = describe_group(config, topic.topic)
    assert not shown.members and shown.streams[0].account == stream.account
    with pytest.raises(ValueError, match=r"there is no group .*groups list"):
        describe_group(config, f"{topic.topic}x")


@pytest.mark.slow
@pytest.mark.kafka
def test_the_command_line_shows_the_same(kafka: Any, posts: Any, monkeypatch: Any, capsys: Any) -> None:
    topic = posts(1)
    topic.send(500)
    run(topic.stream, RunOptions(group_id=topic.topic, until="latest"))

    def said(*arguments: str) -> str:
        servers = ("--bootstrap-servers", kafka.bootstrap_servers)
        monkeypatch.setattr("sys.argv", ["streamgauge", "kafka", "groups", *arguments, *servers])
        monkeypatch.setenv("COLUMNS", "160")
        with pytest.raises(SystemExit):
            main()
            raise SystemExit(0)
        return str(capsys.readouterr().out)

    listed = [json.loads(line) for line in said("list", "--json").splitlines()]
    assert topic.topic in {one["group"] for one in listed} and topic.topic in said("list")
    shown = json.loads(said("show", topic.topic, "--json"))
    assert shown["partitions"][0] | {"end": 500, "lag": 0, "offset": 500} == shown["partitions"][0]
    text = said("show", topic.topic)
    assert f"{topic.topic}: empty, 0 members" in text and "500 read" in text and "open window" in text
    topic.send(100)
    skipped = json.loads(
        said("skip", topic.topic, "--topic", topic.topic, "--partition", "0", "--offset", "550", "--json")
    )
    assert skipped == [{"topic": topic.topic, "partition": 0, "offset": 550}]
    assert run(topic.stream, RunOptions(group_id=topic.topic, until="latest")).account.skipped == 50
    assert said("reset", topic.topic, "--offset", "earliest") == f"{topic.topic}[0]: 0\n"


@pytest.mark.kafka
def test_a_stream_that_sends_its_rows_on_has_no_windows_to_show(kafka: Any, posts: Any) -> None:
    topic = posts(2)
    topic.send(400)
    rows = Stream(topic.stream.source, topic.stream.time).rows_to_kafka(f"{topic.topic}-copied")
    summary = run(rows, RunOptions(group_id=topic.topic, until="latest"))
    [stream] = describe_group({"bootstrap.servers": kafka.bootstrap_servers}, topic.topic).streams
    assert stream.account == summary.account and summary.account.read == 400
    assert (stream.open_windows, stream.watermark_us, stream.held_by) == (0, None, "")
