"""Which kernels were compiled, and what each cost without those it calls, in units of a plain Python loop."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import event

UNIT = 20_000_000
"""Additions in plain Python that make a unit, a second or so."""

SLICE = 500_000


def loop(additions: int) -> int:
    """The unit, or a part of it."""
    total = 0
    for number in range(additions):
        total += number
    return total


class Compilations(event.Listener):
    """Takes the time of each compilation; Numba compiles a kernel's callees within its own.

    A slice of the unit runs before each, so that what else the machine does falls on both alike.
    """

    def __init__(self) -> None:
        self.kernels: list[tuple[str, float]] = []
        self.slices: list[float] = [_slice() for _ in range(4)]
        self._open: list[list[float]] = []
        self._start = time.process_time()
        self._away = 0.0

    @property
    def unit(self) -> float:
        """Seconds that 20 million additions take, by the slices that ran so far."""
        return sum(self.slices) / len(self.slices) * (UNIT / SLICE)

    @property
    def seconds(self) -> float:
        """Seconds of processor time since the beginning, without those of the slices."""
        return time.process_time() - self._start - self._away

    def on_start(self, event: Any) -> None:
        self.slices.append(_slice())
        self._away += self.slices[-1]
        self._open.append([self.seconds, 0.0])

    def on_end(self, event: Any) -> None:
        start, nested = self._open.pop()
        elapsed = self.seconds - start
        if self._open:
            self._open[-1][1] += elapsed
        function = event.data["dispatcher"].py_func
        module = function.__module__.removeprefix("streamgauge.")
        self.kernels.append((f"{module}.{function.__qualname__}", elapsed - nested))


def _slice() -> float:
    start = time.process_time()
    loop(SLICE)
    return time.process_time() - start


@contextmanager
def compilations() -> Iterator[Compilations]:
    """The kernels that are compiled while the block runs."""
    listener = Compilations()
    with event.install_listener("numba:compile", listener):
        yield listener
