"""A fixed share of the rows: each row on its own (`BernoulliSample`), or the same keys' (`HashSample`)."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa

from ..sketches.core.aggregated import Aggregated
from ..sketches.core.columns import as_array
from ..sketches.core.jit import inner, lean
from ..sketches.core.parameters import real
from ..sketches.core.protocol import SketchError
from ..sketches.core.random import step
from .core.bottom_k import BottomK, BottomKGroups
from .core.heaps import UNDRAWN
from .core.images import MOST_K, Format
from .core.items import Rows, bits_of, hash_items
from .core.pool import Pool
from .core.priority import absorb, exponential, exponential_below, item_bits
from .reservoir.bounds import share_error

# Not the sketches' seed: keys sampled by the hash they are counted by would be counted wrongly.
_SEED = np.uint64(0x51EE7)


@inner
def _draw_jump(heap, mean):
    if heap.left < 0.0:
        heap.left = exponential(heap.state) * mean
        heap.state = step(heap.state)


@inner
def _land(heap):
    """The random state of the row a jump ended at."""
    state = heap.state
    heap.state = step(state)
    heap.left = UNDRAWN
    return state


@lean
def _pick_one(heaps, rows, mean, taken, states):
    """Jump over rows of group 0, `mean` of them on average between two taken; how many are."""
    heap = heaps[0]
    count = np.int64(0)
    row = np.int64(0)
    while row < rows:
        _draw_jump(heap, mean)
        if heap.left >= rows - row:
            heap.left -= rows - row
            break
        row += np.int64(heap.left)
        taken[count] = row
        states[count] = _land(heap)
        count += 1
        row += 1
    return count


@lean
def _pick_many(heaps, groups, mean, taken, states):
    """Jump over the rows of each group."""
    count = np.int64(0)
    for row in range(len(groups)):
        heap = heaps[groups[row]]
        _draw_jump(heap, mean)
        if heap.left >= 1.0:
            heap.left -= 1.0
            continue
        taken[count] = row
        states[count] = _land(heap)
        count += 1
    return count


@lean
def _states(heaps, groups, states):
    """A random state for each row of its group."""
    for row in range(len(groups)):
        heap = heaps[groups[row]]
        states[row] = heap.state
        heap.state = step(heap.state)


@lean
def _priorities(states, most, items, out):
    for row in range(len(states)):
        out[row] = -exponential_below(most, absorb(states[row], item_bits(items, row)))


def _of(groups: np.ndarray | None, taken: np.ndarray) -> np.ndarray:
    return np.zeros(len(taken), np.int64) if groups is None else groups[taken]


class _ShareGroups(BottomKGroups):
    """Samples of a share p of the rows; a family says which (`_choose`)."""

    _pool: Pool

    def __init__(self, name: str, number: int, n: int, p: float, seed: int | None) -> None:
        p = real(name, "p", p, 0.0, 1.0)
        if not p:
            raise SketchError(f"{name}: p must be a probability above 0, up to 1, got {p!r}")
        self._format = Format(name, number, p)
        # The exponential number of a row taken is below this, with probability p. For p = 1 all but 10^−304.
        self._most = -math.log1p(-p) if p < 1.0 else 700.0
        self._pool = Pool(n, MOST_K, seed)

    @property
    def p(self) -> float:
        """The probability with which a row, or a key, is taken."""
        return self._format.parameter

    def _update(self, groups: np.ndarray | None, rows: Rows, inputs: dict[str, Any]) -> None:
        pool = self._pool
        taken, states = self._choose(groups, rows, **inputs)
        if not len(rows.items):
            return
        pool.items.accept(rows.items.type, self._format.name)
        if groups is None:
            pool.heaps["seen"][0] += len(rows.items)
        else:
            pool.heaps["seen"] += np.bincount(groups, minlength=len(self))
        items = rows.items.take(pa.array(taken))
        priorities = np.empty(len(taken), np.float64)
        _priorities(states, self._most, bits_of(items), priorities)
        pool.add(_of(groups, taken), priorities, items)

    @abstractmethod
    def _choose(self, groups: np.ndarray | None, rows: Rows, **inputs: Any) -> tuple[np.ndarray, np.ndarray]:
        """The items to take and a random state for each."""


class _Share(BottomK):
    _groups: _ShareGroups

    @property
    def p(self) -> float:
        """The probability with which a row, or a key, is taken."""
        return self._groups.p

    def __repr__(self) -> str:
        return f"{self.family}(p={self.p}): {len(self):,} of {self.n:,} rows"


class BernoulliSampleGroups(_ShareGroups):
    """A share of the rows of each of many groups; `BernoulliSample` states the promise.

    >>> groups = BernoulliSampleGroups(2, p=1.0)
    >>> groups.update([0, 1, 1], ["a", "b", "c"])
    >>> len(groups[1])
    2
    """

    aggregate: ClassVar = Aggregated({"p": 0.01}, seeded=True)

    _single: ClassVar[type[BottomK]]

    def __init__(self, n: int = 0, p: float = 0.01, seed: int | None = None) -> None:
        super().__init__("BernoulliSample", 6, n, p, seed)

    def _choose(self, groups: np.ndarray | None, rows: Rows, **inputs: Any) -> tuple[np.ndarray, np.ndarray]:
        if inputs:
            raise TypeError(f"BernoulliSample.update() takes no {', '.join(inputs)}")
        n = len(rows.items)
        taken, states = np.empty(n, np.int64), np.empty(n, np.uint64)
        mean = 0.0 if self.p == 1.0 else 1.0 / self._most
        if groups is None:
            count = _pick_one(self._pool.heaps, n, mean, taken, states)
        else:
            count = _pick_many(self._pool.heaps, groups, mean, taken, states)
        return taken[:count], states[:count]


class BernoulliSample(_Share):
    """Each row with probability p, on its own: a sample that grows with the stream.

    Of n rows it holds a binomial number of mean n·p, with 95 % confidence within 2·sqrt(n·p·(1 − p)) of it.
    A count of rows read off it, divided by p, is unbiased. Between two rows taken it jumps a geometric number
    of rows. Merging puts both together: exact, associative and commutative. Memory is n·p items and 16 bytes
    each. `seed` is as in `Reservoir`.

    Raises `SketchError` for a p out of range, samples of another p, and bytes that aren't a Bernoulli sample;
    `TypeError` for inputs that it doesn't take.

    Source: Särndal, Swensson, Wretman, "Model Assisted Survey Sampling", 1992, section 3.2; jumps: Vitter,
    "Faster Methods for Random Sampling", CACM 1984.

    >>> sample = BernoulliSample(0.1, seed=1).update(range(10_000))
    >>> 900 < len(sample) < 1100
    True
    """

    family = "BernoulliSample"

    def __init__(self, p: float = 0.01, seed: int | None = None) -> None:
        self._groups = BernoulliSampleGroups(1, p, seed)

    @classmethod
    def _empty(cls, k: int, parameter: float) -> Self:
        return cls(parameter)

    def update(self, values: Any) -> Self:
        """Add a scalar, a list, a NumPy or Arrow column, or records; nulls are skipped."""
        return self._update(values)

    def error(self, confidence: float = 0.95) -> float:
        """How far a share read off the sample is from the stream's, at most, at that confidence.

        Hoeffding's bound sqrt(ln(2 / (1 − confidence)) / 2m) for m items; 0 while the sample is the stream.
        """
        error = share_error(len(self), confidence)
        return error if len(self) < self.n else 0.0


class HashSampleGroups(_ShareGroups):
    """The rows of a share of keys for each of many groups; `HashSample` states the promise.

    >>> groups = HashSampleGroups(2, p=1.0)
    >>> groups.update([0, 1, 1], ["a", "b", "c"], key=["ann", "bob", None])
    >>> len(groups[1])
    1
    """

    aggregate: ClassVar = Aggregated({"p": 0.01}, inputs=("key",), seeded=True)

    _single: ClassVar[type[BottomK]]

    def __init__(self, n: int = 0, p: float = 0.01, seed: int | None = None) -> None:
        super().__init__("HashSample", 7, n, p, seed)

    def _choose(
        self, groups: np.ndarray | None, rows: Rows, key: Any = None, **inputs: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        if inputs or key is None:
            raise TypeError("HashSample: expected update(…, key=…), one key a row")
        taken = np.flatnonzero(rows.per_item(keys_in_share(key, self.p), "key"))
        states = np.empty(len(taken), np.uint64)
        _states(self._pool.heaps, _of(groups, taken), states)
        return taken, states


def keys_in_share(keys: Any, p: float) -> np.ndarray:
    """Which keys belong to the share p of all keys: the same ones in every stream, process and year.

    By a MurmurHash3 of the key that no sketch uses, so what is sampled can still be counted. A share is part
    of every larger one. A null key belongs to none.

    >>> users = pa.array(["ann", "bob", "ann", None])
    >>> keys_in_share(users, 1.0).tolist()
    [True, True, True, False]
    """
    array = as_array(keys)
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    if p >= 1.0:
        return np.asarray(valid)
    return np.asarray(valid & (hash_items(array, _SEED) < np.uint64(int(p * 2.0**64))))


class HashSample(_Share):
    """All rows of a share p of the keys: the same users in every stream, so that their rows can be joined.

    Of m different keys it holds a binomial number of mean m·p, chosen by a hash of the key alone, and of
    those keys every row: what is counted per key (sessions, journeys, repeat purchases) is exact for them.
    With 95 % confidence the number of keys is within 2·sqrt(m·p·(1 − p)) of its mean; the choice is the same
    in each run, so repeating does not average it out. Merging puts both together. Memory is the rows taken
    and 16 bytes each.

    Raises `SketchError` for a p out of range, samples of another p, and bytes that aren't a hash sample;
    `TypeError` for a missing key or inputs that it doesn't take.

    Source: Duffield, Grossglauser, "Trajectory Sampling for Direct Traffic Observation", IEEE/ACM ToN 2001.

    >>> visits = HashSample(0.5).update(["/a", "/b"], key=["ann", "bob"])
    >>> orders = HashSample(0.5).update([17.5, 3.0], key=["bob", "ann"])
    >>> len(visits) == len(orders)
    True
    """

    family = "HashSample"

    def __init__(self, p: float = 0.01, seed: int | None = None) -> None:
        self._groups = HashSampleGroups(1, p, seed)

    @classmethod
    def _empty(cls, k: int, parameter: float) -> Self:
        return cls(parameter)

    def update(self, values: Any, key: Any = None) -> Self:
        """Add values with their keys, one a row."""
        return self._update(values, key=key)


BernoulliSampleGroups._single = BernoulliSample
HashSampleGroups._single = HashSample
