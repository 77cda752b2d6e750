"""End a program on request: by Ctrl-C, by SIGTERM, or because its terminal was closed.

This only imports light modules of the standard library, so that it is active before anything else is loaded.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import Any

from ..operators.consumer.signals import STOP_SIGNALS

INTERRUPTED = 130
"""The exit code after a requested end, as in shells for Ctrl-C."""

_ONCE = 10.0
"""A signal within this many seconds of the last one counts as a repetition."""


def leave_at_once() -> dict[signal.Signals, Any]:
    """End the process immediately on a request from now on; return the previous handlers.

    A container's first process would otherwise ignore SIGTERM, because it has no handler.
    """
    return {number: signal.signal(number, lambda *_: os._exit(INTERRUPTED)) for number in _heeded()}


@contextmanager
def at_once() -> Iterator[None]:
    """Within the block, end immediately on a request, because nothing runs yet that has to be stopped.

    It is for imports: an interrupted import shows a traceback at best; at worst it continues.
    """
    before = leave_at_once()
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def quietly() -> Iterator[None]:
    """Within the block, turn a request to end into `KeyboardInterrupt`; during imports, end immediately.

    A container's first process ignores SIGTERM without a handler, so a wait for brokers would not end. A
    second SIGTERM doesn't interrupt the end that has begun; a second Ctrl-C does.
    """
    ending = False

    def interrupted(number: int, frame: FrameType | None) -> None:
        nonlocal ending
        while frame is not None:
            if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
                os._exit(INTERRUPTED)
            frame = frame.f_back
        if not ending or number == signal.SIGINT:
            ending = True
            raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupted) for number in _heeded()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def in_order() -> Iterator[ExitStack]:
    """Yield a stack whose callbacks run undisturbed however the program's end is requested.

    Within the block, each of these signals becomes a `KeyboardInterrupt`, and so do failures that a signal
    causes: a closed terminal, or a service's end, also ends the processes that this one has started.
    """
    signals: list[float] = []

    def interrupted(*_: object) -> None:
        now = time.monotonic()
        # A second Ctrl-C must not interrupt the end that has begun.
        if not signals or now - signals[-1] > _ONCE:
            signals.append(now)
            raise KeyboardInterrupt

    with ExitStack() as outside:
        heeded = _heeded()
        for number in heeded:
            outside.callback(signal.signal, number, signal.signal(number, interrupted))
        try:
            with ExitStack() as stack:
                try:
                    yield stack
                finally:
                    for number in heeded:
                        signal.signal(number, signal.SIG_IGN)
        except Exception:
            if signals:
                raise KeyboardInterrupt from None
            raise


def _heeded() -> list[signal.Signals]:
    """Return the signals to handle; `nohup`, and shells for background jobs, have some ignored."""
    return [number for number in STOP_SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
