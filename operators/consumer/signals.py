"""The signals that request a program's end, and how a run handles them.

This imports only light modules of the standard library, so that it is in place before anything else loads.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

STOP_SIGNALS = tuple(
    signal.Signals[name] for name in ("SIGINT", "SIGTERM", "SIGHUP") if name in signal.Signals.__members__
)
"""The signals that request a program's end."""


@contextmanager
def as_interrupt() -> Iterator[None]:
    """Within the block the first of these signals raises `KeyboardInterrupt`, as Ctrl-C does.

    SIGTERM stops containers and services, and SIGHUP means that the terminal was closed; both would end a
    Python program at once, with nothing delivered or cleaned up. Nothing changes in a program that handles or
    ignores them itself, nor in threads other than the main thread, which get no signals.
    """
    before: dict[signal.Signals, Any] = {}
    signalled = False

    def interrupt(*_: object) -> None:
        nonlocal signalled
        if not signalled:  # a second signal must not interrupt the shutdown
            signalled = True
            raise KeyboardInterrupt

    if threading.current_thread() is threading.main_thread():
        for number in STOP_SIGNALS:
            if signal.getsignal(number) is signal.SIG_DFL:
                before[number] = signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
