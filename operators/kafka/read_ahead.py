"""Reading ahead: a thread reads the next batches while their owner processes the last one."""

from __future__ import annotations

import queue
import threading
from contextvars import copy_context
from typing import NamedTuple

from ..formats.messages import Messages
from .reader import Reader
from .source import TopicPartition

_WAIT_SECONDS = 0.05


class _Batch(NamedTuple):
    """The result of a read, and the reader's state after it."""

    messages: Messages | None
    positions: dict[TopicPartition, int]
    epochs: dict[TopicPartition, int]
    collects: bool
    """Whether the next read begins only when the owner wants it."""


class ReadAhead:
    """The batches of a `Reader`; the next one is read before it is requested.

    Reading, decompressing and gathering don't need the GIL, so they run in parallel with decoding and
    sketching. Reading one batch ahead is best: what arrives while the owner is busy makes the next batch
    longer, which costs less per message. With `may_collect`, nothing is read in advance once the ends of all
    partitions are reached (`collects`): the longer the owner then waits, the longer the next batch. This
    object owns the reader until `close`. Its positions are those after the messages that it has returned,
    even if it has read further.
    """

    def __init__(self, reader: Reader, max_messages: int, may_collect: bool = False) -> None:
        self._reader = reader
        self._max_messages = max_messages
        self._may_collect = may_collect
        self._last = _Batch(None, reader.positions(), reader.epochs(), False)
        self._results: queue.Queue[_Batch | BaseException] = queue.Queue(1)
        self._wanted = threading.Event()
        self._closing = threading.Event()
        self._thread = threading.Thread(
            target=copy_context().run, args=(self._run,), name="streamgauge-reader", daemon=True
        )
        self._thread.start()

    def read(self, timeout: float) -> Messages | None:
        """The next messages; None after at most `timeout` seconds without any. Raises what reading raised."""
        try:
            if self._results.empty():  # while a batch waits, this would have the next one read in advance
                self._wanted.set()
            result = self._results.get(timeout=timeout)
        except queue.Empty:
            return None
        if isinstance(result, BaseException):
            raise result
        self._last = result
        return result.messages

    @property
    def collects(self) -> bool:
        """Whether messages collect now until the next `read`, because all there were have been returned."""
        return self._last.collects

    def positions(self) -> dict[TopicPartition, int]:
        """The offset after everything that was returned, for each partition; see `Reader.positions`."""
        return self._last.positions

    def epochs(self) -> dict[TopicPartition, int]:
        """The epochs of the leaders whose logs were read up to there; see `Reader.epochs`."""
        return self._last.epochs

    def close(self) -> None:
        """Release the reader; what was read and not returned is dropped."""
        self._closing.set()
        self._thread.join()

    def _run(self) -> None:
        result: _Batch | BaseException
        while not self._closing.is_set():
            try:
                messages = self._reader.read(self._max_messages, _WAIT_SECONDS)
                positions, epochs = self._reader.positions(), self._reader.epochs()
                collects = self._may_collect and self._reader.caught_up()
                result = _Batch(messages, positions, epochs, collects)
            except BaseException as error:
                result = error
            self._wanted.clear()  # before the owner gets this batch, after which it may want the next one
            self._put(result)
            if isinstance(result, BaseException):
                return
            while result.collects and not self._closing.is_set() and not self._wanted.wait(_WAIT_SECONDS):
                pass

    def _put(self, result: _Batch | BaseException) -> None:
        while not self._closing.is_set():
            try:
                return self._results.put(result, timeout=_WAIT_SECONDS)
            except queue.Full:
                continue
