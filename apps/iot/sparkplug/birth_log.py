"""A topic's births, read to the end of the topic before data are decoded by them.

A birth and the data after it may be in different partitions, since their keys differ. So a worker reads all
partitions to their current ends before it decodes: a birth that was written before the data is then known.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import polars as pl

from ....operators.formats.messages import Messages
from ....operators.formats.per_message import Misread
from ....operators.formats.retryable_error import Unavailable
from ....operators.kafka.reader import EARLIEST, NoAnswer, PositionGone, Reader, ReadError
from .births import Births, birth_of
from .payload import payload_of, speaker_of

_AT_ONCE_SECONDS = 120.0
"""How long births are read before a waiting worker logs that it is alive."""
_NO_PROGRESS_SECONDS = 30.0
_MOST = 8


class BirthLog:
    """The births in a topic. Only one thread reads it at a time."""

    def __init__(self, topic: str, settings: Mapping[str, Any]) -> None:
        self._topic = topic
        self._settings = dict(settings)
        self._reader: Reader | None = None
        self._births = Births()
        self._lock = threading.Lock()

    def births(self) -> Births:
        """Return all births currently in the topic.

        Raises `Unavailable` if they can't be read for now, or if the topic doesn't exist.
        """
        with self._lock:
            try:
                self._catch_up()
            except (NoAnswer, PositionGone) as error:
                self._close()
                raise self._unavailable(error, True) from None
            except ReadError as error:
                passing = self._reader is not None and self._reader.waiting is not None
                self._close()
                raise self._unavailable(error, passing) from None
        return self._births

    def close(self) -> None:
        """Close the connection, and keep the births."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _catch_up(self) -> None:
        began = time.monotonic()
        if self._reader is None:
            self._reader = Reader(self._settings, {})
        places = {(self._topic, partition): EARLIEST for partition in self._reader.partitions(self._topic)}
        known = self._reader.positions()
        if places.keys() - known.keys():
            self._reader.assign({**places, **known})
        for messages in self._reader.read_to(self._reader.end_offsets(), timeout=_NO_PROGRESS_SECONDS):
            self.take(messages)
            if time.monotonic() - began > _AT_ONCE_SECONDS:
                raise Unavailable(
                    f"the births in {self._topic} are not read to their end yet; a compacted topic of births "
                    "alone is quicker: --set births=TOPIC"
                )

    def take(self, messages: Messages) -> None:
        """Add the births among messages; the topic's own reader reports broken ones."""
        keys = pl.Series(values=pl.from_arrow(messages.key), dtype=pl.Binary)
        born = keys.bin.contains(b"/NBIRTH/") | keys.bin.contains(b"/DBIRTH/")
        for row in born.fill_null(False).arg_true().to_list():
            value, arrived = messages.value_at(row), int(messages.timestamp[row])
            try:
                speaker = speaker_of(keys[row])
                if value is not None and speaker.kind.endswith("BIRTH"):
                    self._births.add(speaker, birth_of(payload_of(value), arrived))
            except Misread:
                continue

    def _unavailable(self, error: ReadError, passing: bool) -> Unavailable:
        return Unavailable(f"the births of Sparkplug in the topic {self._topic}: {error}", passing)


_logs: OrderedDict[Any, BirthLog] = OrderedDict()
_logs_lock = threading.Lock()


def birth_log(topic: str, settings: Mapping[str, Any]) -> BirthLog:
    """Return the log of a topic, shared by all decoders in a process, because Spark runs many short tasks."""
    key = topic, tuple(sorted((name, repr(value)) for name, value in dict(settings).items()))
    with _logs_lock:
        log = _logs.pop(key, None) or BirthLog(topic, settings)
        _logs[key] = log
        if len(_logs) > _MOST:
            _logs.popitem(last=False)[1].close()
    return log
