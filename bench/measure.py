"""How long a call takes on a noisy machine: medians of several runs, the two sides taking turns."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable


def seconds(call: Callable[[], object]) -> float:
    """One run's wall-clock seconds."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def medians(*calls: Callable[[], object], runs: int = 5, warm: bool = True) -> list[float]:
    """The median seconds of each call, run alternately so that noise falls on all alike.

    The first round, which compiles and fills caches, is not counted unless `warm` is False.
    """
    if warm:
        for call in calls:
            call()
    times = [[seconds(call) for call in calls] for _ in range(runs)]
    return [statistics.median(column) for column in zip(*times, strict=True)]
