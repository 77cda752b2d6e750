"""Read HLL images of Apache DataSketches in every form and type, and validate everything first.

It checks lengths, counts, places in hash tables, and the sums of the registers against the stored sums, which
detects truncated or flipped bytes. `images` shows the layout.

Source: datasketches-java 6.2.0 `hll.HllUtil.checkPreamble`, `hll.Hll4Array`, `hll.Hll6Array`.
"""

from __future__ import annotations

import numpy as np

from ..core.compilation.jit import inner
from ..core.hashing.words import load32, load64
from .coupon_tables import place_of
from .images import COMPACT, EMPTY_FLAG, EXCEPTION, FULL_SIZE_FLAG, LG_EXCEPTIONS, OUT_OF_ORDER_FLAG
from .registers import greatest, power_sums
from .store import FIRST_SET

REASONS = {
    1: "too short for a preamble",
    2: "not an HLL image of serial version 1 (byte 1 must be 1, byte 2 must be 7)",
    3: "lg_k must be 4 to 21",
    4: "unknown mode byte or flags",
    5: "the preamble's length doesn't fit its mode",
    6: "the length doesn't fit what the preamble says",
    7: "the coupon count doesn't fit the coupons",
    8: "a coupon is impossible or in the wrong place",
    9: "a register is impossible",
    10: "the registers don't fit their stored sums",
    11: "the HLL_4 exceptions don't fit the registers",
    12: "the HIP estimate is impossible for these registers",
}
"""The meaning of a status above zero."""

LIST_FORM, SET_FORM, HLL_FORM = 0, 1, 2


@inner
def check_preamble(data, start, end):
    """Return 0, or a key of `REASONS` if this is not an HLL image."""
    if end - start < 8:
        return 1
    if data[start + 1] != 1 or data[start + 2] != 7:
        return 2
    lg_k = data[start + 3]
    if lg_k < 4 or lg_k > 21:
        return 3
    mode = data[start + 7]
    form = mode & 3
    known = EMPTY_FLAG | COMPACT | OUT_OF_ORDER_FLAG | FULL_SIZE_FLAG | np.uint8(2)
    if mode > 10 or form == 3 or data[start + 5] & ~known:
        return 4
    ints = data[start]
    if ints != (2 if form == LIST_FORM else (3 if form == SET_FORM else 10)):
        return 5
    if form == SET_FORM and lg_k < 8:
        return 4
    if end - start < 4 * np.int64(ints):
        return 1
    return 0


@inner
def _read_table(data, first, count, lg, out, coupons):
    """Unpack a table of 2^lg places into `out` and its coupons, in order, into `coupons`; return a status.

    About every other place is empty, and a branch would be mispredicted, so the coupons are gathered first.
    """
    table = out[: np.int64(1) << lg]
    for i in range(len(table)):
        table[i] = load32(data, first + 4 * i)
    n = np.int64(0)
    for i in range(len(table)):
        coupons[np.uint64(n)] = i
        n += np.int64(table[i] != 0)
    if n != count:
        return 7
    for i in range(n):
        place = np.int64(coupons[i])
        coupon = table[np.uint64(place)]
        if coupon < np.uint32(1 << 26) or place_of(table, 0, lg, coupon) != place:
            return 8
        coupons[i] = coupon
    return 0


@inner
def take_coupons(data, start, end, out, spare):
    """Unpack a list or set that `read_coupons` has checked; return its (count, lg)."""
    if data[start + 7] & 3 == LIST_FORM:
        count = np.int64(data[start + 6])
        first = start + 8
    else:
        count = np.int64(load32(data, start + 8))
        first = start + 12
        if not data[start + 5] & COMPACT:
            lg = np.int64(data[start + 4])
            n = np.int64(0)
            for i in range(np.int64(1) << lg):
                coupon = load32(data, first + 4 * i)
                out[i] = coupon
                spare[np.uint64(n)] = coupon
                n += np.int64(coupon != 0)
            return count, lg
    for i in range(count):
        out[i] = load32(data, first + 4 * i)
    return count, np.int64(0)


@inner
def read_coupons(data, start, end, out, spare):
    """Unpack a list or set; return (status, count, lg of the table in `out`, or 0 for a list of coupons).

    For a table, `spare` gets the coupons in the order of their places.
    """
    compact = data[start + 5] & COMPACT
    if data[start + 7] & 3 == LIST_FORM:
        count = np.int64(data[start + 6])
        places = np.int64(8)
        first = start + 8
        lg = np.int64(3)
        if count > 7:
            return 7, count, lg
    else:
        count = np.int64(load32(data, start + 8))
        lg = np.int64(data[start + 4])
        first = start + 12
        largest = np.int64(data[start + 3]) - 3
        if compact:  # early writers omitted lg_arr
            lg = np.int64(FIRST_SET)
            while 4 * count > 3 * (np.int64(1) << lg):
                lg += 1
        if lg < FIRST_SET or lg > largest or 4 * count > 3 * (np.int64(1) << lg):
            return 7, count, lg
        places = np.int64(1) << lg
    if end - first != 4 * (count if compact else places):
        return 6, count, lg
    if lg > 3 and not compact:
        return _read_table(data, first, count, lg, out, spare), count, lg
    n = 0
    for i in range((end - first) // 4):
        coupon = load32(data, first + 4 * i)
        out[i] = coupon
        if coupon:
            if coupon < np.uint32(1 << 26) or n != i:
                return 8, count, lg
            n += 1
    if n != count:
        return 7, count, lg
    if lg == 3:
        for i in range(1, count):
            for j in range(i):
                if out[i] == out[j]:
                    return 8, count, lg
        return 0, count, np.int64(0)
    spare[: np.int64(1) << lg] = 0  # insert them in a table to find duplicates
    for i in range(count):
        place = place_of(spare, 0, lg, out[i])
        if place >= 0:
            return 8, count, lg
        spare[~place] = out[i]
    return 0, count, np.int64(0)


# Simple loops over slices, with one task each, vectorise; reading an image consists mostly of such loops.


@inner
def _unpack_hll6(data, at, out):
    for i in range(len(out) // 4):
        b = at + 3 * i
        word = (
            np.uint32(data[b])
            | np.uint32(data[b + 1]) << np.uint32(8)
            | np.uint32(data[b + 2]) << np.uint32(16)
        )
        for j in range(4):
            out[4 * i + j] = np.uint8((word >> np.uint32(6 * j)) & np.uint32(63))
    return 0


@inner
def _spread_nibbles(data, at, least, out):
    image = data[at : at + len(out) // 2]
    for i in range(len(image)):
        out[2 * i] = least + (image[i] & np.uint8(15))
        out[2 * i + 1] = least + (image[i] >> np.uint8(4))


@inner
def _unpack_hll4(data, start, end, out):
    k = len(out)
    least = data[start + 6]
    if least > 63:
        return 9
    _spread_nibbles(data, start + 40, least, out)
    token = np.uint8(least + EXCEPTION)
    exceptions = 0
    if greatest(out) == token:
        for v in out:
            exceptions += v == token
    if exceptions != load32(data, start + 36):
        return 11
    at = start + 40 + k // 2
    n_exceptions = 0
    while at < end:
        pair = load32(data, at)
        at += 4
        if pair == 0:
            continue
        slot = np.int64(pair & np.uint32(0x3FFFFFF))
        value = np.uint8(pair >> np.uint32(26))
        if slot >= k or out[slot] != token or value < token:
            return 11
        out[slot] = value | np.uint8(128)  # marked, so that a second exception for this register is found
        n_exceptions += 1
    if n_exceptions != exceptions:
        return 11
    if n_exceptions:
        for i in range(k):
            out[i] &= np.uint8(127)
    return 0


@inner
def _unpack(data, start, end, out):
    """Unpack and check an image of HLL_4 or HLL_6 into `out`, 2^lg_k places; return a status."""
    k = len(out)
    flags = data[start + 5]
    if data[start + 7] >> 2 == 1:
        if end - start != 40 + 3 * k // 4 + 1:
            return 6
        return _unpack_hll6(data, start + 40, out)
    n = np.int64(load32(data, start + 36))
    if not flags & COMPACT:
        lg = np.int64(data[start + 4]) if n else LG_EXCEPTIONS[data[start + 3]]
        if lg > 21 or 4 * n > 3 * (np.int64(1) << lg):
            return 11
        n = np.int64(1) << lg
    if end - start != 40 + k // 2 + 4 * n:
        return 6
    return _unpack_hll4(data, start, end, out)


@inner
def take_registers(data, start, end, out):
    """Unpack an image of HLL_4 or HLL_6 that `check_registers` has checked into `out`, 2^lg_k places."""
    if data[start + 7] >> 2 == 1:
        _unpack_hll6(data, start + 40, out)
        return
    _spread_nibbles(data, start + 40, data[start + 6], out)
    for at in range(start + 40 + len(out) // 2, end, 4):
        pair = load32(data, at)
        if pair:
            out[np.int64(pair & np.uint32(0x3FFFFFF))] = np.uint8(pair >> np.uint32(26))


@inner
def check_registers(data, start, end, out, sums):
    """Check an image with registers and return a status; unless it is HLL_8, it is unpacked into `out`.

    `out` has 2^lg_k places; `sums`, a `store.SUMS`, gets the sums of the registers.
    """
    if data[start + 7] >> 2 == 2:
        if end - start != 40 + len(out):
            return 6
        return _check_sums(data, start, data[start + 40 : end], sums)
    status = _unpack(data, start, end, out)
    return status if status else _check_sums(data, start, out, sums)


@inner
def _check_sums(data, start, out, sums):
    """Check the registers `out` of the image at `start` against the sums stored in it."""
    k = len(out)
    kind = data[start + 7] >> 2
    flags = data[start + 5]
    hip = np.uint64(load64(data, start + 8)).view(np.float64)
    stored_low = np.uint64(load64(data, start + 16)).view(np.float64)
    stored_high = np.uint64(load64(data, start + 24)).view(np.float64)
    highest = greatest(out)
    if highest > 63:
        return 9
    low, high = power_sums(out, highest)
    sums.hip, sums.low, sums.high = hip, low, high
    off = abs(stored_low + stored_high - (low + high))
    if flags & FULL_SIZE_FLAG == 0 and not off <= 1e-12 * (low + high):
        return 10
    if kind == 2 and flags & FULL_SIZE_FLAG == 0:  # keep the stored sums, so that the image round-trips
        sums.low, sums.high = stored_low, stored_high
    if flags & OUT_OF_ORDER_FLAG:
        sums.hip = 0.0
    else:
        # HIP grew by at least one with each register first raised, at least k − (low + high) in all, and is
        # close to the raw estimate.
        seen = k - (low + high)
        if not (hip >= seen * (1 - 1e-9) and hip <= 16.0 * k * (k / (low + high))):
            return 12
    return 0
