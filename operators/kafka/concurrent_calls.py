"""Concurrent requests to brokers."""

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
    calls: list[Future[Result]] = []
    for item in items:
        call: Future[Result] = Future()
        arguments = _complete, call, function, item
        threading.Thread(target=copy_context().run, args=arguments, daemon=True).start()
        calls.append(call)
    wait(calls)
    return [call.result() for call in calls]


def _complete(call: Future[Result], function: Callable[[Item], Result], item: Item) -> None:
    try:
        result = function(item)
    except BaseException as error:
        call.set_exception(error)
    else:
        call.set_result(result)
