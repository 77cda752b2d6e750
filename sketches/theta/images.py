"""Theta sketches in the layout of Apache DataSketches: reads versions 1 to 4, writes version 3.

    byte 0          1       2         3, 4            5      6, 7       8 … 11   12 … 15   16 … 23
    preamble longs  serial  family 3  0               flags  seed hash  count    1.0       theta
    (1, 2 or 3)     ver. 3  compact   (no lg_k here)

With one preamble long, the sketch is empty or has one hash from byte 8; with two, it is exact and hashes
begin at byte 16; with three, it estimates and hashes begin at byte 24. Hashes are 63 bits, in ascending
order. Version 4 packs the differences between them (`entry bits` each, most significant first) and has theta
at byte 8; versions 1 and 2 are version 3 with fewer flags. Families 1 and 2 contain a hash table of 2^lg_arr
places instead.

Source: datasketches-java 6.2.0 `theta.PreambleUtil`, `theta.CompactSketch`, `theta.ForwardCompatibility`,
`theta.BitPacking`.
"""

from __future__ import annotations

import numpy as np

from ..core.compilation.jit import inner, lean
from ..core.hashing.words import load32, load64
from ..core.resume import DONE, NO_ROOM
from .store import MAX_THETA, add_hash, lower_theta, tidy

SEED_HASH = np.uint16(0x93CC)
"""DataSketches' check value of the default seed, 9001."""

BIG_ENDIAN = np.uint8(1)
READ_ONLY = np.uint8(2)
EMPTY = np.uint8(4)
COMPACT = np.uint8(8)
ORDERED = np.uint8(16)
SINGLE = np.uint8(32)

REASONS = {
    1: "too short for a preamble",
    2: "unknown serial version (byte 1 must be 1 to 4) or family (byte 2 must be 1 to 3)",
    3: "the preamble's length or flags are impossible",
    4: "hashed with another seed than DataSketches' 9001",
    5: "the length doesn't fit what the preamble says",
    6: "the entry count doesn't fit the entries",
    7: "theta is impossible",
    8: "an entry is zero, not below theta, or not in order",
}
"""The meaning of a status above zero."""

HEAD = np.dtype(
    [
        ("theta", np.int64),
        ("places", np.int64),
        ("count", np.int64),
        ("first", np.int64),
        ("bits", np.int64),
        ("ordered", np.bool_),
    ],
    align=True,
)
"""A parsed preamble: theta, the number of places and of hashes in them, the byte where they begin, the bits
of each difference if packed (0 if not), and whether the hashes are in order."""


@lean
def sizes(store, out):
    """Tidy each sketch, and compute its image's size in words (8 bytes)."""
    for g in range(len(out)):
        tidy(store, g)
        sketch = store.sketches[g]
        if sketch.theta < MAX_THETA:
            out[g] = 3 + np.int64(sketch.count)
        else:
            out[g] = (1 if sketch.count <= 1 else 2) + np.int64(sketch.count)


@lean
def write_images(store, offsets, out):
    """Write each tidy sketch's image from word offsets[g] of `out` (uint64) on."""
    for g in range(len(offsets) - 1):
        at = offsets[g]
        sketch = store.sketches[g]
        n = np.int64(sketch.count)
        flags = READ_ONLY | COMPACT | ORDERED
        seed = np.uint64(SEED_HASH)
        estimating = sketch.theta < MAX_THETA
        if n == 0 and not estimating:
            flags |= EMPTY
            seed = np.uint64(0)  # the reference's empty image has no seed hash
        elif n == 1 and not estimating:
            flags |= SINGLE
        longs = offsets[g + 1] - at - n
        out[at] = np.uint64(longs) | (np.uint64(0x0303) << np.uint64(8)) | (np.uint64(flags) << np.uint64(40))
        out[at] |= seed << np.uint64(48)
        if longs > 1:
            out[at + 1] = np.uint64(n) | (np.uint64(0x3F800000) << np.uint64(32))
        if longs > 2:
            out[at + 2] = np.uint64(sketch.theta)
        hashes = out[at + longs : at + longs + n]
        for i in range(n):
            hashes[i] = np.uint64(store.words[sketch.where + i])


@inner
def _packed(data, start, bit, bits):
    """Read `bits` bits from bit number `bit` after byte `start`, most significant first."""
    value = np.uint64(0)
    left = bits
    while left > 0:
        here = bit & 7
        take = min(8 - here, left)
        byte = np.uint64(data[start + (bit >> 3)])
        part = (byte >> np.uint64(8 - here - take)) & ((np.uint64(1) << np.uint64(take)) - np.uint64(1))
        value = (value << np.uint64(take)) | part
        bit += take
        left -= take
    return value


@inner
def _read_head(data, start, end, head):
    """Check a preamble and fill `head`."""
    size = end - start
    if size < 8:
        return 1
    version = data[start + 1]
    family = data[start + 2]
    flags = data[start + 5]
    longs = np.int64(data[start] & np.uint8(63))
    if version < 1 or version > 4 or family < 1 or family > 3:
        return 2
    if version > 1 and flags & BIG_ENDIAN:
        return 3
    head.theta, head.places, head.count, head.first, head.bits = MAX_THETA, 0, 0, 0, 0
    head.ordered = True
    if version == 4:
        return _read_head_4(data, start, end, head)
    if longs < 1 or longs > 3 or (version == 1 and longs != 3) or (version == 3 and flags > 63):
        return 3
    if size < 8 * longs:
        return 1
    table = version == 3 and family < 3
    if version == 3 and family == 3 and not flags & COMPACT:
        return 3
    if table and (longs != 3 or flags & (COMPACT | ORDERED | SINGLE)):
        return 3
    empty = version == 3 and flags & EMPTY
    single = version == 3 and longs == 1 and not empty
    if single and (flags & ~SINGLE) != READ_ONLY | COMPACT | ORDERED:
        return 3
    hashed = version > 1 and not empty and not (version == 2 and longs == 1)
    if hashed and load32(data, start + 4) >> np.uint32(16) != SEED_HASH:
        return 4
    head.first = 8 * longs
    if single:
        head.places = head.count = 1
    if longs > 1:
        head.places = head.count = np.int64(load32(data, start + 8))
    if longs > 2:
        head.theta = np.int64(load64(data, start + 16))
    if table:
        lg = np.int64(data[start + 4])
        if lg < 5 or lg > 27:
            return 3
        head.places = np.int64(1) << lg
    if empty and (head.count or (head.theta != MAX_THETA and not table)):
        return 6
    if flags & SINGLE and version == 3 and head.count != 1:
        return 6
    head.ordered = version < 3 or (flags & ORDERED) != 0
    if size != head.first + 8 * head.places:
        return 5
    return 0


@inner
def _read_head_4(data, start, end, head):
    """Check the preamble of a packed image and fill `head`."""
    longs = np.int64(data[start])
    bits = np.int64(data[start + 3])
    count_bytes = np.int64(data[start + 4])
    size = end - start
    if longs < 1 or longs > 2 or bits < 1 or bits > 63 or count_bytes > 4 or data[start + 2] != 3:
        return 3
    if data[start + 5] != READ_ONLY | COMPACT | ORDERED:
        return 3
    if size < 8 * longs + count_bytes:
        return 1
    if load32(data, start + 4) >> np.uint32(16) != SEED_HASH:
        return 4
    if longs == 2:
        head.theta = np.int64(load64(data, start + 8))
    count = np.int64(0)
    for b in range(count_bytes):
        count |= np.int64(data[start + 8 * longs + b]) << (8 * b)
    head.places = head.count = count
    head.first = 8 * longs + count_bytes
    head.bits = bits
    if size != head.first + (count * bits + 7) // 8:
        return 5
    return 0


@inner
def _hash(data, start, head, i, previous):
    """Return the content of place i of the image at byte `start`, given the content of the previous place."""
    if head.bits:
        return np.int64(np.uint64(previous) + _packed(data, start + head.first, i * head.bits, head.bits))
    return np.int64(load64(data, start + head.first + 8 * i))


@inner
def _are_ordered(data, first, count, theta):
    """Whether these hashes are above zero, below theta and strictly ascending, without a branch."""
    if not count:
        return True
    falls = np.int64(0)
    for at in range(first, first + 8 * (count - 1), 8):
        falls |= np.int64(np.int64(load64(data, at)) >= np.int64(load64(data, at + 8)))
    lowest = np.int64(load64(data, first))
    return falls == 0 and lowest > 0 and np.int64(load64(data, first + 8 * (count - 1))) < theta


@inner
def _fault(data, start, end, head):
    """Return 0 if ``data[start:end]`` is a Theta image, else a key of `REASONS`; fill `head`."""
    status = _read_head(data, start, end, head)
    if status:
        return status
    if head.theta <= 0:
        return 7
    table = head.places != head.count
    if head.ordered and not head.bits and not table:
        return 0 if _are_ordered(data, start + head.first, head.count, head.theta) else 8
    previous = np.int64(0)
    used = np.int64(0)
    for i in range(head.places):
        value = _hash(data, start, head, i, previous)
        if value == 0 and table:
            continue  # a free place
        if value <= 0 or (head.ordered and value <= previous):
            return 8
        if value >= head.theta:
            if table:
                continue  # tables may hold dirty places
            return 8
        previous = value if head.ordered else np.int64(0)
        used += 1
    return 6 if used != head.count else 0


@lean
def check_image(data, heads):
    """Return 0 if `data` is a Theta image, else a key of `REASONS`; fill ``heads[0]``."""
    return _fault(data, 0, len(data), heads[0])


@inner
def _check_images(offsets, data, heads):
    """Fill `heads`; return the first invalid image and a key of `REASONS`, or the number of images and 0."""
    for i in range(len(heads)):
        status = _fault(data, offsets[i], offsets[i + 1], heads[i])
        if status:
            return i, status
    return len(heads), 0


@lean
def fold_images(store, groups, offsets, data, heads, start):
    """Unite image i, ``data[offsets[i]:offsets[i + 1]]``, with sketch groups[i], from image `start` on.

    With `start` −1, all images are checked first, which fills `heads`; if one is invalid, none is merged.
    Returns how far it came and why it stopped, or the first invalid image and a key of `REASONS`.
    """
    if start < 0:
        i, status = _check_images(offsets, data, heads)
        if status:
            return i, status
        start = np.int64(0)
    for i in range(start, len(groups)):
        first = offsets[i]
        head = heads[i]
        g = groups[i]
        if head.count or head.theta < MAX_THETA:
            store.sketches[g].seen = 1
        lower_theta(store, g, head.theta)
        previous = np.int64(0)
        for j in range(head.places):
            value = _hash(data, first, head, j, previous)
            previous = value
            if value >= store.sketches[g].theta:
                if head.ordered:
                    break  # all further hashes are at least theta
                continue
            if value and not add_hash(store, g, value):
                return i, NO_ROOM
    return len(groups), DONE
