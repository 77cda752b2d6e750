"""Thin a block of 256 values at once, on which a KLL sketch of many values spends its time.

The small levels at the bottom of a deep sketch cost most and contribute least. Beyond its first levels, a
sketch therefore gathers 256 items of level 0 and moves them several levels up in one leap: it sorts eight
columns of 32, then repeatedly merges two columns and drops every second item of the merged columns, each by
its own coin.

A rank's variance grows per block of 256 by 2 for a leap of one level, 6 for two, 14 for three and 46 for
four; halving the lower levels one by one, as the sketch does otherwise, adds no less.
"""

from __future__ import annotations

import numpy as np

from ..core.compilation.jit import inner
from ..core.sorting.sort import merge_sorted
from ..core.sorting.sorting_network import thin_block

THINNED = 256
"""Items of a block."""
_PAIRS, _FOURS = 128, 64


@inner
def thin(block, leap, coins, out, top, scratch):
    """Fill `out` with the 256 / 2^leap sorted items, 1 to 4 levels up, that represent the 256 of `block`;
    `top` is at least the largest of these.

    `coins` are 64 random bits (uint64); `scratch` holds 384 items.
    """
    pairs, fours = scratch[:_PAIRS], scratch[_PAIRS : _PAIRS + _FOURS]
    thin_block(block, coins, pairs, fours)
    if leap == 1:
        first, second = scratch[_PAIRS : _PAIRS + _FOURS], scratch[_PAIRS + _FOURS : THINNED]
        for i in range(_FOURS):
            first[i], second[i] = pairs[2 * i], pairs[2 * i + 1]
        merge_sorted(first, second, out, top, scratch)
        return
    step = np.int64(1) << (leap - 2)
    place = np.int64(coins >> np.uint64(32)) & (step - 1)
    for i in range(_FOURS >> (leap - 2)):
        out[i] = fours[place + i * step]
