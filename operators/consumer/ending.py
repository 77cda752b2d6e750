"""The signals by which a program is told to end, and what they are within a run.

Only the standard library's lightest is imported, so that this is in place before anything else is.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

ASKING = tuple(
    signal.Signals[name] for name in ("SIGINT", "SIGTERM", "SIGHUP") if name in signal.Signals.__members__
)
"""The signals by which a program is told to end."""


@contextmanager
def as_interrupt() -> Iterator[None]:
    """Within the block each of those signals is a `KeyboardInterrupt`, as Ctrl-C is, once.

    Containers and services are stopped by SIGTERM, and SIGHUP says that the terminal was closed; both end a
    Python program at once, with nothing handed over and nothing cleaned up. A program that handles or ignores
    them itself, and threads other than the first, which get no signals, are left alone.
    """
    before: dict[signal.Signals, Any] = {}
    told = False

    def asked(*_: object) -> None:
        nonlocal told
        if not told:  # repeats must not interrupt the end that has begun
            told = True
            raise KeyboardInterrupt

    if threading.current_thread() is threading.main_thread():
        for number in ASKING:
            if signal.getsignal(number) is signal.SIG_DFL:
                before[number] = signal.signal(number, asked)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
