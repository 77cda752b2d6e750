"""Read sliding HyperLogLogs: estimates for a span, and the entries of an image.

Nothing here changes a store, so several threads can read one.
"""

from __future__ import annotations

import numpy as np

from ..core.compilation.jit import lean
from ..hll.estimate import composite_estimate
from ..hll.registers import greatest, power_sums
from .store import (
    VALUE_MASK,
    Store,
    has_left,
    is_kept,
    latest_cutoff,
    measure_registers,
    new_scratch,
    number_after,
    places,
    register_bits,
    register_of,
)


@lean
def estimates(store, after, table, registers, estimate, seen, few):
    """Compute for each sketch the estimate of values later than `after[g]`, and the certain number of values.

    If `few` is set, `seen` is the number of coupons, and the caller computes the estimate.
    """
    lg_k, most = store.params[0].lg_k, store.params[0].most
    k, bits = np.int64(1) << lg_k, register_bits(store)
    for g in range(len(estimate)):
        cutoff, since = store.sketches[g].cutoff, after[g]
        few[g] = cutoff <= since or has_left(store, g, cutoff)
        if few[g]:  # all entries in the span are coupons
            n = number_after(store, g, since)
            seen[g], few[g] = np.float64(n), n < most
        if few[g]:
            continue
        first, end = places(store, g)
        keys, times = store.keys[first:end], store.times[first:end]
        registers[:] = 0
        for i in range(len(keys)):
            value = np.uint8(keys[i] & VALUE_MASK) if times[i] > since else np.uint8(0)
            register = register_of(keys[i], bits)  # no branch: free places have value 0
            registers[register] = max(registers[register], value)
        zeros = np.int64(0)
        for v in registers:
            zeros += v == 0
        low, high = power_sums(registers, greatest(registers))
        seen[g] = np.float64(k - zeros)
        estimate[g] = composite_estimate(lg_k, low + high, zeros, table)


@lean
def _gather(store, g, kept, times):
    """Collect the entries that count in one sketch; return their number and the latest cutoff."""
    n = np.int64(0)
    first, end = places(store, g)
    cutoff, bits = latest_cutoff(store, g), register_bits(store)
    measured = measure_registers(store, g)
    for i in range(first, end):
        if is_kept(store, g, i, cutoff, measured):
            kept[n] = store.keys[i] if store.times[i] > cutoff else store.keys[i] & bits
            times[n] = store.times[i]
            n += 1
    return n, cutoff


def kept_entries(store: Store, g: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Return (keys, times, cutoff) of the entries that count, sorted by key; they depend only on the rows."""
    most = int(store.sketches["count"][g])
    keys, times = np.empty(most, np.uint32), np.empty(most, np.int64)
    highest, recent = new_scratch(int(store.params["lg_k"][0]))  # another thread may be reading as well
    n, cutoff = _gather(store._replace(highest=highest, recent=recent), g, keys, times)
    order = np.argsort(keys[:n])
    return keys[order], times[order], int(cutoff)
