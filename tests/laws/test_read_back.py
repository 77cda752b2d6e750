"""Whatever calls have made a sketch, the image of it is one that is read back."""

from __future__ import annotations

import numpy as np

from .families import Family, sized
from .family import each_family
from .streams import fresh

N = 3
LARGEST = 5_000


def grow_and_read(family: Family, kind: str, seed: int) -> None:
    """Feed groups and merge others into them, batches of any size, and read them back after each call."""
    random = np.random.default_rng(seed)
    groups, at = family.many(N, kind, seed=seed), 0

    def feed(some: object) -> None:
        nonlocal at
        rows = int(LARGEST ** random.random()) + 1
        column = fresh(kind, int(random.integers(1 << 30)), rows)
        family.feed_groups(some, random.integers(0, N, rows), column, at)
        at += rows

    for _ in range(random.integers(2, 16)):
        if random.random() < 0.5:
            feed(groups)
        else:
            other = family.many(N, kind, seed=seed + 1)
            for _ in range(random.integers(1, 4)):
                feed(other)
            groups.merge(np.arange(N), other.to_arrow())
        again = family.many(N, kind, seed=5)
        again.merge(np.arange(N), groups.to_arrow())
        for group in range(N):
            assert getattr(again[group], "n", None) == getattr(groups[group], "n", None)


@each_family(("family", "kind", "seed"), sized((1, 2, 0)), ids=str)
def test_any_calls_leave_what_is_read_back(family: Family, kind: str, seed: int) -> None:
    grow_and_read(family, kind, seed)
