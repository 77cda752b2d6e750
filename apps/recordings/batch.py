"""Messages ready to send: what every source of a replay gives and what the sender takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Batch:
    """Messages in the order they arrive.

    `values`: their bytes (`large_binary`). `keys`: a number of the author (uint32), equal for equal authors:
    one author's messages go to one partition, in order. `sent`: when they arrived in the world they come from
    (int64, ms since the epoch), to be the messages' timestamps. `due`: seconds after the replay's start at
    which each is to be sent (float64, never falling). `named`: the messages' own keys in Kafka, if they have
    any. `partitions`: those that they must go to (int32); without, `keys` decide. `headers`: in order, as
    Kafka has them.
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
        """Messages `start` to `stop`, without copying."""
        rows = slice(start, stop)
        values = self.values.slice(start, stop - start)
        named = None if self.named is None else self.named[rows]
        partitions = None if self.partitions is None else self.partitions[rows]
        headers = None if self.headers is None else self.headers[rows]
        return Batch(values, self.keys[rows], self.sent[rows], self.due[rows], named, partitions, headers)


class Source(Protocol):
    """What can be replayed: a generated load, a recording."""

    def batches(self) -> Iterator[Batch]:
        """Its messages from the beginning; the same in every run."""
