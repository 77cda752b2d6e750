"""Writing Arrow's string views inside kernels.

A view has 16 bytes: a length, then the string itself up to 12 bytes, or its first four bytes, a buffer's
number and an offset. Views point into the messages as they were read, so a string is neither copied nor
turned into an object.
"""

from __future__ import annotations

import numpy as np

from ...sketches.core.compilation.jit import inner
from .address_intrinsics import load8, load32, load_word, store64


@inner
def put_view(view, base, at, end, buffer, limit):
    """Write Arrow's view of the bytes from `at` to `end` in the buffer that begins at `base`.

    Bytes below `limit` can be read.
    """
    length = end - at
    if length > 12:
        low = np.int64(load32(at))
        high = buffer | (at - base) << 32
    elif at + 16 <= limit:
        first = load_word(at)
        second = load_word(at + 8)
        if length <= 8:
            first &= ~np.uint64(0) >> np.uint64(64 - 8 * length) if length else np.uint64(0)
            second = np.uint64(0)
        else:
            second &= ~np.uint64(0) >> np.uint64(64 - 8 * (length - 8))
        low = np.int64(first)
        high = np.int64(first >> np.uint64(32) | second << np.uint64(32))
    else:
        low = np.int64(0)
        high = np.int64(0)
        for i in range(min(length, 4)):
            low |= np.int64(load8(at + i)) << (8 * i)
        for i in range(4, length):
            high |= np.int64(load8(at + i)) << (8 * (i - 4))
    store64(view, length | low << 32)
    store64(view + 8, high)
