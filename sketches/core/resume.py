"""Kernels that stop when room runs out, and go on once Python has made some.

A kernel can't enlarge an array. So one that may need more room takes the number of the row to begin with and
gives back how far it came and why it stopped: `DONE` at the end; a negative number where some room was
missing, `NO_ROOM` or a family's own, and nothing of the row was changed; a positive number where a row is at
fault, which is for its caller to judge.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

DONE = 0
NO_ROOM = -1


def resume(
    step: Callable[[Any], tuple[Any, int]], enlarge: Callable[[int], None], at: Any = 0
) -> tuple[Any, int]:
    """Call ``step(at)`` and make room with ``enlarge(why)`` until it needs none; how far it came, and why.

    `step` calls the kernel on arrays as they are by then. What comes back is (how far, `DONE`) or (the row
    at fault, what its kernel calls that fault).

    >>> shelf = [None]
    >>> def fill(at):
    ...     return (3, DONE) if len(shelf) >= 3 else (len(shelf), NO_ROOM)
    >>> resume(fill, lambda why: shelf.append(None)), len(shelf)
    ((3, 0), 3)
    """
    while True:
        at, why = step(at)
        if why >= DONE:
            return at, int(why)
        enlarge(why)
