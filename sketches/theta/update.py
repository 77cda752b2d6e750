"""Add values to Theta sketches: hash them in blocks, and process only hashes below theta further.

Once a sketch estimates, these are one in a hundred or a million; one comparison finds those below theta among
64 hashes. Hashes come from `hashing.hash`; Theta uses the first half without its lowest bit; zero, which
stands for an empty string, is never stored.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..core.compilation.jit import inner, lean
from ..core.hashing.bits import at_most, ctz64, prefetch
from ..core.hashing.hash import READ_AHEAD, SEED, STEP, hash_block
from ..core.resume import DONE, NO_ROOM
from .store import add_hash

BLOCK = 512
"""Rows of groups looked up together."""

NO_GROUP = 1
"""Why the kernel stopped: a block has an unknown group number, and none of its rows were counted."""


@inner
def _keep(store, h1, n):
    """Store the first `n` hashes in sketch 0; may read `READ_AHEAD` more. Returns the first without room, or
    −1."""
    for begin in range(0, n, READ_AHEAD):
        # Theta's hash is h1 without its lowest bit: h1 ≤ 2 · theta − 1 means h1 >> 1 < theta. If theta falls
        # during these 64, `add_hash` drops hashes that are no longer below it.
        limit = np.uint64(2) * np.uint64(store.sketches[0].theta) - np.uint64(1)
        n_kept = at_most(h1, begin, limit)
        if n - begin < READ_AHEAD:
            n_kept &= (np.uint64(1) << np.uint64(n - begin)) - np.uint64(1)
        while n_kept:
            i = begin + np.int64(ctz64(n_kept))
            n_kept &= n_kept - np.uint64(1)
            value = np.int64(h1[np.uint64(i)] >> np.uint64(1))
            if value and not add_hash(store, 0, value):
                return i
    return np.int64(-1)


@lean
def update_one_int64(store, values, h1, h2, at):
    """Count int64 values in sketch 0, from number `at` on; `h1` and `h2` are scratch of `STEP` words.

    Returns how far it came, and why it stopped.
    """
    for start in range(at, len(values), STEP):
        block = values[start : start + STEP]
        hash_block(block, SEED, h1, h2)
        stopped = _keep(store, h1, len(block))
        if stopped >= 0:
            return start + stopped, NO_ROOM
    return len(values), DONE


@lean
def update_one(store, h1, n, at):
    """Count the first `n` hashes in sketch 0, from number `at` on; return how far it came, and why it
    stopped."""
    stopped = _keep(store, h1[at:], n - at)
    if stopped >= 0:
        return at + stopped, NO_ROOM
    return n, DONE


class UpdateScratch(NamedTuple):
    """Scratch for a block's rows: whether they are below theta, and which are."""

    flags: np.ndarray
    candidates: np.ndarray


def new_update_scratch() -> UpdateScratch:
    """Return scratch for one call."""
    return UpdateScratch(np.empty(BLOCK, np.uint8), np.empty(BLOCK, np.int64))


@inner
def _look_up(store, n, groups, h1, flags):
    """Flag rows whose hashes are below their group's theta; return False if a group number is not below
    `n`."""
    sketches = store.sketches
    outside = False
    for i in range(len(groups)):
        g = np.uint64(groups[i])
        inside = g < np.uint64(n)
        outside |= not inside
        value = np.int64(h1[i] >> np.uint64(1))
        flags[i] = (value < sketches[g if inside else np.uint64(0)].theta) & (value != 0)
    return not outside


@lean
def update_groups(store, n, groups, h1, scratch, at):
    """Count each hash in its group (there are `n` groups), from number `at` on.

    Returns how far it came, and why it stopped.
    """
    for first in range(at, len(groups), BLOCK):
        some, mine = h1[first : first + BLOCK], groups[first : first + BLOCK]
        if not _look_up(store, n, mine, some, scratch.flags):
            return first, NO_GROUP
        below = np.int64(0)
        for i in range(len(mine)):  # without a branch, which would be unpredictable
            scratch.candidates[below] = i
            below += np.int64(scratch.flags[i])
        for place in scratch.candidates[:below]:  # prefetch what will be written
            sketch = store.sketches[np.uint64(mine[place])]
            prefetch(store.words, np.uint64(sketch.where + np.int64(sketch.count)))
        for place in scratch.candidates[:below]:
            if not add_hash(store, mine[place], np.int64(some[np.uint64(place)] >> np.uint64(1))):
                return first + place, NO_ROOM
    return len(groups), DONE
