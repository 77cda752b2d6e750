"""The required size of a Bloom filter in each layout.

Blocked filters need somewhat more than the classic formula, since some blocks get more than their share: the
number of values in a block is Poisson distributed, and the false positive rate is the mean over it.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Literal, NamedTuple

from ..core.parameters import one_of, real, whole
from ..core.protocol import SketchError
from .update import BLOCKED, SPARK_V1, SPARK_V2, WORDS

Layout = Literal["blocked", "spark_v1", "spark_v2"]
LAYOUTS: dict[str, int] = {"blocked": BLOCKED, "spark_v1": SPARK_V1, "spark_v2": SPARK_V2}
MAX_WORDS = 1 << 31


class Shape(NamedTuple):
    """A filter's size: words of 32 bits, and bits set per value."""

    words: int
    k: int


def blocked_rate(per_block: float) -> float:
    """Return the false positive rate of a blocked filter with this average number of values per block.

    >>> round(blocked_rate(25.6), 4)
    0.0126
    """
    likely = math.exp(-per_block)
    rate, n = 0.0, 0
    if likely == 0.0:
        return 1.0
    reach = per_block + 12 * math.sqrt(per_block) + 40
    while n <= reach:
        rate += likely * (1 - (31 / 32) ** n) ** WORDS
        n += 1
        likely *= per_block / n
    return rate


@lru_cache(maxsize=64)
def _per_block(fpp: float) -> float:
    """Return the largest average number of values per block that satisfies the rate."""
    low, high = 0.0, 600.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if blocked_rate(middle) <= fpp else (low, middle)
    return low


def shape(capacity: int, fpp: float, layout: str, family: str = "bloom") -> Shape:
    """Return the size that satisfies `fpp` with `capacity` values. Raises `SketchError` if there is none.

    Spark's layouts have the size that Spark's ``BloomFilter.create(capacity, fpp)`` has.
    """
    one_of(family, "layout", layout, LAYOUTS)
    capacity = whole(family, "capacity", capacity, 1)
    fpp = real(family, "fpp", fpp, 0, 1, within=True)
    if layout == "blocked":
        words, k = WORDS * max(1, math.ceil(capacity / max(_per_block(fpp), 1e-9))), WORDS
    else:
        bits = int(-capacity * math.log(fpp) / (math.log(2) * math.log(2)))
        k = max(1, math.floor(bits / capacity * math.log(2) + 0.5))
        words = 2 * math.ceil(bits / 64)
    if not 0 < words <= MAX_WORDS:
        raise SketchError(f"{family}: capacity {capacity} at fpp {fpp} takes {words} words of 32 bits")
    return Shape(words, k)
