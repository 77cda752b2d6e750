"""`Stream.over`, and `Stream.run` for frames and files: a progress bar, the table, and the rows' outcome."""

from __future__ import annotations

import logging
import time as clock
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import Any, TypeVar

from ...sketches.core.lazy import pl
from ..consumer.options import RunOptions
from ..consumer.summary import Summary
from ..definition.event_time import event_time
from ..definition.sources import FrameSource
from ..definition.stream import Stream
from ..rendering.names import amount
from ..table.sketch_table import SketchTable
from ..watching.progress_line import in_foreground
from .inputs import inputs_of, reusable
from .sketching import Sketched, sketch_over

log = logging.getLogger("streamgauge.files")

_TAKEN = ("until", "workers")

S = TypeVar("S", bound=Stream)


def stream_of(kind: type[S], data: Any, time: str | pl.Expr | None) -> S:
    """A stream of this class over the rows of frames or files; see `Stream.from_files`."""
    data = reusable(data)
    types = inputs_of(data)[0].columns({})
    return kind(FrameSource(types, data), None if time is None else event_time(time, types))


class LocalTable(SketchTable):
    """A table of sketches with the outcome of its input rows: `account`."""

    __slots__ = ("account",)

    def __init__(self, sketched: Sketched) -> None:
        super().__init__(sketched.table)
        self.account = sketched.account


def table_over(stream: Stream, data: Any, threads: int | None, progress: bool) -> LocalTable:
    """See `Stream.over`."""
    if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int) or threads < 1):
        raise ValueError(f"threads must be an integer ≥ 1, got {threads!r}")
    return LocalTable(_sketched(stream, data, threads, progress))


def run_over_data(stream: Stream, options: RunOptions, progress: bool) -> Summary:
    """See `Stream.run`, for a stream created from frames or files.

    Raises `TypeError` for any other stream, and `ValueError` for options of runs on brokers.
    """
    assert isinstance(stream.source, FrameSource)
    if stream.source.data is None:
        raise TypeError(
            "this stream has a schema but no rows; supply rows with .over(frame or files), or begin the "
            "stream with Stream.from_frame, Stream.from_files or Stream.from_kafka"
        )
    default = RunOptions()
    for one in fields(RunOptions):
        if one.name not in _TAKEN and getattr(options, one.name) != getattr(default, one.name):
            raise ValueError(
                f"{one.name} is for runs on brokers, and this stream reads frames or files; leave it out"
            )
    begun = clock.monotonic()
    threads = options.workers if options.workers > 1 else None
    made = _sketched(stream, stream.source.data, threads, progress)
    seconds = max(clock.monotonic() - begun, 1e-9)
    return Summary(
        account=made.account,
        table=LocalTable(made),
        seconds=seconds,
        messages_per_second=made.account.read / seconds,
        lag=0,
        remarks=_remarks(made),
        example=made.example,
    )


def _sketched(stream: Stream, data: Any, threads: int | None, progress: bool) -> Sketched:
    """Sketch the data with a progress display, and warn if rows were refused."""
    with _bar(progress) as report:
        made = sketch_over(stream, data, threads, report)
    for remark in _remarks(made):
        log.warning("%s", remark)
    return made


def _remarks(made: Sketched) -> tuple[str, ...]:
    if not made.account.dead_lettered:
        return ()
    return (f"{amount(made.account.dead_lettered, 'row')} can't be counted; the first is {made.example}",)


@contextmanager
def _bar(wanted: bool) -> Iterator[Callable[[int, int | None], object] | None]:
    """A bar in a terminal that shows how many rows have been read."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from ..watching.console import TerminalConsole

    console = TerminalConsole(stderr=True)
    if not wanted or not console.is_terminal or not in_foreground():
        yield None
        return
    columns = (
        TextColumn("sketching", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("rows", markup=False),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as shown:
        task = shown.add_task("rows", total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)
