"""A batch is read in advance while there is a backlog; at the end of the input, only when it is wanted."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from streamgauge.operators.formats.messages import Messages
from streamgauge.operators.kafka.read_ahead import ReadAhead

from ...waiting import until


class Log:
    """Stands for a reader of one partition, in which `end` messages exist."""

    def __init__(self, end: int) -> None:
        self.end, self.at = end, 0
        self.reads: list[int] = []
        self.fault: BaseException | None = None
        self.lock = threading.Lock()

    def read(self, limit: int, timeout: float) -> Messages | None:
        if self.fault is not None:
            raise self.fault
        with self.lock:
            count = min(limit, self.end - self.at)
            self.at += count
        self.reads.append(count)
        if not count:
            time.sleep(0.001)
            return None
        return Messages.of([b"{}"] * count)

    def positions(self) -> dict[Any, int]:
        return {("t", 0): self.at}

    def epochs(self) -> dict[Any, int]:
        return {}

    def caught_up(self) -> bool:
        return self.at == self.end


@contextmanager
def reading(log: Log, may_collect: bool) -> Iterator[ReadAhead]:
    ahead = ReadAhead(log, 10, may_collect)  # type: ignore[arg-type]
    try:
        yield ahead
    finally:
        ahead.close()


def read(ahead: ReadAhead) -> int:
    messages = ahead.read(5.0)
    return 0 if messages is None else len(messages)


@pytest.mark.parametrize("may_collect", [False, True])
def test_the_next_batch_of_a_backlog_is_read_in_advance(may_collect: bool) -> None:
    log = Log(35)
    with reading(log, may_collect) as ahead:
        assert read(ahead) == 10
        until(lambda: log.reads[:3] == [10, 10, 10])  # one waits to be taken, one to be put
        assert ahead.positions() == {("t", 0): 10} and not ahead.collects
        assert [read(ahead) for _ in range(3)] == [10, 10, 5]


def test_what_arrives_at_the_end_of_the_input_collects_until_it_is_wanted() -> None:
    log = Log(5)
    with reading(log, may_collect=True) as ahead:
        assert read(ahead) == 5
        for end, arrived in ((8, 3), (15, 7)):
            assert ahead.collects
            log.end = end
            time.sleep(0.02)  # nothing reads it meanwhile
            assert read(ahead) == arrived
        assert sum(map(bool, log.reads)) == 3


def test_a_batch_that_waits_does_not_make_the_next_one_be_read_in_advance() -> None:
    log = Log(5)
    with reading(log, may_collect=True) as ahead:
        until(lambda: not ahead._results.empty())
        log.end = 8
        assert read(ahead) == 5
        time.sleep(0.02)
        assert log.reads == [5]
        assert read(ahead) == 3


def test_without_it_single_messages_are_read_at_once() -> None:
    log = Log(1)
    with reading(log, may_collect=False) as ahead:
        assert read(ahead) == 1
        log.end = 2
        until(lambda: log.at == 2)


@pytest.mark.parametrize("may_collect", [False, True])
def test_errors_reach_the_owner_and_a_closed_one_ends(may_collect: bool) -> None:
    log = Log(3)
    with reading(log, may_collect) as ahead:
        assert read(ahead) == 3
        log.fault = OSError("gone")
        with pytest.raises(OSError, match="gone"):
            for _ in range(100):
                read(ahead)
    assert not ahead._thread.is_alive()
