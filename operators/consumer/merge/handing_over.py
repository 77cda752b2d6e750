"""Closed windows on their way out: to the run's callback, to sinks that write, that send, that remember.

What is to be sent waits here until it goes out in one transaction with the merger's place (`transactions`).
What sinks remember is kept with that place, too, so that they remember just the windows that it is behind.
"""

from __future__ import annotations

import errno
import logging
import time as wall
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

import pyarrow as pa
from tenacity import Retrying, before_sleep_log, retry_if_exception, stop_after_delay, wait_fixed

from ...kafka.outgoing import Outgoing
from ...sinks.sink import (
    ClosedWindow,
    Folding,
    FoldingSink,
    MessageSink,
    Origin,
    Passed,
    SinkError,
    WritingSink,
    told_of,
)
from ..plan import Plan

log = logging.getLogger("streamgauge.kafka")

_FULL_BYTES = 64 * 1024 * 1024
"""What may wait to be sent before it is sent, whatever the time."""
_TRY_SECONDS = 30.0
_SLOW_SECONDS = 60.0
_PAUSE_SECONDS = 0.5
_HOPELESS = {errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EISDIR, errno.EROFS, errno.ENAMETOOLONG}
"""Errors of a disk that waiting won't mend."""


class Parcel(NamedTuple):
    """What a window, or the passing of time, has to be sent: its messages, and in words what they are of."""

    messages: Callable[[], Iterable[Outgoing]]
    told: Callable[[], str]
    nbytes: int


class HandOver:
    """Hands windows over, in the order in which they closed.

    `take` calls the run's `on_window` and the sinks that write or remember; what they raise ends the run, and
    the window comes again in the next. What is to be sent waits until `sent` or `forget`.
    """

    def __init__(self, plan: Plan) -> None:
        options = plan.options
        self._on_window = options.on_window
        self._origin = origin_of(plan)
        self._writing = [sink for sink in options.sinks if isinstance(sink, WritingSink)]
        self._sending = [sink for sink in options.sinks if isinstance(sink, MessageSink)]
        self._remembering = [sink for sink in options.sinks if isinstance(sink, FoldingSink)]
        self._foldings: dict[int, dict[str, Folding]] = {}
        self._waiting: dict[int, list[Parcel]] = {}
        self._bytes: dict[int, int] = {}
        self._since: tuple[float, ClosedWindow] | None = None
        self._table_topic = plan.table_topic

    @property
    def sends(self) -> bool:
        """Whether there are sinks whose messages go out with the merger's place."""
        return bool(self._sending or self._remembering)

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
        for name, folding in self._foldings.get(partition, {}).items():
            told = f"the sink {name!r}: {told_of(window)}"
            self._put(partition, _remembered(partial(folding.take, window), told), told)
        self._since = None
        for sending in self._sending:
            # Its messages are made when they are sent, and again if they must be: together they may be large.
            made = partial(sending.messages, window)
            self._add(partition, Parcel(made, partial(_told, sending, window), table.nbytes))

    def passed(self, partition: int, progress: Passed) -> None:
        """Tell sinks that remember how far the run has come, all windows until then handed over."""
        for name, folding in self._foldings.get(partition, {}).items():
            told = f"the sink {name!r}"
            self._put(partition, _remembered(partial(folding.passed, progress), told), told)

    def memory(self, partition: int) -> Mapping[str, str]:
        """What sinks remember of a partition of the table topic, by their names."""
        return {name: folding.memory() for name, folding in self._foldings.get(partition, {}).items()}

    def resume(self, partition: int, memory: Mapping[str, str]) -> None:
        """Take up what sinks remembered when the partition's place was kept.

        Raises `SinkError` for damage.
        """
        self._foldings[partition] = foldings = {}
        for sink in self._remembering:
            foldings[sink.name] = sink.folding(self._origin, partition)
            if sink.name in memory:
                foldings[sink.name].resume(memory[sink.name])

    def _put(self, partition: int, messages: list[Outgoing], told: str) -> None:
        if messages:
            nbytes = sum(message.size for message in messages)
            self._add(partition, Parcel(lambda: messages, lambda: told, nbytes))

    def _add(self, partition: int, parcel: Parcel) -> None:
        self._waiting.setdefault(partition, []).append(parcel)
        self._bytes[partition] = self._bytes.get(partition, 0) + parcel.nbytes

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

    def waiting(self, partition: int) -> list[Parcel]:
        """What waits to be sent of a partition of the table topic, oldest first."""
        return list(self._waiting.get(partition, ()))

    def messages(self, parcels: Iterable[Parcel]) -> Iterator[tuple[Outgoing, Callable[[], str]]]:
        """The messages of parcels, each with who can say what it is of."""
        for parcel in parcels:
            for message in parcel.messages():
                yield message, parcel.told

    def sent(self, partition: int, count: int) -> None:
        """Note that the first so many parcels of a partition were sent."""
        waiting = self._waiting.get(partition, [])
        del waiting[:count]
        self._bytes[partition] = sum(parcel.nbytes for parcel in waiting)

    def check_empty(self) -> None:
        """Say so if windows could not be sent before the end. Raises `SinkError` if no later run will."""
        left = [parcel for waiting in self._waiting.values() for parcel in waiting]
        if not left:
            return
        many = f"the messages of {len(left)} window{'s' * (len(left) > 1)}"
        told = f"{many}, first {left[0].told()}, could not be sent"
        if not self._origin.named:
            raise SinkError(f"{told}; start the run again, or give it a group_id so that a later one can")
        log.warning("%s; the next run of the group hands them over again", told)

    def forget(self, partitions: Iterable[int]) -> None:
        """Drop what waits of these partitions: other members have them, and hand it over again."""
        for partition in partitions:
            self._foldings.pop(partition, None)
            self._waiting.pop(partition, None)
            self._bytes.pop(partition, None)


def _told(sink: MessageSink | WritingSink, window: ClosedWindow) -> str:
    return f"the sink {sink!r}: {told_of(window)}"


def origin_of(plan: Plan) -> Origin:
    """What the sinks of a run are told of it."""
    named = plan.options.group_id is not None
    return Origin.of(plan.stream, plan.log_group, named)


def _remembered(step: Callable[[], list[Outgoing]], told: str) -> list[Outgoing]:
    try:
        return step()
    except OSError as error:
        raise SinkError(
            f"{told}: {type(error).__name__}: {error}; the next run of the group goes on from there"
        ) from error


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
