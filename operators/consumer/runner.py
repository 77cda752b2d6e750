"""Run a stream straight off Kafka: `run` waits for its end, `start` comes back at once."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, nullcontext

from ..definition.stream import Stream
from ..watching.progress_line import in_foreground, shown
from .beginning import plan_of
from .ending import as_interrupt
from .options import RunOptions
from .run import Run
from .summary import Summary


def run(stream: Stream, options: RunOptions, progress: bool = True) -> Summary:
    """Run until the end, or until interrupted, and give the result.

    With `progress`, a line at the bottom of the terminal says how it is doing, if this program has one.

    With ``until="latest"`` it ends when all messages that exist now are counted. Without, it goes on until
    Ctrl-C, SIGTERM or SIGHUP end it in order, unless the program handles those itself: the summary then says
    `interrupted`. Raises what `start` and `Run.wait` raise.
    """
    with as_interrupt():
        started = start(stream, options)
        with _line(started) if progress and in_foreground() else nullcontext():
            try:
                return started.wait()
            except KeyboardInterrupt:
                started.stop()
                return started.wait(interrupted=True)


def _line(started: Run) -> AbstractContextManager[None]:
    return shown(started.plan.topic, started.figures, time.monotonic)


def start(stream: Stream, options: RunOptions) -> Run:
    """Start a stream's workers and merger, and come back at once.

    Raises `TopicError` if the topic doesn't exist or is not the one that the group began with,
    `DefinitionChanged` for a group that has another definition, with the difference in words, and
    `ValueError` or `TypeError` for a stream that can't run.
    """
    return Run(plan_of(stream, options))
