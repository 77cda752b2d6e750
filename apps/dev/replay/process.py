"""A replay in its own process, so that generating posts doesn't slow down counting them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import forkserver, resource_tracker
from typing import Any

from ....sketches.core.errors import StreamgaugeError
from ...recordings.batch import Source

_SENDER = "streamgauge.apps.dev.replay.sender"


class ReplayError(StreamgaugeError, RuntimeError):
    """A replay ended early; the message says why."""


_LONGEST_FOLDER = 64
"""The longest folder in bytes: a socket's path, with multiprocessing's names, may have 107, elsewhere 103."""


def start_method(folder: str) -> str:
    """Return the start method of processes, given the folder for the fork server's socket.

    >>> start_method("/tmp/" + 100 * "a")
    'spawn'
    """
    forks = "forkserver" in multiprocessing.get_all_start_methods()
    return "forkserver" if forks and len(os.fsencode(folder)) <= _LONGEST_FOLDER else "spawn"


class Replay:
    """Sends a source's messages to a topic in the background.

    The process ends when all messages are sent, when `stop` is called, and when its parent is gone.
    """

    def __init__(self, source: Source, topic: str, bootstrap_servers: str, *, pace: bool = True) -> None:
        context: Any = multiprocessing.get_context(start_method(tempfile.gettempdir()))
        # One process writes, one reads. A lock would have to be registered with multiprocessing's tracker,
        # and closing a terminal ends the tracker first.
        self._sent: Any = context.Value("q", 0, lock=False)
        self._wrong, theirs = context.Pipe(duplex=False)
        self._process = context.Process(
            target=_run,
            args=(source, topic, bootstrap_servers, pace, self._sent, theirs),
            name="streamgauge replay",
            daemon=True,
        )

    @staticmethod
    def prepare(*modules: str) -> None:
        """Begin to start the process from which replays are forked, with these modules and its own loaded."""
        if start_method(tempfile.gettempdir()) == "forkserver":
            multiprocessing.set_forkserver_preload([_SENDER, *modules])
            with _interrupts_blocked():
                forkserver.ensure_running()

    def start(self) -> Replay:
        """Start sending."""
        self.prepare()
        with _interrupts_blocked():
            self._process.start()
        return self

    @property
    def sent(self) -> int:
        """The number of messages passed to Kafka so far."""
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
        """End the replay immediately; does nothing if it never ran or has ended."""
        if self.running:
            self._process.kill()
            self._process.join()


def _run(source: Source, topic: str, servers: str, pace: bool, sent: Any, wrong: Any) -> None:
    from .sender import send

    def progress(so_far: int) -> None:
        sent.value = so_far

    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        send(source, topic, servers, pace=pace, progress=progress)
    except Exception as error:
        wrong.send(f"{type(error).__name__}: {error}")
        raise SystemExit(1) from None


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Shield started processes from Ctrl-C, which goes to all processes of a terminal; their parent ends
    them."""
    # Start multiprocessing's tracker first, because its start unblocks interrupts.
    resource_tracker.ensure_running()
    old = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old)
