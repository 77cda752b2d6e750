"""Closed windows on their way out: to the run's callback, to sinks that write, and to those that send.

What is to be sent waits here until it goes out in one transaction with the merger's place (`transactions`).
"""

from __future__ import annotations

import errno
import logging
import time as wall
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
_SLOW_SECONDS = 60.0
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
        self._bytes: dict[int, int] = {}
        self._since: tuple[float, ClosedWindow] | None = None
        self._table_topic = plan.table_topic

    @property
    def sends(self) -> bool:
        """Whether there are sinks whose messages go out with the merger's place."""
        return bool(self._sending)

    @property
    def full(self) -> bool:
        """Whether so much waits that it must be sent before more windows are taken."""
        return sum(self._bytes.values()) > _FULL_BYTES

    def take(self, partition: int, table: pa.Table, final: bool) -> None:
        """Hand a window over. Raises what the callback raises, and `SinkError` if a sink can't write it."""
        window = ClosedWindow(table, partition, final, self._origin)
        self._since = wall.monotonic(), window
        if self._on_window is not None:
            self._on_window(table)
        for sink in self._writing:
            _write(sink, window)
        self._since = None
        if self._sending:
            self._waiting.setdefault(partition, []).append(window)
            self._bytes[partition] = self._bytes.get(partition, 0) + table.nbytes

    def look(self) -> None:
        """Say so, once a window, if handing it over takes long; called from another thread."""
        since = self._since
        if since is not None and wall.monotonic() - since[0] > _SLOW_SECONDS:
            self._since = None
            log.warning(
                "handing over %s takes more than %.0f s; nothing is lost, but until it returns no further "
                "window is told, and the table topic %r grows on the brokers' disks",
                *(told_of(since[1]), _SLOW_SECONDS, self._table_topic),
            )

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
        waiting = self._waiting.get(partition, [])
        del waiting[:count]
        self._bytes[partition] = sum(window.table.nbytes for window in waiting)

    def check_empty(self) -> None:
        """Say so if windows could not be sent before the end. Raises `SinkError` if no later run will."""
        left = [window for waiting in self._waiting.values() for window in waiting]
        if not left:
            return
        many = f"{len(left)} window{'s' * (len(left) > 1)}"
        told = f"{many}, first {told_of(left[0])}, could not be sent to {self._sending}"
        if not self._origin.named:
            raise SinkError(f"{told}; start the run again, or give it a group_id so that a later one can")
        log.warning("%s; the next run of the group hands them over again", told)

    def forget(self, partitions: Iterable[int]) -> None:
        """Drop what waits of these partitions: other members have them, and hand it over again."""
        for partition in partitions:
            self._waiting.pop(partition, None)
            self._bytes.pop(partition, None)


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
