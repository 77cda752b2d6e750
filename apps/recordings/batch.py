"""Batches of messages ready to send, from a replay's source to the sender."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Batch:
    """Messages in order of arrival.

    `values`: their bytes (`large_binary`). `keys`: a number per author (uint32), equal for equal authors: one
    author's messages go to one partition, in order. `sent`: their original times of arrival (int64, ms since
    the epoch), used as timestamps. `due`: when to send each, in seconds after the replay's start (float64,
    non-decreasing). `named`: the messages' own keys in Kafka, if any. `partitions`: their target partitions
    (int32); without these, `keys` decide. `headers`: in order, as in Kafka.
    """

    values: pa.LargeBinaryArray
    keys: np.ndarray
    sent: np.ndarray
    due: np.ndarray
    named: list[bytes | None] | None = None
    partitions: np.ndarray | None = None
    headers: list[list[tuple[str, str | bytes | None]]] | None = None

    def __len__(self) -> int:
        return len(self.values)

    def slice(self, start: int, stop: int) -> Batch:
        """Return messages `start` to `stop`, without copying."""
        rows = slice(start, stop)
        values = self.values.slice(start, stop - start)
        named = None if self.named is None else self.named[rows]
        partitions = None if self.partitions is None else self.partitions[rows]
        headers = None if self.headers is None else self.headers[rows]
        return Batch(values, self.keys[rows], self.sent[rows], self.due[rows], named, partitions, headers)


class Source(Protocol):
    """Anything that can be replayed: a generated load, a recording."""

    def batches(self) -> Iterator[Batch]:
        """Yield the messages from the beginning; the same in every run."""
