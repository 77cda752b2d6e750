"""Muting a rule that reports every row past its limit, for keys that are past it most of the time.

For each key, its rows and the rows that fired are counted; both counts are halved from time to time, so that
old rows count less. A key that fired on more than a given share of its rows is muted; it is unmuted once it
fires on less than half of this share.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...sketches.core.compilation.jit import kernel

FIRST = 10
"""So many rows of a key may fire in succession."""
KEPT = 256
"""The number of rows after which counts are halved."""

FIRED, HEARD, MUTED = 1, 2, 3
"""What to report for a row: that it fired; that the key is unmuted; that it is muted from here on."""

COUNTS: dict[str, Any] = {"mute_rows": np.int32(0), "mute_fired": np.int32(0), "muted": np.int32(-1)}
"""The columns of a key's counts; `muted` is the number of suppressed alerts, -1 for an unmuted key."""


def muted(
    places: np.ndarray, fired: np.ndarray, share: float, rows: np.ndarray, fires: np.ndarray, kept: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """What to report for each row (0 for nothing), and the number of suppressed alerts when a key is unmuted.

    `places` are the rows' keys as places in the columns of `COUNTS`, `fired` marks rows past the limit
    (int8).

    >>> counts = np.zeros(1, np.int32), np.zeros(1, np.int32), np.full(1, -1, np.int32)
    >>> fired = np.array([1] * 14 + [0] * 150, np.int8)
    >>> said, held = muted(np.zeros(len(fired), np.int64), fired, 0.2, *counts)
    >>> said[:14].tolist(), int(said[14:].argmax()), int(held.max())
    ([1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3, 0, 0, 0], 126, 3)
    """
    said, held = np.empty(len(places), np.int8), np.zeros(len(places), np.int32)
    _mute(places, fired, share, FIRST, KEPT, rows, fires, kept, said, held)
    return said, held


@kernel
def _mute(places, fired, share, first, most, rows, fires, kept, said, held):
    for i in range(len(places)):
        key = places[i]
        rows[key] += 1
        fires[key] += fired[i]
        said[i] = 0
        if kept[key] < 0:
            if fired[i]:
                said[i] = 1
                if fires[key] > first and fires[key] > share * rows[key]:
                    said[i] = 3
                    kept[key] = 0
        elif fired[i]:
            kept[key] += 1
        elif fires[key] < share / 2 * rows[key]:
            said[i] = 2
            held[i] = kept[key]
            kept[key] = -1
        if rows[key] >= most:
            rows[key] //= 2
            fires[key] //= 2
