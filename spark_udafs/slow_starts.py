"""Python processes that come up too late for Spark: what needs them begins again.

Spark starts a process for each Python data source when it plans a query, and gives it ten seconds, for which
there is no setting (`PythonWorkerFactory.createSimpleWorker`). On a busy machine that ends queries which have
done nothing yet, so to begin again is right, and is all that helps.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

log = logging.getLogger("streamgauge.spark")

TRIES = 10
"""How often a query is begun before its error is raised."""

_SIGNS = ("Python worker failed to connect back", "waiting for the Python worker to connect back")

T = TypeVar("T")


def is_slow_start(error: BaseException | None) -> bool:
    """Whether this is Spark's error for a Python process that hasn't come up in time.

    >>> is_slow_start(RuntimeError("Python worker failed to connect back.")), is_slow_start(None)
    (True, False)
    """
    return error is not None and any(sign in str(error) for sign in _SIGNS)


def begin_again(what: str, tries: int) -> bool:
    """Whether what has been tried so often is begun again; says so in a line."""
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
    """What `begin` gives, which is called again where a Python process comes up too late.

    Raises what `begin` raises otherwise, and the last time.

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
