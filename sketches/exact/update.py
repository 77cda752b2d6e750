"""Kernels of the exact aggregates: rows (group, value) into plain state arrays handed in."""

from __future__ import annotations

import numpy as np

from ..core.jit import inlined, kernel

_LOW = np.int64(0xFFFFFFFF)


@kernel
def count(groups, counts):
    """Add one a row."""
    for i in range(len(groups)):
        counts[groups[i]] += 1


@kernel
def add_counts(groups, more, counts):
    """Add a number a row."""
    for i in range(len(groups)):
        counts[groups[i]] += more[i]


@kernel
def add_whole(groups, above, below, high, low, seen):
    """Sum numbers of 128 bits (above · 2^64 + below, the latter unsigned) as high · 2^32 + low."""
    for i in range(len(groups)):
        g = groups[i]
        high[g] += (above[i] << np.int64(32)) + ((below[i] >> np.int64(32)) & _LOW)
        total = low[g] + (below[i] & _LOW)
        high[g] += total >> np.int64(32)
        low[g] = total & _LOW
        seen[g] = 1


@inlined
def _neumaier(total, lost, x):
    """One compensated addition: the new total, and what rounding has lost so far."""
    after = total + x
    if abs(total) >= abs(x):
        lost += (total - after) + x
    else:
        lost += (x - after) + total
    return after, lost


@kernel
def add_real(groups, values, total, lost, counts, ones):
    """Sum doubles, compensated (Neumaier 1974); `ones` is empty, or how many values each stands for."""
    each = len(ones) == len(values)
    for i in range(len(groups)):
        g = groups[i]
        total[g], lost[g] = _neumaier(total[g], lost[g], values[i])
        counts[g] += ones[i] if each else 1


@kernel
def welford(groups, values, n, mean, m2):
    """Count, mean and sum of squared deviations, a value at a time (Welford 1962)."""
    for i in range(len(groups)):
        g = groups[i]
        n[g] += 1
        delta = values[i] - mean[g]
        mean[g] += delta / n[g]
        m2[g] += delta * (values[i] - mean[g])


@kernel
def chan(groups, more_n, more_mean, more_m2, n, mean, m2):
    """Fold such triples together (Chan, Golub, LeVeque 1979)."""
    for i in range(len(groups)):
        g = groups[i]
        if more_n[i] == 0:
            continue
        if n[g] == 0:
            n[g], mean[g], m2[g] = more_n[i], more_mean[i], more_m2[i]
            continue
        total = n[g] + more_n[i]
        delta = more_mean[i] - mean[g]
        # weighted symmetrically, so that a with b gives the bits that b with a gives
        mean[g] = mean[g] * (n[g] / total) + more_mean[i] * (more_n[i] / total)
        m2[g] = (m2[g] + more_m2[i]) + delta * delta * (np.float64(n[g]) * np.float64(more_n[i]) / total)
        n[g] = total


@kernel
def order_doubles(values, keys):
    """Doubles as int64 in the same order: −0.0 before 0.0, every NaN one and last."""
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
    """The order of line i of `a` and line j of `b`, by their columns in turn: −1, 0 or 1."""
    result = 0
    for c in range(a.shape[1]):
        if a[i, c] != b[j, c]:
            result = -1 if a[i, c] < b[j, c] else 1
            break
    return result


@kernel
def earliest(groups, moments, keys, best_moment, best, seen, prefer):
    """Keep the key of each group's smallest moment.

    Of one moment's keys the smallest (`prefer` 0), the first row's (1) or the last row's (−1).
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
    """Bytes in unsigned order, as UTF-8 and Spark order strings: −1, 0 or 1."""
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
    """The row of each group that comes first by (moment, sign · bytes) in this batch.

    Of one moment's rows that are `in_order` the first counts, or with a negative sign the last. `row` (−1
    everywhere on entry) holds it by group, `touched` lists the groups met; returns how many.
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
    """Clear `row` of the groups whose state comes first already; returns the bytes the others need."""
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
    """Copy the winners' bytes behind the arena's `used` ones and reset `row`; returns the new `used`."""
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
    """Live strings in group order into `out`, their ends into `offsets` (length −1 is an absent one)."""
    used = np.int64(0)
    offsets[0] = 0
    for g in range(len(start)):
        for b in range(length[g]):
            out[used + b] = arena[start[g] + b]
        used += max(length[g], np.int64(0))
        offsets[g + 1] = used
