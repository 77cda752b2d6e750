"""Reading ahead: a thread reads the next batches while their owner processes the last one."""

from __future__ import annotations

import queue
import threading
from contextvars import copy_context

from ..formats.messages import Messages
from .reader import Reader
from .source import TopicPartition

_WAIT_SECONDS = 0.05

_Result = tuple[Messages | None, dict[TopicPartition, int], dict[TopicPartition, int]] | BaseException


class ReadAhead:
    """The batches of a `Reader`; the next one is read before it is requested.

    Reading, decompressing and gathering don't need the GIL, so they run in parallel with decoding and
    sketching. Reading one batch ahead is best: what arrives while the owner is busy makes the next batch
    longer, which costs less per message. This object owns the reader until `close`; positions are those of
    what was returned, not of what was read.
    """

    def __init__(self, reader: Reader, max_messages: int) -> None:
        self._reader = reader
        self._max_messages = max_messages
        self._positions, self._epochs = reader.positions(), reader.epochs()
        self._results: queue.Queue[_Result] = queue.Queue(1)
        self._closing = threading.Event()
        self._thread = threading.Thread(
            target=copy_context().run, args=(self._run,), name="streamgauge-reader", daemon=True
        )
        self._thread.start()

    def read(self, timeout: float) -> Messages | None:
        """The next messages; None after at most `timeout` seconds without any. Raises what reading raised."""
        try:
            result = self._results.get(timeout=timeout)
        except queue.Empty:
            return None
        if isinstance(result, BaseException):
            raise result
        messages, self._positions, self._epochs = result
        return messages

    def positions(self) -> dict[TopicPartition, int]:
        """The offset after everything that was returned, for each partition; see `Reader.positions`."""
        return self._positions

    def epochs(self) -> dict[TopicPartition, int]:
        """The epochs of the leaders whose logs were read up to there; see `Reader.epochs`."""
        return self._epochs

    def close(self) -> None:
        """Release the reader; what was read and not returned is dropped."""
        self._closing.set()
        self._thread.join()

    def _run(self) -> None:
        result: _Result
        while not self._closing.is_set():
            try:
                messages = self._reader.read(self._max_messages, _WAIT_SECONDS)
                result = messages, self._reader.positions(), self._reader.epochs()
            except BaseException as error:
                result = error
            self._put(result)
            if isinstance(result, BaseException):
                return

    def _put(self, result: _Result) -> None:
        while not self._closing.is_set():
            try:
                return self._results.put(result, timeout=_WAIT_SECONDS)
            except queue.Full:
                continue
