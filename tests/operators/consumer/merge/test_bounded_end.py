"""The end of a bounded run: everything read, and word of the rows that found no partner."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streamgauge.operators.consumer.merge.bounded_end import BoundedEnd
from streamgauge.operators.consumer.merge.merger import Merger
from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.run_plan import Plan
from streamgauge.operators.definition.joining import Between
from streamgauge.operators.sketching.delta import Delta
from streamgauge.operators.watermarks.position import Input

from ...steps.pairs import TOPICS, joined

INPUTS = [Input(topic, 0) for topic in TOPICS]


class Log:
    """A merger, its end, and a clock."""

    def __init__(self, how: Between) -> None:
        self.stream, self.now, self.offset = joined(how), 100.0, 0
        plan = Plan(self.stream, "g", "g.table", dict.fromkeys(TOPICS, 1), options=RunOptions(until="latest"))
        self.end = BoundedEnd(replace(plan, ends=dict.fromkeys(INPUTS, 7)), lambda: self.now)
        self.merger = Merger(self.stream, INPUTS)

    def offer(self, where: Input, first: int, following: int, provisional: bool = False) -> None:
        delta = Delta(self.stream.fingerprint(), *where, first, following, None, provisional=provisional)
        self.merger.offer(delta, self.offset)
        self.offset += 1

    @property
    def reached(self) -> bool:
        return self.end.reached([self.merger])


@pytest.mark.parametrize("how", ["inner", "left", "outer"])
def test_it_ends_when_all_is_read_and_no_row_waits_unknown(how: Between) -> None:
    log = Log(how)
    log.offer(INPUTS[0], 0, 7)
    assert not log.reached
    log.offer(INPUTS[1], 0, 7)
    assert log.reached == (how == "inner")
    log.offer(INPUTS[0], 7, 7, provisional=True)
    assert log.reached == (how == "inner")
    log.offer(INPUTS[1], 7, 7, provisional=True)
    assert log.reached


def test_word_of_rows_that_wait_is_void_once_their_partition_goes_on() -> None:
    log = Log("left")
    for where in INPUTS:
        log.offer(where, 0, 6)
        log.offer(where, 6, 6, provisional=True)
    for where in INPUTS:
        log.offer(where, 6, 7)
    assert not log.reached
    for where in INPUTS:
        log.offer(where, 7, 7, provisional=True)
    assert log.reached


def test_it_ends_all_the_same_if_another_run_has_the_partitions(caplog: pytest.LogCaptureFixture) -> None:
    log = Log("outer")
    for where in INPUTS:
        log.offer(where, 0, 7)
    assert not log.reached
    log.now += 59
    assert not log.reached and not caplog.records
    log.now += 2
    assert log.reached and log.reached
    (warning,) = caplog.messages
    assert warning.startswith("ending without the rows buffered in left and right: another run")


def test_a_run_without_an_end_has_none() -> None:
    log = Log("inner")
    plan = Plan(log.stream, "g", "g.table", dict.fromkeys(TOPICS, 1))
    assert not BoundedEnd(plan).reached([log.merger])
