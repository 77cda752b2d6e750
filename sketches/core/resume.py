"""Kernels that stop when room runs out, and resume once Python has allocated more.

A kernel can't enlarge an array. So a kernel that may need more room gets the number of the row to begin with,
and returns how far it came and why it stopped: `DONE` at the end; a negative number if it lacked room
(`NO_ROOM` or a family's own code), in which case the row has changed nothing; or a positive number if a row
is invalid, which its caller handles.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

DONE = 0
NO_ROOM = -1


def resume(
    step: Callable[[Any], tuple[Any, int]], enlarge: Callable[[int], None], at: Any = 0
) -> tuple[Any, int]:
    """Call ``step(at)``, and ``enlarge(why)`` whenever room is missing, until the kernel ends.

    `step` calls the kernel on the current arrays. Returns (how far, `DONE`) or (the invalid row, the kernel's
    code for the fault).

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
