"""Limits on how many values or rows a sketch counts; more are refused before anything changes."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from .protocol import SketchError

MOST_ROWS = 2**63 - 1
"""The largest count in an int64."""


def refuse_beyond(most: int, family: str, seen: np.ndarray, groups: np.ndarray, coming: Any = None) -> None:
    """Raise `SketchError` if a sketch would count more than `most`.

    Sketch g has counted ``seen[g]``; sketch ``groups[i]`` gets ``coming[i]`` more, by default one.

    >>> refuse_beyond(9, "KLL", np.array([7, 9]), np.array([0, 0]))
    >>> refuse_beyond(9, "KLL", np.array([7, 9]), np.array([0]), np.array([3]))
    Traceback (most recent call last):
    streamgauge.sketches.core.protocol.SketchError: KLL: a sketch counts at most 9 rows, this would be 10
    """
    rough = len(groups) if coming is None else float(coming.sum(dtype=np.float64))
    if float(seen.max(initial=0)) + rough < 0.99 * most:
        return
    sums = Counter[int]()
    for group, n in zip(groups.tolist(), [1] * len(groups) if coming is None else coming.tolist()):
        sums[group] += n
    for group, n in sums.items():
        count = int(seen[group]) + n
        if count > most:
            raise SketchError(f"{family}: a sketch counts at most {most} rows, this would be {count}")
