"""Kernels of the exact aggregates: they add rows (group, value) to plain state arrays."""

from __future__ import annotations

import numpy as np

from ..core.compilation.jit import inlined, kernel

_SIGN = np.int64(-(2**63))


@kernel
def count(groups, counts):
    """Add one per row."""
    for i in range(len(groups)):
        counts[groups[i]] += 1


@kernel
def add_counts(groups, more, counts):
    """Add a number per row."""
    for i in range(len(groups)):
        counts[groups[i]] += more[i]


@kernel
def add_whole(groups, above, below, high, low, seen):
    """Sum 128-bit numbers (above · 2^64 + below, the latter unsigned), as high · 2^64 + low."""
    for i in range(len(groups)):
        g = groups[i]
        total = low[g] + below[i]
        # As unsigned numbers, the sum is less than a summand if it has wrapped around.
        carry = (total ^ _SIGN) < (below[i] ^ _SIGN)
        high[g] += above[i] + np.int64(carry)
        low[g] = total
        seen[g] = 1


@inlined
def _neumaier(total, lost, x):
    """Do one compensated addition: return the new total, and the rounding errors so far."""
    after = total + x
    if abs(total) >= abs(x):
        lost += (total - after) + x
    else:
        lost += (x - after) + total
    return after, lost


@kernel
def add_real(groups, values, total, lost, counts, ones):
    """Sum doubles with compensation (Neumaier 1974); `ones` is empty, or the count of values for each."""
    each = len(ones) == len(values)
    for i in range(len(groups)):
        g = groups[i]
        total[g], lost[g] = _neumaier(total[g], lost[g], values[i])
        counts[g] += ones[i] if each else 1


@kernel
def welford(groups, values, n, mean, m2):
    """Update count, mean and sum of squared deviations by single values (Welford 1962)."""
    for i in range(len(groups)):
        g = groups[i]
        n[g] += 1
        delta = values[i] - mean[g]
        mean[g] += delta / n[g]
        m2[g] += delta * (values[i] - mean[g])


@kernel
def chan(groups, more_n, more_mean, more_m2, n, mean, m2):
    """Merge such triples (Chan, Golub, LeVeque 1979)."""
    for i in range(len(groups)):
        g = groups[i]
        if more_n[i] == 0:
            continue
        if n[g] == 0:
            n[g], mean[g], m2[g] = more_n[i], more_mean[i], more_m2[i]
            continue
        total = n[g] + more_n[i]
        delta = more_mean[i] - mean[g]
        # weighted symmetrically, so that merging a with b gives the same bits as b with a
        mean[g] = mean[g] * (n[g] / total) + more_mean[i] * (more_n[i] / total)
        m2[g] = (m2[g] + more_m2[i]) + delta * delta * (np.float64(n[g]) * np.float64(more_n[i]) / total)
        n[g] = total


@kernel
def order_doubles(values, keys):
    """Map doubles to int64 in the same order: −0.0 before 0.0, all NaN equal and last."""
    bits = values.view(np.int64)
    for i in range(len(values)):
        b = bits[i]
        if values[i] != values[i]:
            b = np.int64(0x7FF8000000000000)
        keys[i] = b ^ ((b >> np.int64(63)) & np.int64(0x7FFFFFFFFFFFFFFF))


@kernel
def least(groups, keys, best, seen):
    """Keep each group's smallest key."""
    for i in range(len(groups)):
        g = groups[i]
        if seen[g] == 0 or keys[i] < best[g]:
            best[g] = keys[i]
            seen[g] = 1


@inlined
def _in_time(a, i, b, j):
    """Compare line i of `a` and line j of `b` by their columns in turn: −1, 0 or 1."""
    result = 0
    for c in range(a.shape[1]):
        if a[i, c] != b[j, c]:
            result = -1 if a[i, c] < b[j, c] else 1
            break
    return result


@kernel
def earliest(groups, moments, keys, best_moment, best, seen, prefer):
    """Keep the key of each group's smallest moment.

    Among keys of one moment, the smallest wins (`prefer` 0), or the first row's (1) or the last row's (−1).
    """
    for i in range(len(groups)):
        g = groups[i]
        order = np.int64(-1) if seen[g] == 0 else np.int64(_in_time(moments, i, best_moment, g))
        if order < 0 or (order == 0 and (prefer < 0 or (prefer == 0 and keys[i] < best[g]))):
            for c in range(moments.shape[1]):
                best_moment[g, c] = moments[i, c]
            best[g] = keys[i]
            seen[g] = 1


@inlined
def _compare(a, a_start, a_end, b, b_start, b_end):
    """Compare bytes in unsigned order, as for UTF-8 and in Spark: −1, 0 or 1."""
    result = 0
    shared = min(a_end - a_start, b_end - b_start)
    for i in range(shared):
        x = a[a_start + i]
        y = b[b_start + i]
        if x != y:
            result = -1 if x < y else 1
            break
    if result == 0 and a_end - a_start != b_end - b_start:
        result = -1 if a_end - a_start < b_end - b_start else 1
    return result


@kernel
def choose_rows(groups, moments, offsets, data, sign, in_order, row, touched):
    """Find each group's first row by (moment, sign · bytes) in this batch.

    Among rows of one moment that are `in_order`, the first wins, or with a negative sign the last. `row` (−1
    everywhere on entry) gets it by group, `touched` lists the groups with rows; returns their number.
    """
    met = 0
    for i in range(len(groups)):
        g = groups[i]
        j = row[g]
        if j < 0:
            row[g] = i
            touched[met] = g
            met += 1
            continue
        order = np.int64(_in_time(moments, i, moments, j))
        if order == 0 and in_order:
            order = sign
        elif order == 0:
            order = sign * _compare(
                data,
                np.int64(offsets[i]),
                np.int64(offsets[i + 1]),
                data,
                np.int64(offsets[j]),
                np.int64(offsets[j + 1]),
            )
        if order < 0:
            row[g] = i
    return met


@kernel
def drop_losers(touched, moments, offsets, data, sign, row, best_moment, start, length, arena):
    """Clear `row` for the groups whose state already comes first; return the bytes that the others need."""
    needed = np.int64(0)
    for t in range(len(touched)):
        g = touched[t]
        i = row[g]
        if length[g] >= 0:
            order = np.int64(_in_time(moments, i, best_moment, g))
            if order == 0:
                order = sign * _compare(
                    data,
                    np.int64(offsets[i]),
                    np.int64(offsets[i + 1]),
                    arena,
                    start[g],
                    start[g] + length[g],
                )
            if order >= 0:
                row[g] = -1
                continue
        needed += np.int64(offsets[i + 1]) - np.int64(offsets[i])
    return needed


@kernel
def keep_rows(touched, moments, offsets, data, row, best_moment, start, length, arena, used):
    """Copy the winners' bytes to the arena after its `used` bytes and reset `row`; return the new `used`."""
    for t in range(len(touched)):
        g = touched[t]
        i = row[g]
        row[g] = -1
        if i < 0:
            continue
        begin = np.int64(offsets[i])
        size = np.int64(offsets[i + 1]) - begin
        for b in range(size):
            arena[used + b] = data[begin + b]
        start[g] = used
        length[g] = size
        used += size
        for c in range(moments.shape[1]):
            best_moment[g, c] = moments[i, c]
    return used


@kernel
def gather(start, length, arena, offsets, out):
    """Write live strings in group order to `out`, and their ends to `offsets` (length −1 means no string)."""
    used = np.int64(0)
    offsets[0] = 0
    for g in range(len(start)):
        for b in range(length[g]):
            out[used + b] = arena[start[g] + b]
        used += max(length[g], np.int64(0))
        offsets[g + 1] = used
