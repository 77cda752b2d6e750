"""Ctrl-C ends who waits for a query, and the query between two micro-batches."""

from __future__ import annotations

import signal
from contextlib import nullcontext
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

from streamgauge.spark_udafs.streaming.query_handle import DamagedState, QueryFailed, Running


class Query:
    """A query as Spark gives it, whose waiting is to end, with a micro-batch running."""

    def __init__(self, reported: signal.Signals | None, batches: int = 3) -> None:
        self.reported, self.batches = reported, batches
        self.isActive = True
        self.name = "mine"
        self.stopped_in_batch: bool | None = None

    def awaitTermination(self, timeout: float) -> bool:
        assert 0 < timeout < 1
        if self.reported is not None:
            signal.raise_signal(self.reported)
        return not self.isActive

    def exception(self) -> None:
        return None

    @property
    def status(self) -> dict[str, Any]:
        self.batches -= 1
        return {"isTriggerActive": self.batches > 0}

    def stop(self) -> None:
        self.isActive = False
        self.stopped_in_batch = self.batches > 0


@pytest.mark.parametrize("reported", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_in_order_and_in_one_line(
    reported: signal.Signals, capfd: pytest.CaptureFixture[str]
) -> None:
    before = signal.signal(reported, signal.default_int_handler)
    try:
        query = Query(reported)
        assert Running(query, "checkpoint").awaitTermination()
        assert signal.getsignal(reported) is signal.default_int_handler
    finally:
        signal.signal(reported, before)
    assert query.stopped_in_batch is False
    assert capfd.readouterr() == ("", "streamgauge: the query has ended; it resumes from its checkpoint\n")


def test_what_is_ignored_is_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        query = Query(signal.SIGINT)
        assert not Running(query, "checkpoint").awaitTermination(0.01)
        assert query.isActive
    finally:
        signal.signal(signal.SIGINT, before)


def test_it_is_spark_s_query_in_all_else() -> None:
    query = Running(Query(None), "checkpoint")
    assert query.name == "mine"
    assert not query.awaitTermination(0.01)
    query.stop()
    assert query.awaitTermination(0.01) and query.awaitTermination()
    with pytest.raises(AttributeError, match="nothing"):
        query.nothing  # noqa: B018


@pytest.mark.parametrize("way", ["stopped", "ended in order", "ended by itself", "failed"])
def test_what_waits_for_the_end_is_done_once(way: str) -> None:
    class Failed(Query):
        def awaitTermination(self, timeout: float) -> bool:
            raise StreamingQueryException("[STREAM_FAILED] the driver is gone")

    inner, done = (Failed if way == "failed" else Query)(None), list[str]()
    query = Running(inner, "checkpoint")
    query.at_end(lambda: done.append("one"))
    query.at_end(lambda: done.append("other"))
    if way != "failed":
        assert not query.awaitTermination(0.01) and not done
    if way == "stopped":
        query.stop()
    elif way == "ended in order":
        query.end()
    inner.isActive = False
    for _ in range(2):
        with nullcontext() if way != "failed" else pytest.raises(StreamingQueryException):
            query.awaitTermination()
    assert done == ["one", "other"]


@pytest.mark.parametrize(
    "reported", ["[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An", "Corruption: block checksum"]
)
def test_damaged_state_is_distinguished_from_other_errors(reported: str) -> None:
    def wait(text: str) -> None:
        class Failed(Query):
            def awaitTermination(self, timeout: float) -> bool:
                raise StreamingQueryException(text)

        Running(Failed(None), "here").awaitTermination()

    with pytest.raises(DamagedState, match="files in here/state are damaged or missing") as raised:
        wait(reported)
    assert reported in str(raised.value.__cause__)
    with pytest.raises(QueryFailed, match="the driver is gone"):
        wait("[STREAM_FAILED] the driver is gone")
    with pytest.raises(QueryFailed, match="the checkpoint here can't be used now: No space left on device"):
        wait(f"{reported}: java.io.IOException: No space left on device")


SLOW = "[STREAM_FAILED] Query terminated with exception: Python worker failed to connect back."


class SlowStart(Query):
    """A query whose Python process comes up too late."""

    def __init__(self, reported: str = SLOW) -> None:
        super().__init__(None)
        self.isActive, self.error = False, StreamingQueryException(reported)

    def awaitTermination(self, timeout: float) -> bool:
        raise self.error

    def exception(self) -> StreamingQueryException:
        return self.error


class Done(Query):
    """A query that ends by itself."""

    def awaitTermination(self, timeout: float) -> bool:
        self.isActive = False
        return True


def test_a_query_whose_process_comes_up_too_late_begins_again(caplog: pytest.LogCaptureFixture) -> None:
    later = [SlowStart(), Done(None)]
    running = Running(SlowStart(), "here", lambda: later.pop(0))
    assert running.awaitTermination() and not later and running.exception() is None
    assert [record.getMessage().split("; ")[-1] for record in caplog.records] == [
        f"starting again ({tried} of 10)" for tried in (2, 3)
    ]
    assert all(record.getMessage().startswith("the query of here: ") for record in caplog.records)
    # Only looking at it begins it again, too.
    looked = Running(SlowStart(), "here", lambda: Query(None))
    assert looked.isActive and looked.exception() is None


def test_it_begins_again_a_few_times_and_for_this_reason_alone() -> None:
    begun: list[SlowStart] = []

    def begin() -> SlowStart:
        begun.append(SlowStart())
        return begun[-1]

    with pytest.raises(StreamingQueryException, match="failed to connect back"):
        Running(SlowStart(), "here", begin).awaitTermination()
    assert len(begun) == 9
    with pytest.raises(StreamingQueryException, match="the driver is gone"):
        Running(SlowStart("the driver is gone"), "here", begin).awaitTermination()
    stopped = Running(SlowStart(), "here", begin)
    stopped.stop()
    assert not stopped.isActive and isinstance(stopped.exception(), StreamingQueryException)
    assert len(begun) == 9
