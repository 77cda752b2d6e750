"""Memory for large arrays, used again: what is fresh the system clears first, page by page.

That was a tenth of what reading costs. The C library keeps what is freed only up to 32 MB a piece and 64 MB a
thread, which is less than a few batches of 200,000 messages take.
"""

from __future__ import annotations

import sys
import threading

import numpy as np

_MOST = 8
"""Two of each batch, of which one is read, one waits and one is worked on; and room, as they differ."""
_LARGEST = 32 << 20


class Recycling(threading.local):
    """Arrays that one thread fills and others read, `_MOST` at most.

    An array is free again when nothing refers to it, no view of it either.
    """

    def __init__(self) -> None:
        self._arrays: list[np.ndarray] = []

    def take(self, size: int) -> np.ndarray:
        """Memory of `size` bytes or more (uint8), with whatever is in it."""
        arrays = self._arrays
        free = [i for i in range(len(arrays)) if sys.getrefcount(arrays[i]) == _FREE]
        fitting = [(len(arrays[i]), i) for i in free if len(arrays[i]) >= size]
        return arrays.pop(min(fitting)[1]) if fitting else np.empty(size, np.uint8)

    def keep(self, array: np.ndarray, used: int) -> None:
        """Give it out again when it is free, unless more than `_LARGEST` bytes of it are used."""
        if used <= _LARGEST:
            self._arrays = [*self._arrays[1 - _MOST :], array]

    def forget(self) -> None:
        """Leave the memory to the system."""
        self._arrays = []


_FREE = next(sys.getrefcount(arrays[i]) for arrays in [[np.empty(0)]] for i in range(1))
"""References to an array that only the list has, and the question itself."""

MEMORY = Recycling()
"""For all that reads in this process."""
