"""Read and write many Bloom filters of one shape, in any of the layouts of `images`.

An image is accepted here only if it is valid and has the groups' own layout, size and seed. `parse` reports
what is wrong with other images.
"""

from __future__ import annotations

import numpy as np

from ..core.compilation.jit import inner, lean
from ..core.hashing.bits import swapped64
from ..core.hashing.words import load32, load64, store64
from ..core.resume import DONE
from ..core.values.item_kinds import ARE_KINDS
from .images import CAPACITY_AT, CHECK_AT, KIND_AT, SEED_AT, UNKNOWN

REFUSED, ANOTHER_KIND = 1, 2
"""The faults that `merge` returns for an image that it can't merge, and for items of another kind."""
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
    """Whether this is the header of a blocked filter of this size and seed with the checksum `check`.

    The caller has checked the kind of its items.
    """
    capacity, fpp = load64(data, begin + CAPACITY_AT), load64(data, begin + CAPACITY_AT + 8)
    # Positive doubles have the order of their bits; the bits of negative doubles and NaN are larger.
    valid = load32(data, begin + CHECK_AT) == check and capacity > 0 and np.uint64(0) < fpp < _ONE
    return valid and _alike(data, begin, head, 0, KIND_AT) and _alike(data, begin, head, SEED_AT, CHECK_AT)


@lean
def merge(tables, slots, head, own, kind, data, offsets, groups, sums):
    """Add filter i, from ``offsets[i]`` on, to group ``groups[i]``; return where it ended, why, and the kind.

    `tables` has the filters as uint64, and `head` is the header with which they are written. ``sums[i]`` is
    the expected checksum in our `own` layout; `kind` is the kind of the items, before and after. If a filter
    is `REFUSED` or of `ANOTHER_KIND`, none is added.
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
    """Write each group's filter after `head`; zeros if the group has none.

    An empty filter has no kind yet, and in our `own` layout the header says so.
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
