"""A memory buffer between a source and a sink: fast, bounded, and lost with the process."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ..batch import Batch, Positions
from ..component import Delivered, Place

_CHECK_SECONDS = 0.1
FULL = "channel full"
LOST = "lost at the end"


@dataclass(frozen=True, kw_only=True)
class MemoryBuffer:
    """Up to `capacity` messages, exceeded by at most one batch.

    A source may continue before the sink has its messages: they are confirmed immediately. While the channel
    is full, a source waits, or with ``when_full="drop"`` its messages are dropped. When the agent ends, the
    remaining messages are passed to the sink for some seconds; the rest is dropped and counted.
    """

    capacity: int = 100_000
    when_full: Literal["wait", "drop"] = "wait"

    def __post_init__(self) -> None:
        if self.capacity < 1:
            raise ValueError(f"capacity must be an integer ≥ 1, got {self.capacity}")

    def open(self, name: str, place: Place) -> MemoryChannel:
        """See `ChannelSettings`."""
        return MemoryChannel(self, place)


class MemoryChannel:
    """A `Channel` in memory."""

    durable = False
    held_before = 0

    def __init__(self, settings: MemoryBuffer, place: Place) -> None:
        self._settings, self._place = settings, place
        self._batches: deque[Batch] = deque()
        self._changed = threading.Condition()
        self._held = 0
        self._lost: dict[str, int] = {}

    @property
    def held(self) -> int:
        """See `Channel`."""
        return self._held

    @property
    def lost(self) -> Mapping[str, int]:
        """See `Channel`."""
        return self._lost

    def sink(self, place: Place) -> _Entrance:
        """See `Channel`."""
        return _Entrance(self)

    def source(self, place: Place, positions: Positions) -> _Exit:
        """See `Channel`."""
        return _Exit(self)

    def close(self) -> None:
        """See `Channel`."""
        with self._changed:
            self._batches.clear()
            self._lose(LOST, self._held)
            self._held = 0

    def put(self, batch: Batch) -> None:
        """Accept a batch, or drop it."""
        count = len(batch) + len(batch.dead)
        with self._changed:
            while self._held >= self._settings.capacity:
                if self._settings.when_full == "drop":
                    return self._lose(FULL, count)
                if self._place.stopping():
                    break  # accept what was read in any case: no more will come
                self._changed.wait(_CHECK_SECONDS)
            # The source needn't wait any longer, and has counted the messages dropped on the way.
            self._batches.append(batch.alone())
            self._held += count
            self._changed.notify_all()

    def take(self, seconds: float) -> Batch | None:
        """Return the next batch, which the channel holds until `delivered`."""
        with self._changed:
            if not self._batches:
                self._changed.wait(seconds)
            return self._batches.popleft() if self._batches else None

    def delivered(self, batch: Batch) -> None:
        """Release a batch that has reached the sink."""
        with self._changed:
            self._held -= len(batch) + len(batch.dead)
            self._changed.notify_all()

    @property
    def empty(self) -> bool:
        """Whether the channel is empty."""
        return not self._batches

    def _lose(self, reason: str, count: int) -> None:
        if count:
            self._lost[reason] = self._lost.get(reason, 0) + count


class _Entrance:
    def __init__(self, channel: MemoryChannel) -> None:
        self._channel = channel
        self.positions: Positions = {}

    def write(self, batch: Batch) -> None:
        """See `Sink`."""
        self._channel.put(batch)

    def commit(self, batches: Sequence[Batch]) -> Delivered:
        """See `Sink`."""
        return Delivered(sum(map(len, batches)), sum(len(batch.dead) for batch in batches))

    def close(self) -> None:
        """See `Sink`."""


class _Exit:
    waited_for = finite = False

    def __init__(self, channel: MemoryChannel) -> None:
        self._channel = channel

    @property
    def ended(self) -> bool:
        """See `Source`."""
        return self._channel.empty

    def read(self, seconds: float) -> Batch | None:
        """See `Source`."""
        batch = self._channel.take(seconds)
        if batch is None:
            return None
        channel = self._channel
        return replace(batch, acknowledged=lambda: channel.delivered(batch))

    def close(self) -> None:
        """See `Source`."""
