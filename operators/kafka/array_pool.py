"""A pool of large arrays: fresh memory the system clears first, page by page.

Clearing was 6 % of a run's processor time. The C library keeps only freed pieces of up to 32 MB, and 64 MB a
thread, which is less than a few batches of 200,000 messages take.
"""

from __future__ import annotations

import sys
import threading

import numpy as np

_MOST = 8
"""Two of each batch, of which one is read, one waits and one is sketched; two more, as sizes differ."""
_LARGEST = 32 << 20


class ArrayPool(threading.local):
    """Arrays that one thread fills and others read; each thread has its own, `_MOST` at most.

    An array is free again when nothing refers to it, and no view of it is left either.
    """

    def __init__(self) -> None:
        self._arrays: list[np.ndarray] = []

    def acquire(self, size: int) -> np.ndarray:
        """A free array of `size` bytes or more (uint8), with whatever is in it; a new one if none is."""
        arrays = self._arrays
        fitting = [
            (len(arrays[i]), i)
            for i in range(len(arrays))
            if len(arrays[i]) >= size and sys.getrefcount(arrays[i]) == _FREE
        ]
        return arrays.pop(min(fitting)[1]) if fitting else np.empty(size, np.uint8)

    def release(self, array: np.ndarray, used: int) -> None:
        """Give it out again when it is free, unless more than `_LARGEST` bytes of it are used."""
        if used <= _LARGEST:
            self._arrays = [*self._arrays[1 - _MOST :], array]

    def clear(self) -> None:
        """Leave the memory to the system."""
        self._arrays = []


_FREE = next(sys.getrefcount(arrays[i]) for arrays in [[np.empty(0)]] for i in range(1))
"""References to an array that only the list has, and the question itself."""

ARRAYS = ArrayPool()
"""For all that read raw batches in this process."""
