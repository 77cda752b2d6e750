"""Retry Spark calls that fail because a Python process started too slowly.

Spark starts a process for each Python data source when it plans a query, and waits ten seconds for it; no
setting changes that (`PythonWorkerFactory.createSimpleWorker`). On a busy machine this ends queries before
they have done anything, so a retry is safe, and it is the only remedy.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

log = logging.getLogger("streamgauge.spark")

TRIES = 10
"""How often a query is started before its error is raised."""

_SIGNS = ("Python worker failed to connect back", "waiting for the Python worker to connect back")

T = TypeVar("T")


def is_slow_start(error: BaseException | None) -> bool:
    """Whether this is Spark's error for a Python process that didn't start in time.

    >>> is_slow_start(RuntimeError("Python worker failed to connect back.")), is_slow_start(None)
    (True, False)
    """
    return error is not None and any(sign in str(error) for sign in _SIGNS)


def begin_again(what: str, tries: int) -> bool:
    """Whether to retry after this many tries; prints a line if so."""
    if tries >= TRIES:
        return False
    log.warning(
        "%s: a Python process took longer to start than the 10 seconds that Spark gives it, as happens on a "
        "busy machine; starting again (%d of %d)",
        what,
        tries + 1,
        TRIES,
    )
    return True


def patiently(what: str, begin: Callable[[], T]) -> T:
    """Return the result of `begin`, calling it again if a Python process starts too late.

    Raises any other error of `begin`, and its last one when it gives up.

    >>> patiently("to count", lambda: 3)
    3
    """
    tries = 1
    while True:
        try:
            return begin()
        except Exception as error:
            if not is_slow_start(error) or not begin_again(what, tries):
                raise
        tries += 1
