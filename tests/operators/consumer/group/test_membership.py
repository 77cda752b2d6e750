"""Members of a group share the partitions, hand them over, and go on where the last one ended."""

from __future__ import annotations

import pytest

from streamgauge.apps.dev.kafka.broker import EmbeddedKafka
from streamgauge.operators.consumer.group.membership import Membership
from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import run, start
from streamgauge.operators.watermarks.position import Input

from ....waiting import until
from ..runs import DELIVERIES, Windows, run_and_ask

pytestmark = pytest.mark.kafka


def test_a_poll_comes_back_with_what_the_group_gives(kafka: EmbeddedKafka, posts) -> None:
    topic = posts(4)
    config = {"bootstrap.servers": kafka.bootstrap_servers}
    member = Membership(config, topic.topic, [topic.topic], {}, lambda _: None, lambda _: None)
    member.join()
    while not member.rebalances:
        member.poll(600.0)
    assert member.assigned == {Input(topic.topic, number) for number in range(4)}
    member.close()


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_a_later_run_of_the_group_goes_on_where_the_last_ended(posts, same, delivery: str) -> None:
    topic, windows = posts(), Windows()
    options = {"delivery": delivery, "until": "latest", "group_id": topic.topic, "on_window": windows}
    for n in (4_000, 0, 500, 4_500):
        topic.send(n)
        summary = run_and_ask(topic.stream, RunOptions(**options))
        assert summary.account == topic.one_pass()[1]
    same(windows.table(), topic.one_pass()[0])
    assert summary.duplicates == 0


def test_two_runs_share_a_group_and_hand_over(posts, same) -> None:
    topic, windows = posts(4), Windows()
    options = {"group_id": topic.topic, "on_window": windows, "checkpoint_seconds": 0.1}
    one = start(topic.stream, RunOptions(**options))
    topic.send(2_000)
    until(lambda: one.summary().account.read > 0)
    two = start(topic.stream, RunOptions(**options))
    until(lambda: two.assigned == 2)
    topic.send(2_000)
    until(lambda: one.summary().account.read + two.summary().account.read >= 4_000)
    one.stop()
    one.wait(120)
    topic.send(2_000)
    until(lambda: two.summary().account.read == 6_000)
    two.stop()
    assert two.wait(120).account == topic.one_pass()[1]
    run(topic.stream, RunOptions(until="latest", **options))
    same(windows.table(), topic.one_pass()[0])


@pytest.mark.soak
@pytest.mark.parametrize("delivery", [*DELIVERIES, "effectively_once", "at_most_once"])
def test_hundreds_of_input_partitions(posts, same, delivery: str) -> None:
    topic, windows = posts(320), Windows()
    options = {"delivery": delivery, "until": "latest", "group_id": topic.topic, "on_window": windows}
    for n in (8_000, 4_000):
        topic.send(n)
        summary = run_and_ask(topic.stream, RunOptions(**options))
        assert (summary.account, summary.duplicates, summary.lag) == (topic.one_pass()[1], 0, 0)
    same(windows.table(), topic.one_pass()[0])
