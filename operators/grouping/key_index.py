"""Numbers for keys, by 128-bit hashes, in an open-addressing table that grows as keys appear."""

from __future__ import annotations

import numpy as np

from ...sketches.core.compilation.jit import kernel

_ROOM = 128
_FAST = 65_536
"""Up to this size a table grows fourfold, so that many keys at once need few rehashes; then twofold."""


@kernel
def _number(h1, h2, start, slots, known1, known2, n, numbers, firsts):
    """Number the rows from `start` on; stops when the table is half full. Returns (row, keys).

    `firsts` gets the row of each new number.
    """
    mask = np.uint64(len(slots) - 1)
    limit = len(slots) // 2
    for i in range(start, len(h1)):
        at = h1[i] & mask
        while True:
            known = slots[at]
            if known < 0:
                if n >= limit:
                    return i, n
                slots[at] = n
                known1[n] = h1[i]
                known2[n] = h2[i]
                firsts[n] = i
                numbers[i] = n
                n += 1
                break
            if known1[known] == h1[i] and known2[known] == h2[i]:
                numbers[i] = known
                break
            at = (at + np.uint64(1)) & mask
    return len(h1), n


@kernel
def _find(h1, h2, slots, known1, known2, numbers):
    """The number of each row's key, -1 for unknown keys."""
    mask = np.uint64(len(slots) - 1)
    for i in range(len(h1)):
        at = h1[i] & mask
        numbers[i] = -1
        while slots[at] >= 0:
            known = slots[at]
            if known1[known] == h1[i] and known2[known] == h2[i]:
                numbers[i] = known
                break
            at = (at + np.uint64(1)) & mask


@kernel
def refill(slots, known1, n):
    """Insert `n` entries into empty slots, by the first halves of their hashes."""
    mask = np.uint64(len(slots) - 1)
    for group in range(n):
        at = known1[group] & mask
        while slots[at] >= 0:
            at = (at + np.uint64(1)) & mask
        slots[at] = group


class KeyIndex:
    """Keys numbered from 0 in order of appearance; a key is both halves of its hash (uint64).

    >>> index, ones, twos = KeyIndex(), np.full(2, 1, np.uint64), np.array([1, 2], np.uint64)
    >>> [column.tolist() for column in index.number(ones, ones)], len(index)
    ([[0, 0], [0]], 1)
    >>> index.find(twos, twos).tolist()
    [0, -1]
    """

    def __init__(self) -> None:
        self._n = 0
        self._make(_ROOM)

    def __len__(self) -> int:
        return self._n

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return self._slots.nbytes + self._known1.nbytes + self._known2.nbytes

    @property
    def hashes(self) -> tuple[np.ndarray, np.ndarray]:
        """Both halves of all keys' hashes, by number."""
        return self._known1[: self._n], self._known2[: self._n]

    def number(self, h1: np.ndarray, h2: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The number of each row's key, and the row of each new number."""
        numbers, row = np.empty(len(h1), np.int64), 0
        new_rows: list[np.ndarray] = []
        while True:
            held, firsts = self._n, np.empty(len(self._known1), np.int64)
            table = self._slots, self._known1, self._known2
            row, self._n = _number(h1, h2, row, *table, self._n, numbers, firsts)
            new_rows.append(firsts[held : self._n])
            if row == len(h1):
                return numbers, new_rows[0] if len(new_rows) == 1 else np.concatenate(new_rows)
            room = len(self._known1)
            self._move(np.arange(self._n), room * (4 if room < _FAST else 2))

    def find(self, h1: np.ndarray, h2: np.ndarray) -> np.ndarray:
        """The number of each row's key, -1 for unknown keys."""
        numbers = np.empty(len(h1), np.int64)
        _find(h1, h2, self._slots, self._known1, self._known2, numbers)
        return numbers

    def keep(self, chosen: np.ndarray) -> None:
        """Forget all keys except some; these are renumbered in the order of `chosen`."""
        room = _ROOM
        while room < 2 * len(chosen):
            room *= 2
        self._move(chosen, room)

    def widened(self, column: np.ndarray, fill: int) -> np.ndarray:
        """A column with an entry for each number and room for more, filled with `fill`."""
        if len(column) >= self._n:
            return column
        return np.concatenate([column, np.full(len(self._known1) - len(column), fill, column.dtype)])

    def _make(self, room: int) -> None:
        self._slots = np.full(2 * room, -1, np.int64)
        self._known1, self._known2 = np.empty(room, np.uint64), np.empty(room, np.uint64)

    def _move(self, chosen: np.ndarray, room: int) -> None:
        known1, known2 = self._known1, self._known2
        self._make(room)
        self._n = len(chosen)
        self._known1[: self._n], self._known2[: self._n] = known1[chosen], known2[chosen]
        refill(self._slots, self._known1, self._n)
