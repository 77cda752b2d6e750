"""A process that merges nothing still knows its run."""

from __future__ import annotations

import pytest

from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import start

from ....waiting import until
from ..runs import run_and_ask

pytestmark = pytest.mark.kafka


@pytest.mark.slow
def test_a_process_that_merges_nothing_knows_the_account_and_ends(posts) -> None:
    topic = posts(2)
    options = {"group_id": topic.topic, "checkpoint_seconds": 0.1}
    runs = [start(topic.stream, RunOptions(**options)) for _ in range(2)]
    topic.send(1_000)
    # One table partition, three processes.
    until(lambda: all(one.summary().account.read == 1_000 and one.summary().lag == 0 for one in runs))
    bounded = run_and_ask(topic.stream, RunOptions(until="latest", **options))
    assert (bounded.account, bounded.lag) == (topic.one_pass()[1], 0)
    for one in runs:
        one.stop()
        assert one.wait(120).account == topic.one_pass()[1]
