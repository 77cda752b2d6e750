"""A pool of large arrays, because the system clears fresh memory first, page by page.

Clearing took 6 % of a run's processor time. The C library only retains freed blocks of up to 32 MB, and 64 MB
per thread, which is less than a few batches of 200,000 messages take.
"""

from __future__ import annotations

import sys
import threading

import numpy as np

_MOST = 8
"""Two for each batch, of which one is read, one waits and one is sketched; two spare, as sizes differ."""
_LARGEST = 32 << 20


class ArrayPool(threading.local):
    """Arrays that one thread fills and others read; each thread has its own pool of at most `_MOST`.

    An array is free again when nothing refers to it or to a view of it.
    """

    def __init__(self) -> None:
        self._arrays: list[np.ndarray] = []

    def acquire(self, size: int) -> np.ndarray:
        """A free array of at least `size` bytes (uint8) with arbitrary content; a new one if none is free."""
        arrays = self._arrays
        fitting = [
            (len(arrays[i]), i)
            for i in range(len(arrays))
            if len(arrays[i]) >= size and sys.getrefcount(arrays[i]) == _FREE
        ]
        return arrays.pop(min(fitting)[1]) if fitting else np.empty(size, np.uint8)

    def release(self, array: np.ndarray, used: int) -> None:
        """Reuse the array when it is free, unless more than `_LARGEST` bytes of it are used."""
        if used <= _LARGEST:
            self._arrays = [*self._arrays[1 - _MOST :], array]

    def clear(self) -> None:
        """Return the memory to the system."""
        self._arrays = []


_FREE = next(sys.getrefcount(arrays[i]) for arrays in [[np.empty(0)]] for i in range(1))
"""The number of references to an array that only the list refers to, including the call itself."""

ARRAYS = ArrayPool()
"""For everything in this process that reads raw batches."""
