"""Process slices of many rows in one thread each, for kernels, which release the GIL."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_LEAST = 1 << 16
"""Rows per slice: starting a thread takes as long as some thousand rows."""


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def each_slice(rows: int, call: Callable[[int, int], T], least: int | None = None) -> list[T]:
    """Run ``call(low, high)`` on slices of `rows`, one per core in parallel; return the results in order.

    A slice has at least `least` rows (65,536), unless it is the only one. An exception in a call is raised
    after all calls have ended.

    >>> each_slice(3, lambda low, high: (low, high))
    [(0, 3)]
    >>> [low for low, _ in each_slice(4, lambda low, high: (low, high), least=4)]
    [0]
    """
    slices = max(1, min(cores(), rows // (least or _LEAST)))
    edges = [rows * at // slices for at in range(slices + 1)]
    results: dict[int, T] = {}
    errors: list[BaseException] = []

    def one(at: int) -> None:
        try:
            results[at] = call(edges[at], edges[at + 1])
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=one, args=(at,), name="slice") for at in range(1, slices)]
    for thread in threads:
        thread.start()
    one(0)
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return [results[at] for at in range(slices)]
