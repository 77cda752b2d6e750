"""How long a call takes on a noisy machine: medians of several runs, the two sides taking turns.

Kernels run on one core, so the processor's time is reported: what other processes use doesn't
count.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np


def seconds(call: Callable[[], object]) -> float:
    """One run's seconds of processor time."""
    start = time.process_time()
    call()
    return time.process_time() - start


def medians(*calls: Callable[[], object], runs: int = 5, warm: bool = True) -> list[float]:
    """The median seconds of each call, run alternately so that noise falls on all alike.

    The first round, which compiles and fills caches, is not counted unless `warm` is False.
    """
    if warm:
        for call in calls:
            call()
    times = [[seconds(call) for call in calls] for _ in range(runs)]
    return [statistics.median(column) for column in zip(*times, strict=True)]


def spent_with(pid: int) -> float:
    """Seconds of the processor that this process, and another with all that it began, have used."""
    children: dict[int, list[int]] = {}
    used: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        children.setdefault(int(fields[1]), []).append(number := int(stat.parent.name))
        used[number] = sum(map(int, fields[11:15]))
    waiting, total = [pid], 0
    while waiting:
        one = waiting.pop()
        total += used.get(one, 0)
        waiting += children.get(one, [])
    return total / os.sysconf("SC_CLK_TCK") + time.process_time()


def line(claim: str, ours: str, peer: str, ratio: float | str, target: str = "") -> dict[str, Any]:
    """One line of the table; the target names the unit of the ratio."""
    shown = ratio if isinstance(ratio, str) else f"{ratio:,.1f} ×" if ratio >= 10 else f"{ratio:.2f} ×"
    return {"claim": claim, "ours": ours, "peer": peer, "ratio": shown, "target": target}


def spread(result: Any, true: Any) -> str:
    """The root of the mean square of relative errors, and the largest, as a cell shows them."""
    errors = np.asarray(result, float) / np.asarray(true, float) - 1
    return f"errors {np.sqrt(np.mean(errors**2)):.1%}, at most {np.abs(errors).max():.1%}"
