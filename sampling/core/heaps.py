"""Many bottom-k samples in a few arrays: a heap of priorities a group, the least kept one on top.

Group g owns the slots from ``heaps[g].start`` on, as many as its `room`, of which the first `size` form a
binary heap; a slot is a priority and the number of its item, in two arrays. Groups get slots as they grow,
never more than their k.
"""

from __future__ import annotations

import numpy as np

from ...sketches.core.jit import inlined, kernel

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
"""A group, in one cache line: `seen` rows so far, its random `state`, and what is `left` of its jump, the
weight still to pass by before the next row is taken; `seeded` is 1 where those two are kept in the bytes."""

UNDRAWN = -1.0
"""`left` of a group whose next jump is to be drawn at its next row."""


@inlined
def is_full(heap):
    """Whether the group holds k items, so that only priorities above the least kept enter."""
    return heap.size >= heap.k


@kernel
def push(heap, priorities, items, priority, item):
    """Add to a group that isn't full and has room."""
    start = heap.start
    at = heap.size
    heap.size += 1
    while at > 0:
        above = (at - 1) >> 1
        if priorities[start + above] <= priority:
            break
        priorities[start + at] = priorities[start + above]
        items[start + at] = items[start + above]
        at = above
    priorities[start + at] = priority
    items[start + at] = item


@kernel
def replace(heap, priorities, items, priority, item):
    """Put in the place of the least."""
    first = heap.start
    end = first + heap.size
    at = first
    below = first + 1
    while below + 1 < end:
        # Added, not branched on: which child is the lesser can't be predicted.
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


@kernel
def drop_least(heap, priorities, items):
    """Remove the least."""
    heap.size -= 1
    last = heap.start + heap.size
    if heap.size > 0:
        replace(heap, priorities, items, priorities[last], items[last])


@inlined
def offer(heap, priorities, items, priority, item):
    """An item with a priority of its own: it enters while there is room or if it is above the least."""
    if not is_full(heap):
        push(heap, priorities, items, priority, item)
    elif priority > priorities[heap.start]:
        replace(heap, priorities, items, priority, item)


@kernel
def offer_all(heaps, priorities, items, groups, coming, first_item, taken):
    """Rows with priorities of their own into their groups; fills `taken` with those that enter; how many."""
    count = np.int64(0)
    for row in range(len(groups)):
        heap = heaps[groups[row]]
        if is_full(heap) and coming[row] <= priorities[heap.start]:
            continue
        offer(heap, priorities, items, coming[row], first_item + count)
        taken[count] = row
        count += 1
    return count


@kernel
def shrink(heaps, priorities, items, most):
    """Lower each group's k to what `most` has for it."""
    for g in range(len(heaps)):
        heap = heaps[g]
        if most[g] < heap.k:
            heap.k = most[g]
            heap.left = UNDRAWN
            while heap.size > heap.k:
                drop_least(heap, priorities, items)


@kernel
def merge(heaps, priorities, items, groups, samples, coming, first_item):
    """Whole samples into groups: `samples` as in `images.Parts`, `coming` their items' priorities, sample by
    sample, those items numbered from `first_item` on.

    The smaller k wins, since below its own k a sample knows nothing. Random states are added up, which no
    order changes; a sample that has seen nothing changes nothing.
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
                drop_least(heap, priorities, items)
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
            offer(heap, priorities, items, coming[j], first_item + j)
        at += sample.size
        heap.left = left


@kernel
def rooms_wanted(heaps, coming, wanted):
    """Set `wanted[g]` to the slots group g needs if so many rows come, 0 where it has them; the new total."""
    total = np.int64(0)
    for g in range(len(coming)):
        wanted[g] = 0
        if coming[g] > 0:
            heap = heaps[g]
            need = min(heap.k, heap.size + coming[g])
            if need > heap.room:
                wanted[g] = min(heap.k, max(need, 2 * heap.room))
                total += wanted[g]
    return total


@kernel
def move(heaps, priorities, items, wanted, end):
    """Move each group that wants more room to slots of its own from `end` on."""
    for g in range(len(wanted)):
        if wanted[g] > 0:
            heap = heaps[g]
            for j in range(heap.size):
                priorities[end + j] = priorities[heap.start + j]
                items[end + j] = items[heap.start + j]
            heap.start = end
            heap.room = wanted[g]
            end += wanted[g]
    return end


@kernel
def pack(heaps, priorities, items, packed_priorities, packed_items):
    """Copy the slots in use into fresh arrays, each group's after the other; how many they are."""
    end = np.int64(0)
    for g in range(len(heaps)):
        heap = heaps[g]
        for j in range(heap.size):
            packed_priorities[end + j] = priorities[heap.start + j]
            packed_items[end + j] = items[heap.start + j]
        heap.start = end
        heap.room = heap.size
        end += heap.size
    return end


@kernel
def renumber(heaps, items, numbers):
    """Number the items kept from 0 on; `numbers` gets the old number of each."""
    count = np.int64(0)
    for g in range(len(heaps)):
        for at in range(heaps[g].start, heaps[g].start + heaps[g].size):
            numbers[count] = items[at]
            items[at] = count
            count += 1


@kernel
def sorted_slots(heaps, priorities, groups, out):
    """The slots of these groups one after the other, each group's greatest priority first."""
    end = np.int64(0)
    for i in range(len(groups)):
        heap = heaps[groups[i]]
        order = np.argsort(-priorities[heap.start : heap.start + heap.size])
        for j in range(heap.size):
            out[end + j] = heap.start + order[j]
        end += heap.size
