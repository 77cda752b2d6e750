"""Many Bloom filters of one shape from and to their bytes, in any of the layouts of `images`.

An image is taken here only if it is valid and of the groups' own layout, size and seed. What else is wrong
with one is told by `parse`.
"""

from __future__ import annotations

import numpy as np

from ..core.bits import swapped64
from ..core.jit import inner, lean
from ..core.resume import DONE
from ..core.words import load32, load64, store64
from .images import CAPACITY_AT, CHECK_AT, SEED_AT

REFUSED = 1
"""What `merge` calls the fault of an image that it can't take."""
_ONE = np.float64(1).view(np.uint64)


@inner
def _alike(data, begin, head, first, end):
    same = True
    for i in range(first, end):
        same = same and data[begin + i] == head[i]
    return same


@inner
def _is_own(data, begin, head, check):
    """Whether the header is that of a blocked filter of this size and seed, whose check sum is `check`."""
    capacity, fpp = load64(data, begin + CAPACITY_AT), load64(data, begin + CAPACITY_AT + 8)
    # Positive doubles are in the order of their bits; those of negative ones and NaN are larger.
    valid = load32(data, begin + CHECK_AT) == check and capacity > 0 and np.uint64(0) < fpp < _ONE
    return (
        valid and _alike(data, begin, head, 0, CAPACITY_AT) and _alike(data, begin, head, SEED_AT, CHECK_AT)
    )


@lean
def merge(tables, slots, head, own, data, offsets, groups, sums):
    """Add filter i, from ``offsets[i]`` on, to that of group ``groups[i]``; where it ends, and why.

    `tables` are the filters as uint64 and `head` is the header they are written with. ``sums[i]`` is the
    check sum as it should be, in our `own` layout.
    """
    for i in range(len(groups)):
        begin = offsets[i]
        if offsets[i + 1] - begin != len(head) + 8 * tables.shape[1]:
            return i, REFUSED
        if not (_is_own(data, begin, head, sums[i]) if own else _alike(data, begin, head, 0, len(head))):
            return i, REFUSED
        first = begin + len(head)
        table = tables[slots[groups[i]]]
        if own:
            for w in range(len(table)):
                table[w] |= load64(data, first + 8 * w)
        else:
            for w in range(len(table)):
                table[w] |= swapped64(load64(data, first + 8 * w))
    return len(groups), DONE


@lean
def write(tables, slots, head, own, data):
    """The filter of each group with `head` before it; zeros where the group has none."""
    size = len(head) + 8 * tables.shape[1]
    for g in range(len(data) // size):
        begin = g * size
        for i in range(len(head)):
            data[begin + i] = head[i]
        first = begin + len(head)
        for w in range(tables.shape[1]):
            word = tables[slots[g], w] if slots[g] >= 0 else np.uint64(0)
            store64(data, first + 8 * w, word if own else swapped64(word))
