"""Run a stream straight off Kafka: `run` waits for its end, `start` returns immediately."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol, TypeVar

from ..definition.stream import Stream
from ..watching.figures import Figures
from ..watching.progress_line import in_foreground, progress_lines
from .group.committed import LONE
from .options import RunOptions
from .run import Run
from .shared_run import RunTogether
from .signals import as_interrupt
from .summary import Summary
from .supervision.exposed_metrics import metrics_of
from .supervision.run_planning import plans_of

End = TypeVar("End", covariant=True)


class _Started(Protocol[End]):
    def stop(self, timeout: float | None = ...) -> None: ...

    def wait(self, seconds: float | None = None, interrupted: bool = False) -> End: ...


def run(stream: Stream, options: RunOptions, progress: bool = True) -> Summary:
    """Run until the end, or until interrupted, and return the result.

    With `progress`, a line at the bottom of the terminal, if there is one, shows the progress.

    With ``until="latest"`` it ends when all messages that exist now are counted. Otherwise it continues until
    Ctrl-C, SIGTERM or SIGHUP end it cleanly, unless the program handles these itself; the summary is then
    marked `interrupted`. Raises what `start` and `Run.wait` raise.
    """
    with as_interrupt():
        started = start(stream, options)
        return _waited(started, {started.plan.topic: started.figures} if progress else {})


def start(stream: Stream, options: RunOptions) -> Run:
    """Start a stream's workers and merger, and return immediately.

    Raises `TopicError` if the topic doesn't exist or is not the one that the group began with,
    `DefinitionChanged` for a group that has another definition, with the difference in words, `OSError` if
    the address of metrics is not available, and `ValueError` or `TypeError` for a stream that can't run. A
    run without a group then leaves no table topic behind.
    """
    with metrics_of(options) as exposed:
        return Run(plans_of({LONE: stream}, {LONE: options}).first, exposed)


def run_together(
    streams: Mapping[str, Stream], options: Mapping[str, RunOptions], progress: bool = True
) -> dict[str, Summary]:
    """Run several streams until the end, or until interrupted, as `run` does; return the results by name."""
    with as_interrupt():
        started = start_together(streams, options)
        looks = {name: started[name].figures for name in started} if progress else {}
        return _waited(started, looks)


def start_together(streams: Mapping[str, Stream], options: Mapping[str, RunOptions]) -> RunTogether:
    """Start several streams that share a consumer; return immediately (`shared_run.options_of`)."""
    with metrics_of(next(iter(options.values()))) as exposed:
        return RunTogether(plans_of(streams, options), exposed)


def _waited(started: _Started[End], looks: Mapping[str, Callable[[], Figures]]) -> End:
    """Wait for a run's end, showing the progress that `looks` return."""
    with _lines(looks) if looks and in_foreground() else nullcontext():
        try:
            return started.wait()
        except KeyboardInterrupt:
            started.stop()
            return started.wait(interrupted=True)


def _lines(looks: Mapping[str, Callable[[], Figures]]) -> AbstractContextManager[None]:
    return progress_lines(looks, time.monotonic)
