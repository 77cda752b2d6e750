"""Deltas in, closed windows out: the merging worker's state, with no Kafka in it.

Windows are given out in order, each once, when `closing` says that they may close; a row that comes for a
window after that one was given out, or one after it, is late.

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

from ..definition.stream import Stream
from ..definition.windows import EARLIEST
from ..sketching.accounting import Account
from ..sketching.closing import Mark, closing, tell
from ..sketching.lateness import PartitionTime
from ..sketching.silence import Rest
from ..table.merge import Accumulator
from ..table.schema import START, schema_of
from .delta import Delta, DeltaError

DeliveryName = Literal["at_least_once", "exactly_once"]


_TIME = len(PartitionTime().to_list())


@dataclass(slots=True)
class Chain(Mark):
    """How far the log has come with one input partition: its event time, and the next offset."""

    next: int = 0

    def to_list(self) -> list[int]:
        """As plain numbers."""
        rest = [] if self.rest is None else [self.rest.us, self.rest.patience_us, self.rest.now_us]
        return [self.next, self.wait_us, *self.time.to_list(), *rest]

    @classmethod
    def from_list(cls, found: list[int]) -> Chain:
        """What `to_list` gave."""
        following, wait, *time = found
        time, rest = time[:_TIME], time[_TIME:]
        return cls(PartitionTime(*time), Rest(*rest) if rest else None, wait, following)


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
        self._told_us = EARLIEST
        self._position = 0
        self._open: dict[int, _Open] = {}
        self._marks: dict[str, tuple[int, LogState]] = {}
        self._source = ""

    def mark(self, name: str, offset: int) -> None:
        """A delta of several messages, the first of them at `offset`; it is offered when all are there."""
        if name not in self._marks:
            self._marks[name] = (offset, self.state.copy())

    def unmark(self, name: str) -> None:
        """The delta that was marked so is not waited for any more."""
        self._marks.pop(name, None)

    def offer(self, delta: Delta, offset: int, name: str = "") -> bool:
        """Take the delta at `offset` of the log, or leave it out as a duplicate; True if it was taken.

        `name` is that by which its beginning was marked, if it was. Raises `DeltaError` for a delta of
        another definition or out of its turn.
        """
        self._position = offset + 1
        begin, before = self._marks.pop(name, (offset, None))
        if not self._next_in_turn(delta):
            self.state.duplicates += 1
            self._close_up(delta)
            return False
        missed = 0
        for pane, rows in _panes(delta.table):
            if self._window.last_end(pane) <= self.state.closed_us:
                continue
            if pane not in self._open:
                before = before or self.state.copy()
                self._open[pane] = _Open(Accumulator(self._schema), begin, before)
            self._open[pane].sketches.fold(rows)
        for pane, messages in delta.messages.items():
            if self._window.last_end(pane) <= self.state.closed_us:
                missed += messages
        account = replace(
            delta.account, counted=delta.account.counted - missed, late=delta.account.late + missed
        )
        self.state.account += account
        self._advance(delta)
        self._close_up(delta)
        return True

    def due(self) -> pa.Table | None:
        """The earliest window that the watermark has passed and that was not handed over, if there is one.

        It stays open, and a restart brings it again, until `told` says that it was handed over.
        """
        while self._open:
            pane = min(self._open)
            end = self._window.last_end(pane)
            if end > self.state.closed_us:
                break
            if end > self._told_us:
                return self._open[pane].sketches.table()
            del self._open[pane]  # handed over before the restart that made this merger
        return None

    def told(self) -> None:
        """The window that `due` gave was handed over."""
        pane = min(self._open)
        self._told_us = max(self._told_us, self._window.last_end(pane))
        del self._open[pane]

    def close(self) -> list[pa.Table]:
        """All windows that are due, earliest first, as handed over."""
        found = []
        while (table := self.due()) is not None:
            found.append(table)
            self.told()
        return found

    def close_all(self) -> list[pa.Table]:
        """All windows still open, as they are; they stay open for what the log may bring later."""
        return [self._open[pane].sketches.table() for pane in sorted(self._open)]

    def reached(self, ends: dict[int, int]) -> bool:
        """Whether all messages before these offsets are in."""
        chains = self.state.chains
        return all(partition in chains and chains[partition].next >= end for partition, end in ends.items())

    def resume_point(self) -> tuple[int, str]:
        """Where to read the log from again after a restart, and the state to start with, as JSON.

        That is the first delta of the oldest window that was not handed over, so that every such window is
        whole again, or a delta before it of which only a part has come.
        """
        places = [(pane.offset, pane.before) for pane in self._open.values()]
        oldest = min((*places, *self._marks.values()), key=lambda place: place[0], default=None)
        offset, state = oldest or (self._position, self.state)
        return offset, _written(state, self._told_us)

    def resume(self, offset: int, told: str) -> None:
        """Take up where `resume_point` said. Raises `DeltaError` if that is damaged."""
        self.state, self._told_us = read_state(told)
        self._position = offset
        self._open.clear()
        self._marks.clear()

    def _next_in_turn(self, delta: Delta) -> bool:
        if delta.fingerprint != self._fingerprint:
            raise DeltaError(
                f"the delta {delta.told} is of the definition {delta.fingerprint}, this stream's is "
                f"{self._fingerprint}; a changed definition needs a table topic of its own"
            )
        if self._source and delta.source and delta.source != self._source:
            raise DeltaError(
                f"the delta {delta.told} is of another topic of that name, which was deleted and made anew; "
                "give the run a new group_id to begin with the new one"
            )
        self._source = self._source or delta.source
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
        chain = self.state.chains.setdefault(delta.partition, Chain(next=delta.next))
        chain.next = max(chain.next, delta.next)
        chain.time = delta.time
        tell(self.state.chains, delta.partition, delta.rest)
        self.partitions.add(delta.partition)

    def _close_up(self, delta: Delta) -> None:
        """Close what may close, once all that was sent together is in."""
        chains = self.state.chains
        if not delta.more and self.partitions <= chains.keys():
            found = closing(chains.values(), self._window, self.stream.delay_us)
            self.state.closed_us = max(self.state.closed_us, found)


def read_state(told: str) -> tuple[LogState, int]:
    """The state that `Merger.resume_point` wrote, and the end of the last window that was handed over.

    Raises `DeltaError` if it is damaged.
    """
    try:
        found: dict[str, Any] = json.loads(told)
        chains = {int(p): Chain.from_list(chain) for p, chain in found["chains"].items()}
        account, (duplicates, overlaps) = Account(**found["account"]), found["extra"]
        return LogState(chains, account, found["closed"], duplicates, overlaps), found["told"]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DeltaError(f"the merger's kept state is damaged ({error}): {told[:200]!r}") from None


def _written(state: LogState, told_us: int) -> str:
    found = {
        "chains": {str(p): chain.to_list() for p, chain in state.chains.items()},
        "account": asdict(state.account),
        "closed": state.closed_us,
        "told": told_us,
        "extra": [state.duplicates, state.overlaps],
    }
    return json.dumps(found, separators=(",", ":"))


def _panes(table: pa.Table | None) -> Iterator[tuple[int, pa.Table]]:
    """A table's rows by pane; the table is ordered by them."""
    if table is None:
        return
    starts = table.column(START).combine_chunks().view(pa.int64()).to_numpy()
    edges = [0, *(np.flatnonzero(np.diff(starts)) + 1).tolist(), len(starts)] if len(starts) else []
    for low, high in itertools.pairwise(edges):
        yield int(starts[low]), table.slice(low, high - low)
