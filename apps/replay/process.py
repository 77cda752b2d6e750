"""A replay in a process of its own, so that making posts takes no time from whoever counts them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import Any

from .batch import Source


class ReplayError(RuntimeError):
    """A replay that ended early; the message says why."""


class Replay:
    """Sends a source's messages to a topic in the background.

    The process ends by itself when all is sent, when `stop` is called, and when its parent is gone.
    """

    def __init__(self, source: Source, topic: str, bootstrap_servers: str, *, pace: bool = True) -> None:
        context = multiprocessing.get_context("spawn")
        # One writes, one reads. A lock would be a name that multiprocessing's tracker has to know at the end,
        # and a terminal that is closed ends the tracker first.
        self._sent: Any = context.Value("q", 0, lock=False)
        self._wrong, theirs = context.Pipe(duplex=False)
        self._process = context.Process(
            target=_run,
            args=(source, topic, bootstrap_servers, pace, self._sent, theirs, os.getpid()),
            name="streamgauge replay",
            daemon=True,
        )

    def start(self) -> Replay:
        """Start sending."""
        # Ctrl-C goes to every process of a terminal; this one is ended by its parent, without a word.
        # multiprocessing's tracker is started before, as its start lets interrupts in again.
        resource_tracker.ensure_running()
        with _interrupts_blocked():
            self._process.start()
        return self

    @property
    def sent(self) -> int:
        """Messages handed to Kafka so far."""
        return int(self._sent.value)

    @property
    def running(self) -> bool:
        """Whether it is still sending."""
        return self._process.pid is not None and self._process.is_alive()

    @property
    def done(self) -> bool:
        """Whether all messages are sent. Raises `ReplayError` if the replay failed, with its reason."""
        if self.running or self._process.exitcode is None:
            return False
        if self._process.exitcode != 0:
            reason = self._wrong.recv() if self._wrong.poll() else f"exit code {self._process.exitcode}"
            raise ReplayError(f"the replay ended early: {reason}")
        return True

    def wait(self) -> None:
        """Wait until all messages are sent. Raises `ReplayError` if the replay failed."""
        self._process.join()
        assert self.done

    def stop(self) -> None:
        """End it now, whatever it does; nothing happens if it never ran or is over."""
        if self.running:
            self._process.kill()
            self._process.join()


def _run(source: Source, topic: str, servers: str, pace: bool, sent: Any, wrong: Any, parent: int) -> None:
    from .sender import send

    def progress(so_far: int) -> None:
        sent.value = so_far

    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    try:
        send(source, topic, servers, pace=pace, progress=progress)
    except Exception as error:
        wrong.send(f"{type(error).__name__}: {error}")
        raise SystemExit(1) from None


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    old = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old)
