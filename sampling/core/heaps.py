"""Many bottom-k samples in a few arrays: a heap of priorities per group, with the least at the top.

Group g owns `room` slots from ``heaps[g].start`` on; the first `size` form a binary heap; a slot is a
priority and the number of its item. Groups get slots as they grow, never more than their k (`pool`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...sketches.core.compilation.jit import inner, lean

HEAP = np.dtype(
    [
        ("start", "i8"),
        ("size", "i8"),
        ("room", "i8"),
        ("k", "i8"),
        ("seen", "i8"),
        ("state", "u8"),
        ("left", "f8"),
        ("seeded", "i8"),
    ]
)
"""A group, in one cache line: rows `seen` so far, its random `state`, and the rest of its jump, `left`, the
weight still to be skipped before the next row is sampled; `seeded` is 1 if these two are stored in the
bytes."""

UNDRAWN = -1.0
"""The `left` of a group whose next jump will be drawn at its next row."""


class Slots(NamedTuple):
    """The slots of all groups: priorities (float64) and item numbers (int64)."""

    priorities: np.ndarray
    items: np.ndarray


def new_slots(n: int) -> Slots:
    """Return unfilled slots for this many items."""
    return Slots(np.empty(n, np.float64), np.empty(n, np.int64))


@inner
def is_full(heap):
    """Whether the group has k items, so that only priorities above the least stored enter."""
    return heap.size >= heap.k


@inner
def push(heap, slots, priority, item):
    """Add an item to a group that isn't full and has room."""
    start = heap.start
    at = heap.size
    heap.size += 1
    while at > 0:
        above = (at - 1) >> 1
        if slots.priorities[start + above] <= priority:
            break
        slots.priorities[start + at] = slots.priorities[start + above]
        slots.items[start + at] = slots.items[start + above]
        at = above
    slots.priorities[start + at] = priority
    slots.items[start + at] = item


@inner
def replace(heap, slots, priority, item):
    """Replace the least item."""
    priorities, items = slots.priorities, slots.items
    first = heap.start
    end = first + heap.size
    at = first
    below = first + 1
    while below + 1 < end:
        # Added instead of a branch: which child is smaller can't be predicted.
        below += np.int64(priorities[below + 1] < priorities[below])
        if priorities[below] >= priority:
            break
        priorities[at] = priorities[below]
        items[at] = items[below]
        at = below
        below = 2 * at - first + 1
    if below + 1 == end and priorities[below] < priority:
        priorities[at] = priorities[below]
        items[at] = items[below]
        at = below
    priorities[at] = priority
    items[at] = item


@inner
def drop_least(heap, slots):
    """Remove the least item."""
    heap.size -= 1
    last = heap.start + heap.size
    if heap.size > 0:
        replace(heap, slots, slots.priorities[last], slots.items[last])


@inner
def offer(heap, slots, priority, item):
    """Offer an item with its priority: it enters while there is room, or if it is above the least."""
    if not is_full(heap):
        push(heap, slots, priority, item)
    elif priority > slots.priorities[heap.start]:
        replace(heap, slots, priority, item)


@lean
def offer_all(heaps, slots, groups, coming, first_item, entered):
    """Offer rows with priorities to their groups; `entered` gets the rows that enter. Returns how many."""
    count = np.int64(0)
    for row in range(len(groups)):
        heap = heaps[groups[row]]
        if is_full(heap) and coming[row] <= slots.priorities[heap.start]:
            continue
        offer(heap, slots, coming[row], first_item + count)
        entered[count] = row
        count += 1
    return count


@lean
def shrink(heaps, slots, most):
    """Lower each group's k to its number in `most`."""
    for g in range(len(heaps)):
        heap = heaps[g]
        if most[g] < heap.k:
            heap.k = most[g]
            # The jump was for another least priority. Exponentials are memoryless, so a new draw is as fair.
            heap.left = UNDRAWN
            while heap.size > heap.k:
                drop_least(heap, slots)


@lean
def merge(heaps, slots, groups, samples, coming, first_item):
    """Merge whole samples into groups: `samples` as in `images.Parts`, `coming` their items' priorities,
    sample
    by sample, with items numbered from `first_item` on.

    The smaller k wins, since a sample has no information beyond its own k. Random states are added, which is
    independent of order; an empty sample changes nothing.
    """
    at = np.int64(0)
    for i in range(len(groups)):
        heap = heaps[groups[i]]
        sample = samples[i]
        left = heap.left
        if sample.k < heap.k and sample.seen > 0:
            heap.k = sample.k
            left = UNDRAWN
            while heap.size > heap.k:
                drop_least(heap, slots)
        if heap.seen == 0 and sample.seen > 0:
            heap.state = sample.state
            heap.seeded = sample.seeded
            left = sample.left if sample.k == heap.k else UNDRAWN
        elif heap.seen == 0 or sample.seen > 0:
            heap.state += sample.state
            heap.seeded &= sample.seeded
            left = UNDRAWN
        heap.seen += sample.seen
        for j in range(at, at + sample.size):
            offer(heap, slots, coming[j], first_item + j)
        at += sample.size
        heap.left = left


@lean
def drain(heaps, slots):
    """Sort each group's slots, greatest priority first, and empty its heap.

    Each least item is moved behind the rest of the heap: a heapsort, which needs no room and no other kernel.
    Among equal priorities, which only occur in forged images and copies, the earlier item comes first.
    """
    for g in range(len(heaps)):
        heap = heaps[g]
        size = heap.size
        while heap.size > 0:
            priority, item = slots.priorities[heap.start], slots.items[heap.start]
            drop_least(heap, slots)
            slots.priorities[heap.start + heap.size] = priority
            slots.items[heap.start + heap.size] = item
        for last in range(heap.start + 1, heap.start + size):
            item = slots.items[last]
            at = last
            while (
                at > heap.start
                and slots.priorities[at - 1] == slots.priorities[last]
                and slots.items[at - 1] > item
            ):
                slots.items[at] = slots.items[at - 1]
                at -= 1
            slots.items[at] = item
