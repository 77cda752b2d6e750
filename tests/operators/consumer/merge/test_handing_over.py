"""Windows handed to sinks that write: waited for while that can help, else the run ends and names them."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from streamgauge import ToKafka, ToParquet
from streamgauge.operators.consumer.merge import handing_over
from streamgauge.operators.consumer.merge.handing_over import HandOver
from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.plan import Plan
from streamgauge.operators.definition.aggregates import count
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json import json
from streamgauge.operators.sinks.sink import ClosedWindow, Origin, SinkError
from streamgauge.operators.testing import StreamTester

START = 1_767_225_600


class Failing:
    """A sink that writes once it has failed so often."""

    def __init__(self, error: Exception, times: int) -> None:
        self.error, self.times = error, times
        self.written: list[ClosedWindow] = []

    def __repr__(self) -> str:
        return "Failing()"

    def begin(self, origin: Origin) -> None:
        pass

    def write(self, window: ClosedWindow) -> None:
        self.times -= 1
        if self.times >= 0:
            raise self.error
        self.written.append(window)


def table() -> Any:
    rows = Stream.from_batches({"at": pl.Int64}, time=pl.from_epoch("at")).tumbling("1m").agg(n=count())
    tester = StreamTester(rows)
    tester.feed([{"at": START}])
    return tester.finish().tables()


def hand_over(*sinks: Any, **options: Any) -> HandOver:
    stream = Stream.from_kafka("posts", value=json({"at": pl.Int64}), time=pl.from_epoch("at"))
    plan = Plan(stream.tumbling("1m").agg(n=count()), "group", "table", 1)
    return HandOver(Plan(plan.stream, "group", "table", 1, options=RunOptions(sinks=sinks, **options)))


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handing_over, "_PAUSE_SECONDS", 0.0)


def test_a_disk_that_comes_back_is_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    sink = Failing(OSError(errno.ENOSPC, "No space left on device"), times=3)
    hand_over(sink).take(2, table(), final=True)
    assert [(window.partition, window.final) for window in sink.written] == [(2, True)]
    assert "No space left on device" in caplog.text


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(OSError(errno.ENOSPC, "No space left on device"), id="for too long"),
        pytest.param(PermissionError(errno.EACCES, "Permission denied"), id="not allowed"),
        pytest.param(ZeroDivisionError("by nothing"), id="the sink is wrong"),
    ],
)
def test_a_sink_that_fails_ends_the_run_and_is_named_with_the_window(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handing_over, "_TRY_SECONDS", 0.0)
    sink, written = Failing(error, times=99), list[Any]()
    with pytest.raises(
        SinkError,
        match=r"the sink Failing\(\): the window 2026-01-01 00:00:00 to 2026-01-01 00:01:00 UTC "
        rf"\(table partition 0\) can't be written: {type(error).__name__}: .*hands it over again",
    ):
        hand_over(sink, on_window=written.append).take(0, table(), final=True)
    assert sink.times == 98 and len(written) == 1


def test_a_callback_that_takes_long_is_named_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(handing_over, "_SLOW_SECONDS", 0.0)
    held: list[HandOver] = []

    def slow(table: Any) -> None:
        for _ in range(2):
            held[0].look()

    held.append(hand_over(on_window=slow))
    held[0].look()
    assert caplog.text == ""
    held[0].take(0, table(), final=True)
    held[0].look()
    assert len(caplog.records) == 1
    assert "handing over the window 2026-01-01 00:00:00" in caplog.text and "'table' grows" in caplog.text


def test_a_folder_that_can_not_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(SinkError, match=r"ToParquet\(folder=.*NotADirectoryError"):
        hand_over(ToParquet(tmp_path / "file")).take(0, table(), final=True)


def test_windows_that_could_not_be_sent_before_the_end_are_told(caplog: pytest.LogCaptureFixture) -> None:
    named, own = (hand_over(ToKafka("answers"), group_id=name) for name in ("group", None))
    for handing in (named, own):
        handing.check_empty()
        handing.take(0, table(), final=True)
        handing.take(0, table(), final=True)
        handing.sent(0, 1)
    assert caplog.text == ""
    named.check_empty()
    assert "the messages of 1 window, first the sink ToKafka(to='answers'): the window 2026-01" in caplog.text
    assert "the next run of the group hands them over again" in caplog.text
    with pytest.raises(SinkError, match="could not be sent; start the run again"):
        own.check_empty()
    own.forget([0])
    own.check_empty()


def test_so_much_may_wait_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    handing, one = hand_over(ToKafka("answers")), table()
    monkeypatch.setattr(handing_over, "_FULL_BYTES", 3 * one.nbytes)
    for partition in (0, 1, 0):
        handing.take(partition, one, final=True)
        assert not handing.full
    handing.take(1, one, final=True)
    assert handing.full and len(handing.waiting(0)) == len(handing.waiting(1)) == 2
    handing.sent(1, 2)
    assert not handing.full
