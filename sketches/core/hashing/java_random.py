"""The first numbers of `java.util.Random`, which determine the hash functions of Spark's sketches.

Source: the specification of `java.util.Random`: a 48-bit linear congruential generator, of which
``nextInt(2^31 − 1)`` returns the top 31 bits, and draws again if they are all ones.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

_FACTOR, _ADDEND, _MASK = 0x5DEECE66D, 0xB, (1 << 48) - 1
_INVERSE = pow(_FACTOR, -1, 1 << 48)
_TOP = (1 << 31) - 1


@lru_cache(maxsize=64)
def next_ints(seed: int, n: int) -> tuple[int, ...]:
    """Return the results of ``new Random(seed)`` and `n` times ``nextInt(Integer.MAX_VALUE)``.

    >>> next_ints(42, 2)
    (1562431130, 117392763)
    """
    state = (seed ^ _FACTOR) & _MASK
    out: list[int] = []
    while len(out) < n:
        state = (state * _FACTOR + _ADDEND) & _MASK
        if state >> 17 != _TOP:
            out.append(state >> 17)
    return tuple(out)


@lru_cache(maxsize=64)
def seeds_of(numbers: tuple[int, ...]) -> tuple[int, ...]:
    """Return all int32 seeds that produce these numbers, ascending.

    Two or more numbers nearly always have one seed; a single number has a few, or none.

    >>> seeds_of(next_ints(-7, 5)), seeds_of(next_ints(-7, 1))
    ((-7,), (-551283440, -7, 290106928, 1857078315))
    """
    if not numbers or min(numbers) < 0 or max(numbers) >= _TOP:
        return ()
    states = (np.uint64(numbers[0]) << np.uint64(17)) | np.arange(1 << 17, dtype=np.uint64)
    before = ((states - np.uint64(_ADDEND)) * np.uint64(_INVERSE)) & np.uint64(_MASK)
    seeds = (before ^ np.uint64(_FACTOR)).astype(np.int64)
    seeds = np.where(seeds >> 47 != 0, seeds - (1 << 48), seeds)
    small = seeds[(seeds >= -(1 << 31)) & (seeds < 1 << 31)]
    return tuple(seed for seed in sorted(small.tolist()) if next_ints(seed, len(numbers)) == numbers)
