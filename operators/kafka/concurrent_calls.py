"""Calls in threads of their own: concurrent requests to brokers, and calls that may never return."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, wait
from contextvars import copy_context
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def call_for_each(function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Call a function for all items concurrently; returns the results in order.

    Each call has a thread, which logs as the caller does. All have ended before the first error, in the order
    of the items, is raised. An interrupted caller doesn't wait for them: the threads end with their calls or
    with the program.

    >>> call_for_each(len, ["a", "bcd"])
    [1, 3]
    """
    calls = [_started(function, item) for item in items]
    wait(calls)
    return [call.result() for call in calls]


def ends_within(seconds: float, function: Callable[[], object]) -> bool:
    """Call a function, and return whether it ends in time. If it doesn't, its thread is left behind.

    Raises what the function raises in time.

    >>> ends_within(10.0, list), ends_within(0.01, threading.Event().wait)
    (True, False)
    """
    call = _started(lambda _: function(), None)
    if not wait([call], seconds).done:
        return False
    call.result()
    return True


def _started(function: Callable[[Item], Result], item: Item) -> Future[Result]:
    call: Future[Result] = Future()
    arguments = _complete, call, function, item
    threading.Thread(target=copy_context().run, args=arguments, daemon=True).start()
    return call


def _complete(call: Future[Result], function: Callable[[Item], Result], item: Item) -> None:
    try:
        result = function(item)
    except BaseException as error:
        call.set_exception(error)
    else:
        call.set_result(result)
