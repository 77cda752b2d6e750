"""Deltas in, closed windows out: the merging worker's state, with no Kafka in it.

One `Merger` follows one partition of the table topic. All it does is decided by the log it reads and by
nothing else, so that reading the log again gives the same windows.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from .accounting import Account
from .delta import Delta, DeltaError
from .merge import Accumulator
from .stream import Stream
from .table import START, schema_of
from .windows import EARLIEST

DeliveryName = Literal["at_least_once", "exactly_once"]


@dataclass(slots=True)
class Chain:
    """How far the log has come with one input partition: the next offset, its watermark, whether it idles."""

    next: int
    watermark_us: int = EARLIEST
    idle: bool = False


@dataclass(slots=True)
class LogState:
    """All that a merger knows besides its open windows."""

    chains: dict[int, Chain] = field(default_factory=dict)
    account: Account = field(default_factory=Account)
    closed_us: int = EARLIEST
    duplicates: int = 0
    overlaps: int = 0

    def copy(self) -> LogState:
        """An independent copy."""
        return replace(self, chains={p: replace(chain) for p, chain in self.chains.items()})


@dataclass(slots=True)
class _Open:
    """A pane that is still open, and where the log and the merger stood before its first rows."""

    sketches: Accumulator
    offset: int
    before: LogState


class Merger:
    """Folds deltas into windows and closes them by the watermark.

    `partitions` are those of the input topic: until each has been heard of, no window closes. Takes only the
    next range of each partition: a range that was already taken, by whomever it was sent, is left out. A
    range that begins too early or too late can't happen in a log written exactly once and raises
    `DeltaError`; at least once, one that overlaps what was taken is taken whole, and counted in
    `state.overlaps`.
    """

    def __init__(
        self, stream: Stream, partitions: Iterable[int], delivery: DeliveryName = "exactly_once"
    ) -> None:
        self.stream = stream.complete()
        assert stream.window is not None
        self._window = stream.window
        self._fingerprint = stream.fingerprint()
        self._schema = schema_of(stream)
        self._delivery = delivery
        self.partitions = set(partitions)
        self.state = LogState()
        self._emitted_us = EARLIEST
        self._position = 0
        self._open: dict[int, _Open] = {}

    def offer(self, delta: Delta, offset: int) -> bool:
        """Take the delta at `offset` of the log, or leave it out as a duplicate; True if it was taken.

        Raises `DeltaError` for a delta of another definition or out of its turn.
        """
        self._position = offset + 1
        if not self._next_in_turn(delta):
            self.state.duplicates += 1
            return False
        before: LogState | None = None
        missed = 0
        for pane, rows in _panes(delta.table):
            if self._window.last_end(pane) <= self.state.closed_us:
                continue
            if pane not in self._open:
                before = before or self.state.copy()
                self._open[pane] = _Open(Accumulator(self._schema), offset, before)
            self._open[pane].sketches.fold(rows)
        for pane, messages in delta.messages.items():
            if self._window.last_end(pane) <= self.state.closed_us:
                missed += messages
        account = replace(
            delta.account, counted=delta.account.counted - missed, late=delta.account.late + missed
        )
        self.state.account += account
        self._advance(delta)
        return True

    def close(self) -> list[pa.Table]:
        """The windows that the watermark has passed since the last time, earliest first, each once."""
        done = sorted(pane for pane in self._open if self._window.last_end(pane) <= self.state.closed_us)
        found = [(pane, self._open.pop(pane).sketches.table()) for pane in done]
        fresh = [table for pane, table in found if self._window.last_end(pane) > self._emitted_us]
        self._emitted_us = max(self._emitted_us, self.state.closed_us)
        return fresh

    def close_all(self) -> list[pa.Table]:
        """All windows still open, as they are; they stay open for what the log may bring later."""
        return [self._open[pane].sketches.table() for pane in sorted(self._open)]

    def reached(self, ends: dict[int, int]) -> bool:
        """Whether all messages before these offsets are in."""
        chains = self.state.chains
        return all(partition in chains and chains[partition].next >= end for partition, end in ends.items())

    def resume_point(self) -> tuple[int, str]:
        """Where to read the log from again after a restart, and the state to start with, as JSON.

        That is the first delta of the oldest open window, so that every open window is whole again.
        """
        oldest = min(self._open.values(), key=lambda pane: pane.offset, default=None)
        offset, state = (self._position, self.state) if oldest is None else (oldest.offset, oldest.before)
        chains = {str(p): [c.next, c.watermark_us, int(c.idle)] for p, c in state.chains.items()}
        told = {
            "chains": chains,
            "account": asdict(state.account),
            "closed": state.closed_us,
            "emitted": self._emitted_us,
            "extra": [state.duplicates, state.overlaps],
        }
        return offset, json.dumps(told, separators=(",", ":"))

    def resume(self, offset: int, told: str) -> None:
        """Take up where `resume_point` said. Raises `DeltaError` if that is damaged."""
        try:
            found: dict[str, Any] = json.loads(told)
            chains = {int(p): Chain(n, w, bool(i)) for p, (n, w, i) in found["chains"].items()}
            duplicates, overlaps = found["extra"]
            account = Account(**found["account"])
            self.state = LogState(chains, account, found["closed"], duplicates, overlaps)
            self._emitted_us = found["emitted"]
        except (ValueError, KeyError, TypeError) as error:
            raise DeltaError(f"the merger's committed state is damaged ({error}): {told!r}") from None
        self._position = offset
        self._open.clear()

    def _next_in_turn(self, delta: Delta) -> bool:
        if delta.fingerprint != self._fingerprint:
            raise DeltaError(
                f"the delta {delta.told} is of the definition {delta.fingerprint}, this stream's is "
                f"{self._fingerprint}; a changed definition needs a table topic of its own"
            )
        chain = self.state.chains.get(delta.partition)
        if chain is None or delta.first == chain.next:
            return True
        if delta.next <= chain.next:
            return False
        if self._delivery == "at_least_once" and delta.first < chain.next:
            self.state.overlaps += 1
            return True
        raise DeltaError(
            f"the delta {delta.told} is out of turn, the next offset is {chain.next}; the table topic is not "
            "what one stream wrote exactly once: start again with another group"
        )

    def _advance(self, delta: Delta) -> None:
        chain = self.state.chains.setdefault(delta.partition, Chain(delta.next))
        chain.next = max(chain.next, delta.next)
        chain.watermark_us = max(chain.watermark_us, delta.watermark_us)
        chain.idle = delta.idle
        self.partitions.add(delta.partition)
        chains = self.state.chains
        if self.partitions <= chains.keys():
            # A partition that never had a row and idles holds nobody up.
            heard = [c.watermark_us for c in chains.values() if not (c.idle and c.watermark_us == EARLIEST)]
            self.state.closed_us = max(self.state.closed_us, min(heard, default=EARLIEST))


def _panes(table: pa.Table | None) -> Iterator[tuple[int, pa.Table]]:
    """A table's rows by pane; the table is ordered by them."""
    if table is None:
        return
    starts = table.column(START).combine_chunks().view(pa.int64()).to_numpy()
    edges = [0, *(np.flatnonzero(np.diff(starts)) + 1).tolist(), len(starts)] if len(starts) else []
    for low, high in itertools.pairwise(edges):
        yield int(starts[low]), table.slice(low, high - low)
