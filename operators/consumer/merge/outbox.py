"""Emitting closed windows: to the run's callback, and to sinks that write, send or remember.

Messages wait here until they are sent in one transaction with the merger's checkpoint
(`checkpoint_transactions`). Sinks' memory is stored with that checkpoint as well, so that it covers exactly
the windows before it.
"""

from __future__ import annotations

import errno
import logging
import math
import time as wall
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

import pyarrow as pa
from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_delay, wait_fixed

from ...kafka.outgoing_message import Outgoing
from ...sinks.sink import (
    ClosedWindow,
    MessageSink,
    Origin,
    PartitionSink,
    RunProgress,
    SinkError,
    StatefulSink,
    WritingSink,
    describe_window,
    takes_several,
)
from ...table.sketch_table import SketchTable
from ...table.window_groups import WindowGroups
from ..run_plan import Plan

log = logging.getLogger("streamgauge.kafka")

_TOGETHER_SECONDS = 0.1
"""Windows that closed together may be emitted one by one for this long before the count is recorded."""
_FULL_BYTES = 64 * 1024 * 1024
"""The number of bytes that may wait; beyond it, they are sent early."""
_TRY_SECONDS = 30.0
_SLOW_SECONDS = 60.0
_PAUSE_SECONDS = 0.5
_HOPELESS = {errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EISDIR, errno.EROFS, errno.ENAMETOOLONG}
"""Disk errors that retrying can't fix."""


class OutboxEntry(NamedTuple):
    """What must be sent for a window, or for the passing of time: its messages, and their description."""

    messages: Callable[[], Iterable[Outgoing]]
    describe: Callable[[], str]
    nbytes: int
    windows: int


class Outbox:
    """Emits windows, in the order in which they closed.

    `emit` calls the run's `on_window` and the sinks that write or remember; if they raise, the run ends, and
    the next run emits the window again. Messages wait until `mark_sent` or `forget`. Windows for which
    `seconds_left` leaves no time are left to the next run.
    """

    def __init__(self, plan: Plan, seconds_left: Callable[[], float] = lambda: math.inf) -> None:
        options = plan.options
        self._on_window = options.on_window
        self._origin = origin_of(plan)
        self._writing = [sink for sink in options.all_sinks if isinstance(sink, WritingSink)]
        self._sending = [sink for sink in options.all_sinks if isinstance(sink, MessageSink)]
        self._stateful = [sink for sink in options.all_sinks if isinstance(sink, StatefulSink)]
        self._sink_states: dict[int, dict[str, PartitionSink]] = {}
        self._waiting: dict[int, list[OutboxEntry]] = {}
        self._bytes: dict[int, int] = {}
        self._since: tuple[float, ClosedWindow] | None = None
        self._warned = False
        self._table_topic = plan.table_topic
        self._seconds_left = seconds_left
        self._window_seconds = 0.0

    @property
    def sends(self) -> bool:
        """Whether there are sinks whose messages are sent with the merger's checkpoint."""
        return bool(self._sending or self._stateful)

    @property
    def full(self) -> bool:
        """Whether so much waits that it must be sent before more windows are accepted."""
        return sum(self._bytes.values()) > _FULL_BYTES

    @property
    def out_of_time(self) -> bool:
        """Whether a stop leaves less time than the last window took."""
        return self._seconds_left() < self._window_seconds

    @property
    def occupied_by(self) -> str:
        """The window that is being emitted now, in words; empty if there is none."""
        since = self._since
        return "" if since is None else describe_window(since[1])

    def emit(
        self,
        partition: int,
        groups: WindowGroups,
        final: bool,
        handed: Callable[[WindowGroups], None] = lambda groups: None,
    ) -> None:
        """Emit windows that closed together.

        `handed` is called with the emitted windows, in order, or with some at a time if emitting takes long.
        They are split into single windows only if a callback or a sink needs that. Raises what the callback
        raises, and `SinkError` if a sink can't accept a window; the windows before it are then emitted.
        """
        if self._on_window is None and not self._writing:
            self._pass_on(partition, groups, final)
            handed(groups)
            return
        low = high = 0
        begun = wall.monotonic()
        try:
            for one in groups.windows():
                if self.out_of_time:
                    break
                self._show(ClosedWindow(one, partition, final, self._origin))
                high += len(one)
                if high < len(groups) and wall.monotonic() - begun > _TOGETHER_SECONDS:
                    self._pass_on(partition, groups.slice(low, high), final)
                    handed(groups.slice(low, high))
                    low, begun = high, wall.monotonic()
        finally:
            if low < high:
                self._pass_on(partition, groups.slice(low, high), final)
                handed(groups.slice(low, high))

    def _show(self, window: ClosedWindow) -> None:
        """Pass a window to the callback and to the sinks that write."""
        begun = wall.monotonic()
        self._since, self._warned = (begun, window), False
        if self._on_window is not None:
            table = SketchTable.of_groups(window.groups)
            self._on_window(table)
            table.drop_answers()
        for sink in self._writing:
            _write(sink, window, self._seconds_left)
        self._window_seconds = wall.monotonic() - begun
        self._since = None

    def _pass_on(self, partition: int, groups: WindowGroups, final: bool) -> None:
        """Pass windows to the sinks that remember or send."""
        for name, folding in self._sink_states.get(partition, {}).items():
            several = next(takes_several(sink) for sink in self._stateful if sink.name == name)
            for window in self._closed(partition, groups, final, several):
                self._since, self._warned = (wall.monotonic(), window), False
                context = partial(_describe_named, name, window)
                self._put(partition, _run_sink(partial(folding.update, window), context), context)
        self._since = None
        for sending in self._sending:
            # Messages are created when they are sent, and again for a retry: together they may be large.
            for window in self._closed(partition, groups, final, takes_several(sending)):
                made, context = partial(sending.messages, window), partial(_describe, sending, window)
                count = len(window.groups.windows())
                self._add(partition, OutboxEntry(made, context, window.groups.nbytes, count))

    def _closed(
        self, partition: int, groups: WindowGroups, final: bool, together: bool
    ) -> Iterator[ClosedWindow]:
        for part in [groups] if together else groups.windows():
            yield ClosedWindow(part, partition, final, self._origin)

    def advance(self, partition: int, progress: RunProgress) -> None:
        """Report the run's progress to sinks that remember; all windows up to there are emitted."""
        for name, folding in self._sink_states.get(partition, {}).items():
            context = partial(_describe_named, name)
            self._put(partition, _run_sink(partial(folding.advance, progress), context), context)

    def memory(self, partition: int) -> Mapping[str, str]:
        """Sinks' memory for a partition of the table topic, by sink name."""
        return {name: folding.state() for name, folding in self._sink_states.get(partition, {}).items()}

    def restore(self, partition: int, memory: Mapping[str, str]) -> None:
        """Restore sinks' memory from the partition's checkpoint.

        Raises `SinkError` for damaged memory.
        """
        self._sink_states[partition] = foldings = {}
        for sink in self._stateful:
            foldings[sink.name] = sink.for_partition(self._origin, partition)
            if sink.name in memory:
                foldings[sink.name].restore(memory[sink.name])

    def _put(self, partition: int, messages: list[Outgoing], context: Callable[[], str]) -> None:
        if messages:
            nbytes = sum(message.size for message in messages)
            self._add(partition, OutboxEntry(lambda: messages, context, nbytes, 1))

    def _add(self, partition: int, parcel: OutboxEntry) -> None:
        self._waiting.setdefault(partition, []).append(parcel)
        self._bytes[partition] = self._bytes.get(partition, 0) + parcel.nbytes

    def warn_if_slow(self) -> None:
        """Warn, once per window, if emitting it takes long; called from another thread."""
        since = self._since
        if since is not None and not self._warned and wall.monotonic() - since[0] > _SLOW_SECONDS:
            self._warned = True
            log.warning(
                "delivering %s takes more than %.0f s; nothing is lost, but until it returns no further "
                "window is emitted, and the table topic %r grows on the brokers' disks",
                *(describe_window(since[1]), _SLOW_SECONDS, self._table_topic),
            )

    def emit_provisional(self, table: pa.Table) -> None:
        """Pass an open window to the callback. Raises what that raises."""
        if self._on_window is not None:
            self._on_window(SketchTable(table))

    def waiting(self, partition: int) -> list[OutboxEntry]:
        """What waits to be sent for a partition of the table topic, oldest first."""
        return list(self._waiting.get(partition, ()))

    def describe_waiting(self) -> str:
        """How many windows wait to be sent, and the first of them, in words; empty if none waits."""
        left = [parcel for waiting in self._waiting.values() for parcel in waiting]
        if not left:
            return ""
        count = sum(parcel.windows for parcel in left)
        return f"the messages of {count} window{'s' * (count > 1)}, first {left[0].describe()}"

    def messages(self, parcels: Iterable[OutboxEntry]) -> Iterator[tuple[Outgoing, Callable[[], str]]]:
        """The messages of entries, each with a function that describes its window."""
        for parcel in parcels:
            for message in parcel.messages():
                yield message, parcel.describe

    def mark_sent(self, partition: int, count: int) -> None:
        """Record that a partition's first `count` entries were sent."""
        waiting = self._waiting.get(partition, [])
        del waiting[:count]
        self._bytes[partition] = sum(parcel.nbytes for parcel in waiting)

    def check_empty(self) -> None:
        """Warn if windows are left unsent at the end. Raises `SinkError` if no later run will send them."""
        if not (waiting := self.describe_waiting()):
            return
        problem = f"{waiting}, could not be sent"
        if not self._origin.named:
            raise SinkError(f"{problem}; start the run again, or give it a group_id so that a later one can")
        log.warning("%s; the next run of the group delivers them again", problem)

    def forget(self, partitions: Iterable[int]) -> None:
        """Drop what waits for these partitions: other members have them, and emit it again."""
        for partition in partitions:
            self._sink_states.pop(partition, None)
            self._waiting.pop(partition, None)
            self._bytes.pop(partition, None)


def _describe(sink: MessageSink | WritingSink, window: ClosedWindow) -> str:
    return f"the sink {sink!r}: {describe_window(window)}"


def _describe_named(name: str, window: ClosedWindow | None = None) -> str:
    return f"the sink {name!r}" + ("" if window is None else f": {describe_window(window)}")


def origin_of(plan: Plan) -> Origin:
    """The run's origin, for its sinks."""
    named = plan.options.group_id is not None
    return Origin.of(plan.stream, plan.log_group, named)


def _run_sink(step: Callable[[], list[Outgoing]], context: Callable[[], str]) -> list[Outgoing]:
    try:
        return step()
    except OSError as error:
        raise SinkError(
            f"{context()}: {type(error).__name__}: {error}; the next run of the group resumes from there"
        ) from error


def _warn_retry(sink: WritingSink, window: ClosedWindow, attempt: RetryCallState) -> None:
    """Log, before the second attempt, which sink and window are retried, and why."""
    if attempt.attempt_number == 1:
        error = None if attempt.outcome is None else attempt.outcome.exception()
        log.warning(
            "%s can't be written now; retrying for up to %.0f s: %s: %s",
            *(_describe(sink, window), _TRY_SECONDS, type(error).__name__, error),
        )


def _write(sink: WritingSink, window: ClosedWindow, seconds_left: Callable[[], float]) -> None:
    long_enough = stop_after_delay(_TRY_SECONDS)
    tries = Retrying(
        retry=retry_if_exception(lambda error: isinstance(error, OSError) and error.errno not in _HOPELESS),
        wait=wait_fixed(_PAUSE_SECONDS),
        stop=lambda attempt: long_enough(attempt) or seconds_left() <= 0,
        before_sleep=partial(_warn_retry, sink, window),
        reraise=True,
    )
    try:
        tries(sink.write, window)
    except Exception as error:
        raise SinkError(
            f"{_describe(sink, window)} can't be written: {type(error).__name__}: {error}; the next run "
            "of the group delivers it again"
        ) from error
