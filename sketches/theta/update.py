"""Values to Theta sketches: hashed a block at a time, and only hashes below theta go any further.

Once a sketch estimates, that is one in a hundred or a million: a block whose smallest hash is not below theta
is done; else the few that are get gathered without branches.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..core.bits import prefetch
from ..core.columns import Values
from ..core.hash import SEED, canonical_bits, finish_hash, first_word, hash_bytes
from ..core.jit import BLOCK as HASHED
from ..core.jit import kernel, lean
from ..hll.coupons import CHUNK, read_only
from .store import add_hash

BLOCK = 512
_SMALL_BLOCK = 128

NO_ROOM = -2
NO_GROUP = -3


@lean
def hashes_of_int64(values, out):
    """Theta's hash of every int64, 63 bits; the smallest of them."""
    least = np.int64(0x7FFFFFFFFFFFFFFF)
    for i in range(len(out)):
        h1, _ = finish_hash(first_word(SEED, np.uint64(values[i])), SEED, np.uint64(8))
        value = np.int64(h1 >> np.uint64(1))
        out[i] = value
        least = min(least, value)
    return least


@kernel
def hashes_of_bytes(offsets, data, out):
    """Theta's hash of every string in Arrow's buffers; zero, which no sketch keeps, for an empty one."""
    h1 = np.empty(HASHED, np.uint64)
    h2 = np.empty(HASHED, np.uint64)
    for start in range(0, len(out), HASHED):
        block = out[start : start + HASHED]
        ends = offsets[start : start + len(block) + 1]
        hash_bytes(ends, data, SEED, h1, h2)
        for i in range(len(block)):
            block[i] = np.int64(h1[i] >> np.uint64(1)) if ends[i] != ends[i + 1] else np.int64(0)


def hash_chunks(values: Values) -> Iterator[tuple[int, np.ndarray]]:
    """The hashes of all values as (number of the first, hashes), a chunk at a time in one reused array."""
    scratch = np.empty(min(len(values), CHUNK), np.int64)
    bits = np.empty(len(scratch) if values.kind == "float64" else 0, np.int64)
    for start in range(0, len(values), CHUNK):
        out = scratch[: min(CHUNK, len(values) - start)]
        end = start + len(out)
        if values.kind == "int64":
            hashes_of_int64(read_only(values.numbers[start:end]), out)
        elif values.kind == "float64":
            canonical_bits(values.numbers[start:end], bits)
            hashes_of_int64(read_only(bits[: len(out)]), out)
        else:
            hashes_of_bytes(read_only(values.offsets[start : end + 1]), read_only(values.data), out)
        yield start, out


class UpdateScratch(NamedTuple):
    """What a block's rows are worked out in."""

    hashes: np.ndarray
    flags: np.ndarray
    candidates: np.ndarray


def new_update_scratch() -> UpdateScratch:
    """Scratch for one call."""
    return UpdateScratch(np.empty(BLOCK, np.int64), np.empty(BLOCK, np.uint8), np.empty(BLOCK, np.int64))


@lean
def _below(hashes, theta, out):
    """The places of hashes below theta; how many there are."""
    n = np.int64(0)
    for i in range(len(hashes)):
        out[n] = i
        n += np.int64(hashes[i] < theta)
    return n


@lean
def _add_below(store, g, hashes, candidates):
    """Keep what is below theta; the place of the first hash without room, or −1."""
    n = _below(hashes, store.sketches[g].theta, candidates)
    for j in range(n):
        i = np.uint64(candidates[j])
        if hashes[i] and not add_hash(store, np.int64(g), hashes[i]):
            return np.int64(i)
    return np.int64(-1)


@lean
def update_one_int64(store, values, start, scratch):
    """Count int64 values in sketch 0, from number `start`; how far there was room."""
    if len(values) > start:
        store.sketches[0].seen = 1
    for first in range(start, len(values), _SMALL_BLOCK):
        block = values[first : first + _SMALL_BLOCK]
        hashes = scratch.hashes[: len(block)]
        if hashes_of_int64(block, hashes) >= store.sketches[0].theta:
            continue
        stopped = _add_below(store, 0, hashes, scratch.candidates)
        if stopped >= 0:
            return first + stopped
    return len(values)


@lean
def update_one(store, hashes, start, scratch):
    """Count hashes in sketch 0, from number `start`; how far there was room."""
    for first in range(start, len(hashes), BLOCK):
        block = hashes[first : first + BLOCK]
        greatest = np.int64(0)
        for value in block:
            greatest = max(greatest, value)
        if greatest:
            store.sketches[0].seen = 1
        stopped = _add_below(store, 0, block, scratch.candidates)
        if stopped >= 0:
            return first + stopped
    return len(hashes)


@lean
def _look_up(store, n, groups, hashes, flags):
    """Which rows' hashes are below their group's theta; False if a group number is not one of `n`."""
    sketches = store.sketches
    outside = False
    for i in range(len(groups)):
        g = np.uint64(groups[i])
        inside = g < np.uint64(n)
        outside |= not inside
        sketch = sketches[g if inside else np.uint64(0)]
        flags[i] = (hashes[i] < sketch.theta) & (hashes[i] != 0)
    return not outside


@lean
def _gather(flags, out):
    """The places of the ones, without a branch; how many there are."""
    n = np.int64(0)
    for i in range(len(flags)):
        out[n] = i
        n += np.int64(flags[i])
    return n


@lean
def _fetch_tables(store, groups, hashes, candidates):
    """Have the tables' cache lines fetched ahead of the loop that changes them."""
    for place in candidates:
        i = np.uint64(place)
        sketch = store.sketches[np.uint64(groups[i])]
        mask = (np.uint64(1) << np.uint64(sketch.lg)) - np.uint64(1)
        prefetch(store.words, np.uint64(sketch.where) + (np.uint64(hashes[i]) & mask))


@lean
def update_groups(store, n, groups, hashes, start, scratch):
    """Count each hash in its group, of which there are `n`, from number `start` on.

    Returns (how far it came, why it stopped): 0 at the end, NO_ROOM, or NO_GROUP for a block that holds a
    number that is none; what is before is counted.
    """
    for first in range(start, len(hashes), BLOCK):
        block = hashes[first : first + BLOCK]
        mine = groups[first : first + BLOCK]
        flags = scratch.flags[: len(block)]
        if not _look_up(store, n, mine, block, flags):
            return first, NO_GROUP
        candidates = scratch.candidates[: _gather(flags, scratch.candidates)]
        _fetch_tables(store, mine, block, candidates)
        for place in candidates:
            i = np.uint64(place)
            if not add_hash(store, mine[i], block[i]):
                return first + np.int64(i), NO_ROOM
    return len(hashes), 0
