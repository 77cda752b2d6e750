"""A worker that is paused past its session, and comes back, counts nothing: on a real broker."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import run, start

from ....waiting import until
from ..runs import Windows

pytestmark = [pytest.mark.kafka, pytest.mark.soak]


@pytest.mark.parametrize("delivery", ["effectively_once", "exactly_once"])
def test_a_paused_worker_that_comes_back_counts_nothing_twice(posts, same, delivery: str) -> None:
    topic, windows = posts(2), Windows()
    options: dict[str, Any] = {"group_id": topic.topic, "delivery": delivery, "checkpoint_seconds": 0.1}
    running = start(topic.stream, RunOptions(workers=2, on_window=windows, **options))
    sent = 0
    for number in (0, 1, 0):
        topic.send(2_000)
        sent += 2_000
        until(lambda sent=sent: running.summary().account.read == sent)
        paused = running.worker_pids[number]
        topic.send(2_000)  # it may have read some
        sent += 2_000
        os.kill(paused, signal.SIGSTOP)
        try:
            until(lambda sent=sent: running.summary().account.read == sent)  # by the other, after its session
        finally:
            os.kill(paused, signal.SIGCONT)
    topic.send(2_000)
    sent += 2_000
    until(lambda: running.summary().account.read == sent)
    summary = running.drain(120)
    assert (summary.account, summary.overlaps) == (topic.one_pass()[1], 0)
    run(topic.stream, RunOptions(until="latest", on_window=windows, **options))
    same(windows.table(), topic.one_pass()[0])
