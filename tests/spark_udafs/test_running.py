"""Ctrl-C ends who waits for a query, and the query between two micro-batches."""

from __future__ import annotations

import signal
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

from streamgauge.spark_udafs.running import DamagedState, Running


class Query:
    """A query as Spark gives it, whose waiting is told to end, with a micro-batch running."""

    def __init__(self, told: signal.Signals | None, batches: int = 3) -> None:
        self.told, self.batches = told, batches
        self.isActive = True
        self.name = "mine"
        self.stopped_in_batch: bool | None = None

    def awaitTermination(self, timeout: float) -> bool:
        assert 0 < timeout < 1
        if self.told is not None:
            signal.raise_signal(self.told)
        return not self.isActive

    @property
    def status(self) -> dict[str, Any]:
        self.batches -= 1
        return {"isTriggerActive": self.batches > 0}

    def stop(self) -> None:
        self.isActive = False
        self.stopped_in_batch = self.batches > 0


@pytest.mark.parametrize("told", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_in_order_and_in_one_line(told: signal.Signals, capfd: pytest.CaptureFixture[str]) -> None:
    before = signal.signal(told, signal.default_int_handler)
    try:
        query = Query(told)
        assert Running(query, "checkpoint").awaitTermination()
        assert signal.getsignal(told) is signal.default_int_handler
    finally:
        signal.signal(told, before)
    assert query.stopped_in_batch is False
    assert capfd.readouterr() == ("", "streamgauge: the query has ended; it goes on from its checkpoint\n")


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


@pytest.mark.parametrize("told", ["[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An", "Corruption: block checksum"])
def test_damaged_state_is_told_from_other_errors(told: str) -> None:
    class Failed(Query):
        def awaitTermination(self, timeout: float) -> bool:
            raise StreamingQueryException(told)

    with pytest.raises(DamagedState, match="files in here/state are damaged or gone") as found:
        Running(Failed(None), "here").awaitTermination()
    assert told in str(found.value.__cause__)
    told = "[STREAM_FAILED] the driver is gone"
    with pytest.raises(StreamingQueryException, match="the driver is gone"):
        Running(Failed(None), "here").awaitTermination()
