"""A stop ends a run in time, whatever callbacks and brokers do, and nothing is lost or doubled by it."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import run, start
from streamgauge.operators.consumer.stop_deadline import StopDeadline

from ...waiting import until
from .runs import Windows

_SLACK = 20.0
"""A busy machine is late; what had no bound took as long as all windows, or a minute for dead brokers."""


def test_the_earliest_end_counts_and_other_limits_are_refused() -> None:
    deadline = StopDeadline(clock=lambda: 0.0)
    for seconds, left in ((None, float("inf")), (25, 25.0), (60, 25.0), (0, 0.0)):
        deadline.request(seconds)
        assert deadline.left() == left
    for wrong in (-1, float("nan"), True, "5"):
        with pytest.raises(
            ValueError, match="timeout must be a number of seconds ≥ 0, or None for no limit, got"
        ):
            deadline.request(wrong)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.kafka
def test_windows_for_which_a_stop_has_no_time_come_in_the_next_run(
    posts: Any, same: Any, caplog: Any
) -> None:
    topic, windows, entered = posts(1), Windows(), threading.Event()
    topic.send(20_000)
    calls: list[object] = []

    def slow(table: Any) -> None:
        entered.set()
        time.sleep(0.5)
        calls.append(table.column("window_start")[0].as_py())
        windows(table)

    running = start(topic.stream, RunOptions(group_id=topic.topic, on_window=slow))
    assert entered.wait(120)
    until(lambda: running.summary().account.read == 20_000)
    assert running.health().healthy
    with caplog.at_level(logging.WARNING, "streamgauge.kafka"):
        running.stop(timeout=3)
        assert running.health().why == "the run is stopping" and not running.health().ready
        began = time.monotonic()
        running.wait(120)
    assert time.monotonic() - began < 3 + _SLACK
    first = len(calls)
    assert first and "closed windows could be handed over: the next run" in caplog.text
    assert "without waiting for" not in caplog.text

    def quick(table: Any) -> None:
        calls.append(table.column("window_start")[0].as_py())
        windows(table)

    summary = run(topic.stream, RunOptions(group_id=topic.topic, until="latest", on_window=quick))
    wanted, account = topic.one_pass()
    assert summary.account == account and len(calls) == len(set(calls)) > first
    same(windows.table(), wanted)


@pytest.mark.slow
@pytest.mark.kafka
def test_a_callback_that_does_not_return_gets_its_window_again(posts: Any, same: Any, caplog: Any) -> None:
    topic, windows, go_on, entered = posts(1), Windows(), threading.Event(), threading.Event()
    topic.send(3_000)

    def hanging(table: Any) -> None:
        entered.set()
        go_on.wait(300)
        raise LookupError("too late to be of interest")

    running = start(topic.stream, RunOptions(group_id=topic.topic, on_window=hanging))
    try:
        assert entered.wait(120)
        with caplog.at_level(logging.WARNING, "streamgauge.kafka"):
            running.stop(timeout=2)
            began = time.monotonic()
            running.wait(120)
        assert time.monotonic() - began < 2 + _SLACK
        assert "a callback or sink that has not returned for the window" in caplog.text
        # It still doesn't return, and the next run gets its window all the same.
        run(topic.stream, RunOptions(group_id=topic.topic, until="latest", on_window=windows))
        same(windows.table(), topic.one_pass()[0])
    finally:
        go_on.set()
    assert running.wait(1) is not None, "what an abandoned callback raises is no error of the run any more"


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.soak)])
def test_brokers_that_are_away_do_not_hold_up_a_stop(kafka: Any, posts: Any, same: Any, workers: int) -> None:
    topic, windows = posts(1, servers=kafka.proxied), Windows()
    options: Any = {"group_id": topic.topic, "on_window": windows}
    topic.send(3_000)
    running = start(topic.stream, RunOptions(**options, workers=workers))
    until(lambda: running.summary().account.read > 0)
    kafka.proxy.holding = True
    try:
        topic.send(500)
        running.stop(timeout=4)
        began = time.monotonic()
        running.wait(120)
        assert time.monotonic() - began < 4 + _SLACK
    finally:
        kafka.proxy.mend()
    summary = run(topic.stream, RunOptions(**options, until="latest"))
    wanted, account = topic.one_pass()
    assert summary.account == account
    same(windows.table(), wanted)


SCRIPT = """
import sys, time, polars as pl
from streamgauge import Stream, count, json
topic, servers, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
def slow(table):
    print("window", flush=True)
    time.sleep(seconds)
source = Stream.from_kafka(topic, value=json({"at": pl.Int64}), time=pl.from_epoch("at", time_unit="us"),
                           bootstrap_servers=servers)
source.tumbling("10s").agg(posts=count()).run(on_window=slow, group_id=topic)
"""


@pytest.mark.kafka
@pytest.mark.soak
@pytest.mark.parametrize("fault", ["a slow callback", "brokers that are away"])
def test_sigterm_ends_a_program_before_it_is_killed(kafka: Any, posts: Any, fault: str) -> None:
    """Kubernetes waits for 30 seconds."""
    topic = posts(1)
    topic.send(36_000)
    seconds = "8" if fault == "a slow callback" else "0"
    program = [sys.executable, "-c", SCRIPT, topic.topic, kafka.proxied, seconds]
    process = subprocess.Popen(program, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "window\n"
    kafka.proxy.holding = fault != "a slow callback"
    try:
        process.send_signal(signal.SIGTERM)
        began = time.monotonic()
        process.communicate(timeout=120)
        assert time.monotonic() - began < 29
    finally:
        kafka.proxy.mend()
