"""Common code of sessions and count windows: parts of windows, and windows waiting to be emitted."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..log.merger_state import EmittedWindows
from .open_windows import Beginning, Due
from .partial_windows import PartialWindows

_FEW = 10_000


@dataclass(slots=True)
class _Ready:
    """Windows that were closed for good together."""

    due: Due
    origin: int


class PartialWindowsBase:
    """Open windows stored only as their parts; subclasses decide which parts belong together.

    `known` and `schema` are as for `PartialWindows`. Windows that are closed for good wait in order.
    """

    def __init__(self, schema: pa.Schema, known: Mapping[str, type]) -> None:
        self._parts = PartialWindows(schema, known)
        self._ready: deque[_Ready] = deque()

    def origins(self) -> Iterable[Beginning]:
        """See `OpenWindows`."""
        return self._parts.origins()

    def window_counts(self) -> tuple[int, int]:
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
        """Add the parts of a delta (see `PartialWindows.add`)."""
        self._parts.add(known, rows, origin, offset)
        for ready in self._ready:
            ready.origin = self._parts.origin_of(ready.origin)

    @property
    def _many(self) -> bool:
        """Whether enough parts have arrived since the last merge that they should be merged again."""
        return len(self._parts) > 2 * self._parts.joined + _FEW

    def _add_ready(self, due: Due, at: np.ndarray) -> None:
        """Queue windows for emission that consist of the parts `at`, which may be dropped then."""
        self._ready.append(_Ready(due, int(self._parts.at["origin"][at].min())))

    def _drop(self, at: np.ndarray) -> None:
        """Remove parts, and what only they needed."""
        self._parts.drop(at)
        self._forget()

    def _mark_first_emitted(self, emitted: EmittedWindows) -> None:
        """Record that the first of the waiting windows were emitted."""
        emitted.until_us = max(emitted.until_us, self._ready.popleft().due.end_us)
        self._forget()

    def _forget(self) -> None:
        self._parts.forget(ready.origin for ready in self._ready)
