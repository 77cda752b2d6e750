"""The values at shares of many sorted, weighted lists: how sketches that keep samples answer quantiles."""

from __future__ import annotations

import numpy as np

from ..compilation.jit import lean


@lean
def values_at(items, weights, ends, n, edges, shares, out):
    """Write to ``out[g, j]`` the value at ``shares[g, j]`` of list g.

    It is the first item up to which so much of the weight lies. List g has the sorted `items` from
    ``ends[g - 1]`` to ``ends[g]``, of `weights` that add up to ``n[g]``, and ``edges[:, g]`` are its lowest
    and highest value. The value of an empty list is 0. `weights` are replaced by their running sums within
    each list.
    """
    begin = np.int64(0)
    for g in range(len(ends)):
        end, total = ends[g], n[g]
        for i in range(begin + 1, end):
            weights[i] += weights[i - 1]
        for j in range(shares.shape[1]):
            if total == 0:
                out[g, j] = 0
                continue
            # Beyond 2^53, not every n is a double.
            at_end = shares[g, j] >= 1.0
            wanted = total if at_end else min(max(np.int64(np.ceil(shares[g, j] * total)), 1), total)
            if wanted == 1:
                out[g, j] = edges[0, g]
            elif wanted == total or begin == end:
                out[g, j] = edges[1, g]
            else:
                low, high = begin, end - 1
                while low < high:
                    middle = (low + high) >> 1
                    if weights[middle] < wanted:
                        low = middle + 1
                    else:
                        high = middle
                out[g, j] = items[low]
        begin = end
