"""What sessions and windows by count have in common: parts of windows, and windows that wait to be told."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..log.state import Told
from .held_parts import HeldParts
from .open_windows import Beginning, Due

_FEW = 10_000


@dataclass(slots=True)
class _Ready:
    """Windows that were closed for good together."""

    due: Due
    origin: int


class PartedWindows:
    """Open windows of which nothing but their parts is held; which belong together, subclasses say.

    `known` is as for `HeldParts`, and so is `schema`. Those that are closed for good wait in their order.
    """

    def __init__(self, schema: pa.Schema, known: Mapping[str, type]) -> None:
        self._parts = HeldParts(schema, known)
        self._ready: deque[_Ready] = deque()

    def origins(self) -> Iterable[Beginning]:
        """See `OpenWindows`."""
        return self._parts.origins()

    def held(self) -> tuple[int, int]:
        """See `OpenWindows`."""
        return len(self._parts), len(self._parts)

    @property
    def nbytes(self) -> int:
        """See `OpenWindows`."""
        return self._parts.nbytes

    def spill(self) -> None:
        """See `OpenWindows`."""
        self._parts.spill()

    def _add(
        self, known: Mapping[str, np.ndarray], rows: pa.Table, origin: Callable[[], Beginning], offset: int
    ) -> None:
        """Take in the parts that a delta brought (see `HeldParts.add`)."""
        self._parts.add(known, rows, origin, offset)
        for ready in self._ready:
            ready.origin = self._parts.origin_of(ready.origin)

    @property
    def _many(self) -> bool:
        """Whether so many parts came since they were last put together that they should be again."""
        return len(self._parts) > 2 * self._parts.joined + _FEW

    def _set_aside(self, due: Due, at: np.ndarray) -> None:
        """Let windows wait, which the parts `at` make up; these may go then."""
        self._ready.append(_Ready(due, int(self._parts.at["origin"][at].min())))

    def _drop(self, at: np.ndarray) -> None:
        """Let parts go, and what only they needed."""
        self._parts.drop(at)
        self._forget()

    def _handed_over(self, told: Told) -> None:
        """Note that the first of those that wait was handed over."""
        told.until_us = max(told.until_us, self._ready.popleft().due.end_us)
        self._forget()

    def _forget(self) -> None:
        self._parts.forget(ready.origin for ready in self._ready)
