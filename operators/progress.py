"""One input partition in a sketching worker: what was read of it since the last delta."""

from __future__ import annotations

import time as wall
import zlib
from collections.abc import Callable

import numpy as np
import polars as pl

from .accounting import Account
from .delta import Delta
from .lateness import PartitionTime
from .row_steps import Refuse
from .sketching import Place, Sketcher
from .stream import Stream
from .windows import EARLIEST


class Progress:
    """Sketches, offsets, event time and account of one partition, from `first` on.

    Nothing of it outlives the worker: what was not sent as a delta is read again by whoever comes next.
    """

    def __init__(
        self,
        stream: Stream,
        topic: str,
        partition: int,
        first: int,
        time: PartitionTime | None = None,
        clock: Callable[[], float] = wall.time,
    ) -> None:
        self.stream = stream
        self.topic = topic
        self.partition = partition
        self.first = first
        self.next = first
        self.time = time or PartitionTime()
        self.account = Account()
        salt = zlib.crc32(f"{topic}/{partition}/{first}".encode())
        self._sketcher = Sketcher(stream, salt=salt, clock=clock)
        self._fingerprint = stream.fingerprint()
        self._clock = clock
        self._active = clock()
        self._idle = False
        self._told: tuple[int, int, bool] | None = None

    def add(
        self,
        frame: pl.DataFrame,
        timestamps_ms: np.ndarray | None,
        offsets: np.ndarray,
        next_offset: int,
        refuse: Refuse,
    ) -> None:
        """Sketch decoded rows of these offsets; `next_offset` follows the last message they came from."""
        place = Place(self.partition, offsets)
        self.account += self._sketcher.add(frame, self.time, timestamps_ms, refuse, place)
        self.next = max(self.next, next_offset)
        self.busy()

    def skip(self, next_offset: int, dead_lettered: int = 0) -> None:
        """Pass messages that gave no rows."""
        self.account += Account(read=dead_lettered, dead_lettered=dead_lettered)
        self.next = max(self.next, next_offset)

    def busy(self) -> None:
        """There is, or may be, something to read: the watermark waits for it."""
        self._active = self._clock()
        self._idle = False

    def rest(self) -> None:
        """There is certainly nothing to read now: the watermark moves on with the wall clock."""
        self._idle = True
        if self.time.seen_us > EARLIEST:
            resting_us = int((self._clock() - self._active) * 1e6)
            self.time.advance_idle(self.time.seen_us - self.stream.delay_us + resting_us)

    @property
    def pending(self) -> bool:
        """Whether there is anything to tell that the last delta didn't."""
        return self._told != (self.next, self.time.watermark(self.stream.delay_us), self._idle)

    def delta(self) -> Delta:
        """All since the last delta; starts empty again."""
        messages = self._sketcher.messages
        found = Delta(
            fingerprint=self._fingerprint,
            topic=self.topic,
            partition=self.partition,
            first=self.first,
            next=self.next,
            table=self._sketcher.take() if len(self._sketcher) else None,
            watermark_us=self.time.watermark(self.stream.delay_us),
            time=PartitionTime(self.time.seen_us, self.time.idle_us),
            idle=self._idle,
            account=self.account,
            messages=messages,
        )
        self.first = self.next
        self.account = Account()
        self._told = (self.next, found.watermark_us, self._idle)
        return found
