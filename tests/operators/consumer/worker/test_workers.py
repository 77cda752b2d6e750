"""A run that takes on workers and lets them go while it reads counts each message once."""

from __future__ import annotations

from typing import Any

import pytest

from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import run, start

from ....waiting import until
from ..runs import Windows

pytestmark = pytest.mark.kafka


@pytest.mark.parametrize("most", [2, pytest.param(8, marks=pytest.mark.soak)])
def test_more_workers_and_fewer_while_it_reads(posts, same, most: int) -> None:
    topic, windows = posts(8), Windows()
    topic.config["partition.assignment.strategy"] = "cooperative-sticky"
    options: dict[str, Any] = {"group_id": topic.topic, "on_window": windows, "checkpoint_seconds": 0.1}
    running = start(topic.stream, RunOptions(**options))
    sent = 0
    for workers in (1, most, 1):
        running.scale(workers)
        assert len(running.worker_pids) == workers - 1
        until(lambda workers=workers: running.assigned == 8 // workers)
        topic.send(1_000)
        sent += 1_000
        until(lambda sent=sent: running.summary().account.read == sent)
    summary = running.drain(120)
    assert (summary.account, summary.duplicates, summary.overlaps) == (topic.one_pass()[1], 0, 0)
    reported = dict(windows.tables)
    # What could be closed was: the next run, with nothing new to read, hands over the windows left open.
    run(topic.stream, RunOptions(until="latest", **options))
    assert [start for start in windows.tables if start in reported] == list(reported)
    same(windows.table(), topic.one_pass()[0])
    with pytest.raises(RuntimeError, match="has ended"):
        running.scale(2)


def test_less_than_one_worker_is_refused(posts) -> None:
    running = start(posts(1).stream, RunOptions())
    try:
        with pytest.raises(ValueError, match="workers must be an integer ≥ 1, got 0"):
            running.scale(0)
    finally:
        running.stop()
        running.wait(120)
