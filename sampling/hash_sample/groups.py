"""Hash samples of many groups at once, by group number."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ...sketches.core.aggregated import Aggregated
from ...sketches.core.columns.arrays import as_input, is_scalar
from ...sketches.core.compilation.jit import lean
from ...sketches.core.hashing.random import step
from ..core.bernoulli_base import ShareGroups, of_rows
from ..core.items import Rows, hash_items

# Not the sketches' seed: keys sampled by the same hash that counts them would be counted wrongly.
_SEED = np.uint64(0x51EE7)


@lean
def _states(heaps, groups, states):
    """Draw a random state for each row from its group."""
    for row in range(len(groups)):
        heap = heaps[groups[row]]
        states[row] = heap.state
        heap.state = step(heap.state)


class HashSampleGroups(ShareGroups):
    """The rows of a share of keys for each of many groups; `HashSample` states the promise.

    >>> groups = HashSampleGroups(2, p=1.0)
    >>> groups.update([0, 1, 1], ["a", "b", "c"], key=["ann", "bob", None])
    >>> len(groups[1])
    1
    """

    aggregate: ClassVar = Aggregated({"p": 0.01}, inputs=("key",), seeded=True)

    def __init__(self, n: int = 0, p: float = 0.01, seed: int | None = None) -> None:
        super().__init__("HashSample", 7, n, p, seed)

    def update(self, groups: Any, values: Any, key: Any = None) -> None:
        """Add values with a key per row to their groups. Raises what `HashSample.update` raises."""
        self._update_groups(groups, values, key=key)

    def _prepare(self, rows: Rows, key: Any = None) -> np.ndarray:
        if key is None:
            raise TypeError("HashSample: expected update(…, key=…), one key a row")
        chosen = keys_in_share(key, self.p)
        return np.flatnonzero(
            rows.per_item(np.repeat(chosen, rows.length) if is_scalar(key) else chosen, "key")
        )

    def _choose(self, groups: np.ndarray | None, n: int, prepared: Any) -> tuple[np.ndarray, np.ndarray]:
        states = np.empty(len(prepared), np.uint64)
        _states(self._pool.heaps, of_rows(groups, prepared), states)
        return prepared, states


def keys_in_share(keys: Any, p: float) -> np.ndarray:
    """Return which keys belong to the share p of all keys, the same in every stream, process and year.

    It uses a MurmurHash3 of the key with a seed that no sketch uses, so that samples can still be counted. A
    share is contained in every larger one. A null key belongs to none.

    >>> users = ["ann", "bob", "ann", None]
    >>> keys_in_share(users, 1.0).tolist()
    [True, True, True, False]
    """
    array = as_input("key", keys)
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    if p >= 1.0:
        return np.asarray(valid)
    return np.asarray(valid & (hash_items(array, _SEED) < np.uint64(int(p * 2.0**64))))
