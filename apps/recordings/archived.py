"""Replay an archived topic: messages go to their partitions, with their keys, headers and timestamps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ...operators.archive.recording import Recording, Slice, in_time
from .batch import Batch


def values_in_time(place: str) -> Iterator[tuple[bytes | None, bytes | None, int | None]]:
    """Yield the messages of an archived topic in order of time: value, key, and when it was sent (ms).

    Raises `ArchiveError` like `Recording.open`.
    """
    for batch in Archived(Recording.open(place), 0.0).batches():
        assert batch.named is not None
        for value, key, sent in zip(batch.values.to_pylist(), batch.named, batch.sent.tolist()):
            yield value, key, sent if sent >= 0 else None


def head_of(place: str, size: int = 65_536) -> bytes:
    """Return the first values of an archived topic, one per line, up to `size` bytes."""
    head = bytearray()
    for value, _, _ in values_in_time(place):
        head += (value or b"") + b"\n"
        if len(head) >= size:
            break
    return bytes(head[:size])


@dataclass(frozen=True)
class Archived:
    """The messages of all partitions in the order in which they were sent (`recording.in_time`).

    `speed` is a factor of the recorded speed; 0 is as fast as possible.
    """

    recording: Recording
    speed: float = 1.0

    def batches(self) -> Iterator[Batch]:
        """See `Source`. Raises `ArchiveError` for a file that can't be read."""
        first: int | None = None
        for slices in in_time([self.recording]):
            due = np.concatenate([times for _, times in slices])
            order = np.argsort(due, kind="stable")
            if first is None:
                first = int(due[order[0]])
            seconds = (due[order] - first) / 1e3 / self.speed if self.speed else np.zeros(len(due))
            yield _batch(slices, order, seconds)


def _batch(slices: list[Slice], order: np.ndarray, seconds: np.ndarray) -> Batch:
    parts, rows = [messages for messages, _ in slices], pa.array(order)
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
