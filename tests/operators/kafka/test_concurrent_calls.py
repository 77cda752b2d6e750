"""Calls that run at the same time: their results in order, the first error once all have ended."""

from __future__ import annotations

import threading
from contextvars import ContextVar

import pytest

from streamgauge.operators.kafka.concurrent_calls import call_for_each


def test_calls_run_at_the_same_time_and_give_their_results_in_order() -> None:
    meeting = threading.Barrier(3)

    def double(item: int) -> int:
        meeting.wait(60.0)  # breaks where one waits for another to end
        return 2 * item

    assert call_for_each(double, [3, 1, 2]) == [6, 2, 4]
    assert call_for_each(double, []) == []


def test_the_first_error_in_order_is_raised_once_all_have_ended() -> None:
    second_failed, ended = threading.Event(), []

    def fail(item: int) -> None:
        if item == 0:
            assert second_failed.wait(60.0)
        if item == 1:
            second_failed.set()
        if item == 2:
            assert second_failed.wait(60.0)
            ended.append(item)
            return
        raise ValueError(f"item {item}")

    with pytest.raises(ValueError, match="item 0"):
        call_for_each(fail, [0, 1, 2])
    assert ended == [2]


def test_calls_see_the_variables_of_their_caller() -> None:
    name: ContextVar[str] = ContextVar("name", default="nobody")
    token = name.set("posts")
    try:
        assert call_for_each(lambda _: name.get(), [1, 2]) == ["posts", "posts"]
    finally:
        name.reset(token)
