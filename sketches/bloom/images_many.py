"""Many Bloom filters of one shape from and to their bytes, in any of the layouts of `images`.

An image is accepted here only if it is valid and of the groups' own layout, size and seed. What else is wrong
with one is reported by `parse`.
"""

from __future__ import annotations

import numpy as np

from ..core.bits import swapped64
from ..core.item_kinds import ARE_KINDS
from ..core.jit import inner, lean
from ..core.resume import DONE
from ..core.words import load32, load64, store64
from .images import CAPACITY_AT, CHECK_AT, KIND_AT, SEED_AT, UNKNOWN

REFUSED, ANOTHER_KIND = 1, 2
"""What `merge` calls the fault of an image that it can't take, and of one whose items are of another kind."""
_UNKNOWN = np.uint8(UNKNOWN[0])
_ONE = np.float64(1).view(np.uint64)


@inner
def _alike(data, begin, head, first, end):
    same = True
    for i in range(first, end):
        same = same and data[begin + i] == head[i]
    return same


@inner
def _is_own(data, begin, head, check):
    """Whether the header is that of a blocked filter of this size and seed, whose check sum is `check`.

    The caller has checked the kind of its items.
    """
    capacity, fpp = load64(data, begin + CAPACITY_AT), load64(data, begin + CAPACITY_AT + 8)
    # Positive doubles are in the order of their bits; those of negative ones and NaN are larger.
    valid = load32(data, begin + CHECK_AT) == check and capacity > 0 and np.uint64(0) < fpp < _ONE
    return valid and _alike(data, begin, head, 0, KIND_AT) and _alike(data, begin, head, SEED_AT, CHECK_AT)


@lean
def merge(tables, slots, head, own, kind, data, offsets, groups, sums):
    """Add filter i, from ``offsets[i]`` on, to that of group ``groups[i]``; where it ends, why, and the kind.

    `tables` are the filters as uint64 and `head` is the header they are written with. ``sums[i]`` is the
    check sum as it should be, in our `own` layout; `kind` stands for the kind of the items, before and after.
    Where one is `REFUSED` or of `ANOTHER_KIND`, none is added.
    """
    for i in range(len(groups)):
        begin = offsets[i]
        if offsets[i + 1] - begin != len(head) + 8 * tables.shape[1]:
            return i, REFUSED, kind
        if not own:
            if not _alike(data, begin, head, 0, len(head)):
                return i, REFUSED, kind
            continue
        if not _is_own(data, begin, head, sums[i]):
            return i, REFUSED, kind
        code = data[begin + KIND_AT]
        if code != kind and ARE_KINDS[code]:
            if ARE_KINDS[kind]:
                return i, ANOTHER_KIND, kind
            kind = code
    for i in range(len(groups)):
        first = offsets[i] + len(head)
        table = tables[slots[groups[i]]]
        if own:
            for w in range(len(table)):
                table[w] |= load64(data, first + 8 * w)
        else:
            for w in range(len(table)):
                table[w] |= swapped64(load64(data, first + 8 * w))
    return len(groups), DONE, kind


@lean
def write(tables, slots, head, own, data):
    """The filter of each group with `head` before it; zeros where the group has none.

    An empty filter is of no kind yet, which in our `own` layout its header says.
    """
    size = len(head) + 8 * tables.shape[1]
    for g in range(len(data) // size):
        begin = g * size
        for i in range(len(head)):
            data[begin + i] = head[i]
        first = begin + len(head)
        bits = np.uint64(0)
        if slots[g] >= 0:
            table = tables[slots[g]]
            for w in range(len(table)):
                bits |= table[w]
                store64(data, first + 8 * w, table[w] if own else swapped64(table[w]))
        else:
            data[first : begin + size] = 0
        if own and bits == 0:
            data[begin + KIND_AT] = _UNKNOWN
