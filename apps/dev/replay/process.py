"""A replay in a process of its own, so that making posts takes no time from counting them."""

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
    """A replay that ended early; the message says why."""


_LONGEST_FOLDER = 64
"""In bytes: a socket's path, with two names that multiprocessing makes up, may have 107, elsewhere 103."""


def start_method(folder: str) -> str:
    """How processes start whose server would have its socket in a folder for temporary files.

    >>> start_method("/tmp/" + 100 * "a")
    'spawn'
    """
    forks = "forkserver" in multiprocessing.get_all_start_methods()
    return "forkserver" if forks and len(os.fsencode(folder)) <= _LONGEST_FOLDER else "spawn"


class Replay:
    """Sends a source's messages to a topic in the background.

    The process ends by itself when all is sent, when `stop` is called, and when its parent is gone.
    """

    def __init__(self, source: Source, topic: str, bootstrap_servers: str, *, pace: bool = True) -> None:
        context: Any = multiprocessing.get_context(start_method(tempfile.gettempdir()))
        # One writes, one reads. A lock would be a name that multiprocessing's tracker has to know at the end,
        # and a terminal that is closed ends the tracker first.
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
        """Begin to start the process that replays are forked from, with these modules and its own loaded."""
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
    """Ctrl-C goes to all processes of a terminal; those started here are ended by their parent, silently."""
    # multiprocessing's tracker is started before, as its start lets interrupts in again.
    resource_tracker.ensure_running()
    old = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old)
