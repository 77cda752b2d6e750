"""Print once on stderr that kernels are being compiled, if that takes more than a moment.

A program that has set up `logging` gets the line in its log. Processes started by another one, such as
Spark's Python workers, print nothing.
"""

from __future__ import annotations

import logging
import multiprocessing
import sys
import time
from pathlib import Path

_LOG = logging.getLogger("streamgauge")
_MOMENT = 1.0
_STARTED_BY_OTHERS = ("pyspark.", "streamgauge.operators.", "streamgauge.spark_udafs.")
"""Modules that Spark, or a run with workers, starts as programs."""


class _Work:
    """What this process has compiled so far, and which messages it has printed."""

    def __init__(self) -> None:
        self.began: list[float] = []
        self.seconds = 0.0
        self.said: set[str] = set()

    def say(self, what: str, *names: object) -> None:
        if what not in self.said and _is_the_users():
            self.said.add(what)
            _LOG.warning(what, *names)


_WORK = _Work()


def begins() -> None:
    """Record that a kernel's compilation begins; kernels that it calls begin and end in between."""
    now = time.perf_counter()
    elapsed = _WORK.seconds + (now - _WORK.began[0] if _WORK.began else 0.0)
    _WORK.began.append(now)
    if elapsed > _MOMENT:
        _WORK.say(
            "compiling kernels for this processor, once; `streamgauge env warm` does that ahead of time"
        )


def ends() -> None:
    """Record that the kernel that began last is compiled."""
    began = _WORK.began.pop()
    if not _WORK.began:
        _WORK.seconds += time.perf_counter() - began


def not_kept(folders: list[str]) -> None:
    """Report that no folder for compiled kernels is writable."""
    _WORK.say(
        "compiled kernels can't be kept, so that every process compiles them again: %s can't be written; let "
        "NUMBA_CACHE_DIR name a folder that can",
        " and ".join(folders),
    )


def not_trusted(path: Path, owner: int, mode: int) -> None:
    """Report that others may have written a folder or a file of compiled kernels."""
    _WORK.say(
        "compiled kernels are not read where others may write, since loading them runs code: %s belongs to "
        "user %d with mode %03o; it must belong to you or to root and be writable by its owner alone (chown, "
        "chmod go-w), or let NUMBA_CACHE_DIR name a folder that is",
        path,
        owner,
        mode,
    )


def _is_the_users() -> bool:
    if multiprocessing.parent_process() is not None:
        return False
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    return main is None or not main.name.startswith(_STARTED_BY_OTHERS)
