"""The state of one input partition in a sketching worker since the last delta."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from ...sketches.core.lazy import pl
from ..definition.stream import Stream
from ..steps.join_state import JoinState
from ..steps.look_back import LookBack
from ..steps.row_origin import RowOrigin
from ..steps.row_steps import Refuse
from ..watermarks.clock import wall_clock
from ..watermarks.idle_timer import Rest
from ..watermarks.partition_watermark import PartitionTime
from ..watermarks.position import Input
from .account import Account
from .delta import Delta
from .open_counts import OpenCounts
from .panes import Sketches
from .sketcher import Late, Sketcher


class PartitionState:
    """Sketches, offsets, event time and account of one partition, from `first` on.

    `replay` is the offset of the first row before `first` to restore, for remembered ids or buffered rows of
    a join; `replay_time` is the event time there. For joined streams, `pairing` is the state of the join with
    the other side's partition of the same number. `once` are the ids seen up to `first`, if known: nothing is
    restored then. `sketches` is as for `Sketcher`. For count windows, `counts` are the groups' states in
    their open windows, from certain offsets on, at which deltas end. `rest` says how long it has been silent,
    if it has; `heard` whether a row with an event time has arrived since it was last set to False.

    None of this outlives the worker: the next one rereads whatever was not sent as a delta.
    """

    def __init__(
        self,
        stream: Stream,
        topic: str,
        partition: int,
        first: int,
        time: PartitionTime | None = None,
        clock: Callable[[], float] = wall_clock,
        replay: int | None = None,
        replay_time: PartitionTime | None = None,
        pairing: JoinState | None = None,
        counts: Iterable[tuple[int, OpenCounts]] = (),
        once: LookBack | None = None,
        sketches: type[Sketches] | None = None,
    ) -> None:
        self.stream = stream
        self.input = Input(topic, partition)
        self.first = first
        self.next_offset = first
        self.time = time or PartitionTime()
        self.account = Account()
        self.leader_epoch = -1
        """The epoch of the leader whose log was last read."""
        self._rank = self.input.rank if stream.reading.reads_several else partition
        salt = zlib.crc32(f"{topic}/{partition}/{first}".encode())
        of_topic = stream.reading.of_topic(topic)
        self._sketcher = Sketcher(of_topic, salt, clock, pairing, once, sketches)
        self._fingerprint = stream.fingerprint()
        self.rest: Rest | None = None
        self.heard = False
        self._begin, self._replay = first, first if replay is None or once else min(replay, first)
        self._recalled = self._replay
        self._last_delta: tuple[int, PartitionTime, Rest | None] | None = None
        self._replay_time = replay_time or PartitionTime()
        self._recalled_time = replace(self._replay_time)
        self._pairing, self._side = pairing, 0
        if pairing is not None:
            self._side = pairing.take_up(self.input, self._recalled_time)
            self.recalled_to(self._recalled)

        self._counts = list(counts)
        self._go_on()

    def add(
        self,
        frame: pl.DataFrame,
        timestamps_ms: np.ndarray | None,
        offsets: np.ndarray,
        next_offset: int,
        refuse: Refuse,
        late: Late | None = None,
    ) -> None:
        """Sketch decoded rows with these offsets; `next_offset` follows the last message they came from."""
        place = RowOrigin(self._rank, offsets)
        account = self._sketcher.add(frame, self.time, timestamps_ms, refuse, place, late)
        self.account += account
        self.next_offset = max(self.next_offset, next_offset)
        if self._sketcher.timed:
            self.heard = True
            self.rest = None

    @property
    def once(self) -> LookBack | None:
        """The ids seen up to `next_offset`, in a deduplicated stream."""
        return self._sketcher.once

    @property
    def kept_bytes(self) -> int:
        """The memory of what it retains from one delta to the next."""
        return self._sketcher.kept_bytes

    @property
    def count_bytes(self) -> int:
        """The memory that count windows need."""
        return self._sketcher.count_bytes

    @property
    def recall_offset(self) -> int:
        """The next offset that it needs: `next_offset`, unless there are earlier rows to restore."""
        return self._recalled if self._recalled < self._begin else self.next_offset

    def recall(
        self, frame: pl.DataFrame, timestamps_ms: np.ndarray | None, offsets: np.ndarray, next_offset: int
    ) -> None:
        """Restore decoded rows from before `first`, whose messages are already counted."""
        self._sketcher.recall(frame, timestamps_ms, RowOrigin(self._rank, offsets), self._recalled_time)
        self.recalled_to(next_offset)

    def recalled_to(self, next_offset: int) -> None:
        """Record that there is nothing more to restore before an offset."""
        self._recalled = max(self._recalled, next_offset)
        if self._pairing is not None and self._recalled >= self._begin:
            self._pairing.restored_to(self._side, self.time)

    def _silence(self) -> Rest | None:
        """How long it has been silent, unless rows wait for it to show that they have no partner."""
        holds = self.rest is not None and self._pairing is not None and self._pairing.holds(self._side)
        return None if holds else self.rest

    def skip(self, next_offset: int, dead_lettered: int = 0, filtered: int = 0) -> None:
        """Advance past messages without rows."""
        read = dead_lettered + filtered
        self.account += Account(read=read, filtered=filtered, dead_lettered=dead_lettered)
        self.next_offset = max(self.next_offset, next_offset)

    def leave_out(self, next_offset: int) -> None:
        """Advance past messages that are skipped on request."""
        self.account += Account(skipped=next_offset - self.next_offset)
        self.next_offset = next_offset

    def unpaired(self, last: bool) -> Delta:
        """The rows without a partner if nothing follows, as a provisional delta after all others.

        They remain buffered, unless this is the `last` delta: then the next worker needs none of them.
        """
        assert self.first == self.next_offset and not len(self._sketcher)
        self.account += self._sketcher.add_unpaired()
        delta = replace(self.delta(), provisional=True)
        return replace(delta, replay=self.next_offset, replay_time=None) if last else delta

    @property
    def nbytes(self) -> int:
        """Bytes of memory that sketches, or rows to be forwarded, take since the last delta."""
        return self._sketcher.nbytes

    @property
    def pending(self) -> bool:
        """Whether there is anything new since the last delta."""
        return self._last_delta != (self.next_offset, self.time, self._silence())

    def delta(self) -> Delta:
        """The delta of everything since the last one; starts empty again."""
        messages = self._sketcher.messages
        # While rows are still being restored, the next worker must restore them all as well.
        replay: tuple[int, PartitionTime | None] = self._replay, self._replay_time
        if self._recalled >= self._begin:
            replay = self._sketcher.replay_from(self.next_offset, self.time)
        looked_back = self._pairing is not None and replay[0] < self.next_offset
        delta = Delta(
            fingerprint=self._fingerprint,
            topic=self.input.topic,
            partition=self.input.partition,
            first_offset=self.first,
            next_offset=self.next_offset,
            table=self._sketcher.drain() if len(self._sketcher) else None,
            time=replace(self.time),
            rest=self._silence(),
            account=self.account,
            messages=messages,
            replay=replay[0],
            replay_time=replay[1] if looked_back else None,
            sent=self._sketcher.drain_forwarded(),
            leader_epoch=self.leader_epoch,
        )
        self.first = self.next_offset
        self._go_on()
        self.account = Account()
        self._last_delta = (self.next_offset, delta.time, delta.rest)
        return delta

    def _go_on(self) -> None:
        """Use the counts that others have determined up to here."""
        for at, known in self._counts:
            if at <= self.first:
                self._sketcher.go_on(known)
        self._counts = [(at, known) for at, known in self._counts if at > self.first]
