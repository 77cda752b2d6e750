"""Windows handed to sinks that write: waited for while that can help, else the run ends and names them."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from streamgauge import AnswersToKafka, SketchesToParquet
from streamgauge.operators.consumer.merge import outbox
from streamgauge.operators.consumer.merge.outbox import Outbox
from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.run_plan import Plan
from streamgauge.operators.definition.aggregates import count
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json.decoder import json
from streamgauge.operators.kafka.outgoing_message import Outgoing
from streamgauge.operators.sinks.sink import ClosedWindow, Origin, SinkError, SinkTopic
from streamgauge.operators.table.window_groups import WindowGroups
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


def closed() -> WindowGroups:
    rows = Stream.from_schema({"at": pl.Int64}, time=pl.from_epoch("at")).tumbling("1m").agg(n=count())
    tester = StreamTester(rows)
    tester.feed([{"at": START}])
    return WindowGroups.of_table(tester.finish().tables().to_arrow())


def minutes(count: int) -> WindowGroups:
    """Windows that closed together."""
    table = closed().table
    later = [table.set_column(0, "window_start", _shifted(table, 0, at)) for at in range(count)]
    later = [one.set_column(1, "window_end", _shifted(table, 1, at)) for at, one in enumerate(later)]
    return WindowGroups.of_table(pa.concat_tables(later).cast(table.schema))


def _shifted(table: pa.Table, column: int, minutes: int) -> pa.Array:
    moved = table.column(column).cast(pa.int64()).to_numpy() + 60_000_000 * minutes
    return pa.array(moved).cast(table.schema.types[column])


class Several:
    """A sink that takes windows together, and makes no message of them."""

    several_windows = True

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def topic(self, origin: Origin) -> SinkTopic:
        return SinkTopic("several", 1, {})

    def messages(self, window: ClosedWindow) -> list[Outgoing]:
        self.sizes.append(len(window.groups.windows()))
        return []


class One(Several):
    """A sink that takes windows one by one."""

    several_windows = False


def hand_over(*sinks: Any, **options: Any) -> Outbox:
    stream = Stream.from_kafka("posts", value=json({"at": pl.Int64}), time=pl.from_epoch("at"))
    plan = Plan(stream.tumbling("1m").agg(n=count()), "group", "table", 1)
    return Outbox(Plan(plan.stream, "group", "table", 1, options=RunOptions(sinks=sinks, **options)))


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "_PAUSE_SECONDS", 0.0)


def test_a_disk_that_comes_back_is_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    sink = Failing(OSError(errno.ENOSPC, "No space left on device"), times=3)
    hand_over(sink).emit(2, closed(), final=True)
    assert [(window.partition, window.final) for window in sink.written] == [(2, True)]
    [warning] = caplog.messages
    assert warning.startswith("the sink Failing(): the window 2026-01-01 00:00:00 to ")
    assert warning.endswith("retrying for up to 30 s: OSError: [Errno 28] No space left on device")


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
    monkeypatch.setattr(outbox, "_TRY_SECONDS", 0.0)
    sink, written = Failing(error, times=99), list[Any]()
    with pytest.raises(
        SinkError,
        match=r"the sink Failing\(\): the window 2026-01-01 00:00:00 to 2026-01-01 00:01:00 UTC "
        rf"\(table partition 0\) can't be written: {type(error).__name__}: .*delivers it again",
    ):
        hand_over(sink, on_window=written.append).emit(0, closed(), final=True)
    assert sink.times == 98 and len(written) == 1


def test_a_callback_that_takes_long_is_named_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(outbox, "_SLOW_SECONDS", 0.0)
    held: list[Outbox] = []

    def slow(table: Any) -> None:
        for _ in range(2):
            held[0].warn_if_slow()

    held.append(hand_over(on_window=slow))
    held[0].warn_if_slow()
    assert caplog.text == ""
    held[0].emit(0, closed(), final=True)
    held[0].warn_if_slow()
    assert len(caplog.records) == 1
    assert "delivering the window 2026-01-01 00:00:00" in caplog.text and "'table' grows" in caplog.text


def test_a_folder_that_can_not_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(SinkError, match=r"SketchesToParquet\(folder=.*NotADirectoryError"):
        hand_over(SketchesToParquet(tmp_path / "file")).emit(0, closed(), final=True)


def test_windows_that_could_not_be_sent_before_the_end_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    named, own = (hand_over(AnswersToKafka("answers"), group_id=name) for name in ("group", None))
    for handing in (named, own):
        handing.check_empty()
        handing.emit(0, closed(), final=True)
        handing.emit(0, closed(), final=True)
        handing.mark_sent(0, 1)
    assert caplog.text == ""
    named.check_empty()
    assert (
        "the messages of 1 window, first the sink AnswersToKafka(to='answers'): the window 2026-01"
        in caplog.text
    )
    assert "the next run of the group delivers them again" in caplog.text
    with pytest.raises(SinkError, match="could not be sent; start the run again"):
        own.check_empty()
    own.forget([0])
    own.check_empty()


def test_so_much_may_wait_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    handing, one = hand_over(AnswersToKafka("answers")), closed()
    monkeypatch.setattr(outbox, "_FULL_BYTES", 3 * one.nbytes)
    for partition in (0, 1, 0):
        handing.emit(partition, one, final=True)
        assert not handing.full
    handing.emit(1, one, final=True)
    assert handing.full and len(handing.waiting(0)) == len(handing.waiting(1)) == 2
    handing.mark_sent(1, 2)
    assert not handing.full


def sent(handing: Outbox) -> None:
    list(handing.messages(handing.waiting(0)))


def test_windows_that_closed_together_go_together_to_whom_takes_them_so() -> None:
    several, one, handed = Several(), One(), list[WindowGroups]()
    handing = hand_over(several, one)
    handing.emit(0, minutes(5), True, handed.append)
    sent(handing)
    assert (several.sizes, one.sizes, [len(groups) for groups in handed]) == ([5], [1] * 5, [5])


def test_windows_before_one_that_the_callback_refuses_are_handed_over() -> None:
    several, handed, shown = Several(), list[WindowGroups](), list[pa.Table]()

    def refuse(table: pa.Table) -> None:
        if len(shown) == 3:
            raise ZeroDivisionError
        shown.append(table)

    handing = hand_over(several, on_window=refuse)
    with pytest.raises(ZeroDivisionError):
        handing.emit(0, minutes(5), True, handed.append)
    sent(handing)
    assert several.sizes == [3] and [table.num_rows for table in shown] == [1, 1, 1]
    assert [groups.starts.tolist() for groups in handed] == [minutes(3).starts.tolist()]


def test_of_windows_that_take_long_some_are_noted_while_others_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "_TOGETHER_SECONDS", -1.0)
    handed = list[WindowGroups]()
    hand_over(on_window=lambda table: None).emit(0, minutes(4), True, handed.append)
    assert [len(groups) for groups in handed] == [1, 1, 1, 1]
