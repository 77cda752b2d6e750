"""Closed windows on their way out: to the run's callback, to sinks that write, and to those that send.

What is to be sent waits here until it goes out in one transaction with the merger's place (`transactions`).
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import pyarrow as pa
from tenacity import Retrying, before_sleep_log, retry_if_exception, stop_after_delay, wait_fixed

from ...kafka.outgoing import Outgoing
from ...sinks.sink import ClosedWindow, MessageSink, Origin, Sink, SinkError, WritingSink, told_of
from ..plan import Plan

log = logging.getLogger("streamgauge.kafka")

_FULL_BYTES = 64 * 1024 * 1024
"""What may wait to be sent before it is sent, whatever the time."""
_TRY_SECONDS = 30.0
_PAUSE_SECONDS = 0.5
_HOPELESS = {errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EISDIR, errno.EROFS, errno.ENAMETOOLONG}
"""Errors of a disk that waiting won't mend."""


class HandOver:
    """Hands windows over, in the order in which they closed.

    `take` calls the run's `on_window` and the sinks that write; what they raise ends the run, and the window
    comes again in the next. Windows for sinks that send wait until `sent` or `forget`.
    """

    def __init__(self, plan: Plan) -> None:
        options = plan.options
        self._on_window = options.on_window
        self._origin = origin_of(plan)
        self._writing = [sink for sink in options.sinks if isinstance(sink, WritingSink)]
        self._sending = [sink for sink in options.sinks if isinstance(sink, MessageSink)]
        self._waiting: dict[int, list[ClosedWindow]] = {}

    @property
    def sends(self) -> bool:
        """Whether there are sinks whose messages go out with the merger's place."""
        return bool(self._sending)

    @property
    def full(self) -> bool:
        """Whether so much waits that it must be sent before more windows are taken."""
        windows = (window for waiting in self._waiting.values() for window in waiting)
        return sum(window.table.nbytes for window in windows) > _FULL_BYTES

    def take(self, partition: int, table: pa.Table, final: bool) -> None:
        """Hand a window over. Raises what the callback raises, and `SinkError` if a sink can't write it."""
        if self._on_window is not None:
            self._on_window(table)
        window = ClosedWindow(table, partition, final, self._origin)
        for sink in self._writing:
            _write(sink, window)
        if self._sending:
            self._waiting.setdefault(partition, []).append(window)

    def show(self, table: pa.Table) -> None:
        """Let the callback see a window that fills. Raises what it raises."""
        if self._on_window is not None:
            self._on_window(table)

    def waiting(self, partition: int) -> list[ClosedWindow]:
        """The windows of a partition of the table topic that wait to be sent, oldest first."""
        return list(self._waiting.get(partition, ()))

    def messages(self, windows: Iterable[ClosedWindow]) -> Iterator[tuple[Outgoing, Callable[[], str]]]:
        """The messages of windows, each with who can say what it is of."""
        for window in windows:
            for sink in self._sending:
                for message in sink.messages(window):
                    yield message, partial(_told, sink, window)

    def sent(self, partition: int, count: int) -> None:
        """Note that the first so many windows of a partition were sent."""
        del self._waiting.get(partition, [])[:count]

    def forget(self, partitions: Iterable[int]) -> None:
        """Drop what waits of these partitions: other members have them, and hand it over again."""
        for partition in partitions:
            self._waiting.pop(partition, None)


def _told(sink: Sink, window: ClosedWindow) -> str:
    return f"the sink {sink!r}: {told_of(window)}"


def origin_of(plan: Plan) -> Origin:
    """What the sinks of a run are told of it."""
    named = plan.options.group_id is not None
    return Origin.of(plan.stream, plan.group_id, named)


def _write(sink: WritingSink, window: ClosedWindow) -> None:
    tries = Retrying(
        retry=retry_if_exception(lambda error: isinstance(error, OSError) and error.errno not in _HOPELESS),
        wait=wait_fixed(_PAUSE_SECONDS),
        stop=stop_after_delay(_TRY_SECONDS),
        before_sleep=before_sleep_log(log, logging.WARNING),
        reraise=True,
    )
    try:
        tries(sink.write, window)
    except Exception as error:
        raise SinkError(
            f"{_told(sink, window)} can't be written: {type(error).__name__}: {error}; the next run "
            "of the group hands it over again"
        ) from error
