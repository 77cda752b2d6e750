"""An example's generated messages: past ones are sent immediately, the rest when they are due."""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile

import numpy as np
import pyarrow as pa

from ..app import Example, Message
from ..recordings.batch import Batch

_AT_A_TIME = 5_000
_SPAN_MS = 100


@dataclass(frozen=True)
class MadeUp:
    """An example's messages up to `seconds` after `now_ms`; the same each time."""

    example: Example
    seed: int
    now_ms: int
    seconds: float

    @classmethod
    def from_now(cls, example: Example, seed: int, seconds: float) -> MadeUp:
        """Make messages around the current time."""
        return cls(example, seed, int(time.time() * 1000), seconds)

    def messages(self) -> Iterator[Message]:
        """Yield the messages one by one."""
        end = self.now_ms + self.seconds * 1000
        messages = self.example.messages(self.seed, self.now_ms)
        return takewhile(lambda message: (message.sent_ms or 0) < end, messages)

    def batches(self) -> Iterator[Batch]:
        """See `apps.recordings.batch.Source`."""
        chunk: list[Message] = []
        for message in self.messages():
            # A batch is sent as a whole: live batches cover a tenth of a second.
            if chunk and (len(chunk) == _AT_A_TIME or self._apart(chunk[0], message)):
                yield self._batch(chunk)
                chunk = []
            chunk.append(message)
        if chunk:
            yield self._batch(chunk)

    def _apart(self, first: Message, other: Message) -> bool:
        begin, end = (max(message.sent_ms or 0, self.now_ms) for message in (first, other))
        return end - begin > _SPAN_MS

    def _batch(self, chunk: list[Message]) -> Batch:
        sent = np.array([message.sent_ms for message in chunk], np.int64)
        keys = [message.key for message in chunk]
        return Batch(
            pa.array([message.value for message in chunk], pa.large_binary()),
            np.array([zlib.crc32(key or b"") for key in keys], np.uint32),
            sent,
            np.maximum(sent - self.now_ms, 0) / 1000,
            keys,
        )
