"""A run that takes on workers and lets them go while it reads counts each message once."""

from __future__ import annotations

from threading import Event
from typing import Any

import polars as pl
import pytest

from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.run_plan import Plan, Plans
from streamgauge.operators.consumer.runner import run, start
from streamgauge.operators.consumer.worker import workers
from streamgauge.operators.definition.aggregates import count
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json.decoder import json
from streamgauge.operators.watching.figures import WorkFigures

from ....waiting import until
from ..runs import Windows

pytestmark = pytest.mark.kafka


@pytest.mark.slow
@pytest.mark.parametrize("most", [2, pytest.param(8, marks=pytest.mark.soak)])
def test_more_workers_and_fewer_while_it_reads(posts, same, most: int) -> None:
    topic, windows = posts(8), Windows()
    topic.config["partition.assignment.strategy"] = "cooperative-sticky"
    options: dict[str, Any] = {"group_id": topic.topic, "on_window": windows, "checkpoint_seconds": 0.1}
    running = start(topic.stream, RunOptions(**options))
    sent = 0
    for many in (1, most, 1):
        running.scale(many)
        assert len(running.worker_pids) == many - 1
        until(lambda many=many: running.assigned == 8 // many)
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


def test_who_takes_a_dead_worker_s_place_has_its_transactional_id(monkeypatch) -> None:
    class Process:
        """A worker process that is not there."""

        figures = WorkFigures()
        exit_text = "killed by signal 9"

        def __init__(self, plans: Plans, *_: Any) -> None:
            self.transactional_id, self.ended = plans.first.transactional_id, False
            made.append(self)

        def error(self) -> None: ...
        def stop(self) -> None: ...
        def join(self, seconds: float) -> None: ...

    made: list[Process] = []
    monkeypatch.setattr(workers, "WorkerProcess", Process)
    monkeypatch.setattr(workers, "prepare_workers", lambda streams: None)
    stream = Stream.from_kafka("posts", value=json({"n": pl.Int64})).tumbling("1m").agg(posts=count())
    options = RunOptions(group_id="mine", workers=2)
    of = workers.Workers(Plans.of([Plan(stream, "mine", "t", {"posts": 2}, options=options)]), Event())
    made[1].ended = True
    assert of.replace_dead() is None
    of.scale(1)  # the last leaves, and may still deliver
    of.scale(2)
    first, leaving, replacement, fresh = (process.transactional_id for process in made)
    assert leaving == replacement
    assert len({first, leaving, fresh}) == 3


def test_less_than_one_worker_is_refused(posts) -> None:
    running = start(posts(1).stream, RunOptions())
    try:
        with pytest.raises(ValueError, match="workers must be an integer ≥ 1, got 0"):
            running.scale(0)
    finally:
        running.stop()
        running.wait(120)
