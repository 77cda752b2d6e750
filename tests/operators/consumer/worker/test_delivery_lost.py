"""Runs count every message once, whatever requests and answers are lost between them and the broker."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.run import Run
from streamgauge.operators.consumer.runner import run, start

from ....faulty_proxy import FaultyProxy, ProxiedKafka, Request
from ....waiting import until
from ...conftest import Posts
from ..runs import Windows

pytestmark = pytest.mark.kafka


@pytest.fixture
def proxy(kafka: ProxiedKafka) -> Iterator[FaultyProxy]:
    yield kafka.proxy
    kafka.proxy.mend()
    kafka.proxy.injected.clear()


def counts_more(running: Run, topic: Posts) -> None:
    """Send more, and wait until all that was sent is counted."""
    topic.send(500)
    sent = sum(map(len, topic.sent))
    until(lambda: running.summary().account.read >= sent)


LOST = {
    "exactly_once": {
        "answer": [Request.PRODUCE, Request.COMMIT_IN_TRANSACTION, Request.END_TRANSACTION],
        "request": [Request.ADD_OFFSETS, Request.END_TRANSACTION],
    },
    "at_least_once": {"answer": [Request.PRODUCE, Request.COMMIT_OFFSETS], "request": [Request.PRODUCE]},
}


@pytest.mark.slow
@pytest.mark.parametrize("delivery", ["exactly_once", pytest.param("at_least_once", marks=pytest.mark.soak)])
def test_what_is_lost_on_the_way_is_counted_once(
    kafka: ProxiedKafka, proxy: FaultyProxy, posts, same, delivery: str
) -> None:
    topic, windows = posts(2, servers=kafka.proxied), Windows()
    options = RunOptions(delivery=delivery, group_id=topic.topic, on_window=windows, checkpoint_seconds=0.1)
    running = start(topic.stream, options)
    counts_more(running, topic)
    proxy.delay = 0.02
    for kind in LOST[delivery]["answer"]:
        proxy.lose_answer(kind)
        counts_more(running, topic)
    proxy.delay = 0.0
    for kind in LOST[delivery]["request"]:
        proxy.lose_request(kind)
        counts_more(running, topic)
    assert proxy.reset() > 0
    counts_more(running, topic)
    until(lambda: running.summary().lag == 0)  # and not unknown, as it is while no broker answers
    running.stop()
    summary = running.wait(120)
    again = run(topic.stream, replace(options, until="latest"))  # brings the windows that were open
    table, account = topic.one_pass()
    same(windows.table(), table)
    assert proxy.waiting() == 0 and proxy.injected["delayed"] > 0
    assert (summary.account, summary.overlaps) == (again.account, 0) == (account, 0)
