"""An archived topic as messages to send: to their partitions, with their keys, headers and timestamps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ...operators.archive.recording import Recording
from ...operators.formats.messages import Messages
from .batch import Batch

_MESSAGES = 20_000
"""How many messages of each partition are held at once."""


@dataclass(frozen=True)
class Archived:
    """The messages of all partitions by the time at which they were sent, each partition's in its order.

    A message whose timestamp is older than that of one before it in its partition is due with that one.
    `speed` is how many times faster than recorded; 0 is at once.
    """

    recording: Recording
    speed: float = 1.0

    def batches(self) -> Iterator[Batch]:
        """See `Source`. Raises `ArchiveError` for a file that can't be read."""
        parts = {
            number: _Part(self.recording.read(number, limit=_MESSAGES))
            for number in self.recording.partitions
        }
        first: int | None = None
        while parts := {number: part for number, part in parts.items() if part.load()}:
            # What comes next in the other partitions is not due before their last loaded message.
            horizon = min(int(part.due[-1]) for part in parts.values())
            taken = [part.until(horizon) for part in parts.values()]
            due = np.concatenate([times for _, times in taken])
            order = np.argsort(due, kind="stable")
            if first is None:
                first = int(due[order[0]])
            seconds = (due[order] - first) / 1e3 / self.speed if self.speed else np.zeros(len(due))
            yield _batch([messages for messages, _ in taken], order, seconds)


class _Part:
    """What is loaded of a partition and not sent yet, with the times (ms) at which it is due."""

    def __init__(self, batches: Iterator[Messages]) -> None:
        self._batches = batches
        self._latest = 0
        self._messages: Messages | None = None
        self.due = np.zeros(0, np.int64)

    def load(self) -> bool:
        """Have something loaded; False at the end."""
        if not len(self.due):
            self._messages = next(self._batches, None)
            if self._messages is None:
                return False
            self.due = np.maximum.accumulate(np.maximum(self._messages.timestamp, self._latest))
            self._latest = int(self.due[-1])
        return True

    def until(self, horizon: int) -> tuple[Messages, np.ndarray]:
        """Give out what is due up to a time."""
        assert self._messages is not None
        n = int(np.searchsorted(self.due, horizon, side="right"))
        given = self._messages.slice(0, n), self.due[:n]
        self._messages, self.due = self._messages.slice(n, len(self._messages)), self.due[n:]
        return given


def _batch(parts: list[Messages], order: np.ndarray, seconds: np.ndarray) -> Batch:
    rows = pa.array(order)
    headers = pa.concat_arrays([part.headers for part in parts]).take(rows).to_pylist()
    partitions = np.concatenate([part.partition for part in parts])[order]
    return Batch(
        pa.concat_arrays([part.value for part in parts]).take(rows),
        partitions.astype(np.uint32),
        np.concatenate([part.timestamp for part in parts])[order],
        seconds,
        pa.concat_arrays([part.key for part in parts]).take(rows).to_pylist(),
        partitions,
        [[(one["key"], one["value"]) for one in of_one or ()] for of_one in headers],
    )
