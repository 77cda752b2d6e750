"""The state of a run at one moment, in numbers: for metrics, health and the progress line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from ..sketching.account import Account
from .buckets import Buckets

State = Literal["running", "stopping", "ended", "failed"]

_SECONDS = Buckets.upto(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_BYTES = Buckets.upto(*(float(1 << power) for power in range(10, 28, 2)))


@dataclass(frozen=True, slots=True)
class InputFigures:
    """One input partition: its waiting messages, its event time, and whether it is idle.

    Unknown values are None; times are int64 microseconds since 1970. `held_back` of the waiting messages
    can't be read before a transaction ends that has been open for at least `held_seconds`.
    """

    lag: int | None = None
    watermark_us: int | None = None
    idle: bool = False
    held_back: int = 0
    held_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class WorkFigures:
    """What sketching workers have done, and their current state; figures of several can be added.

    `checkpoints` are their durations in seconds, `deltas` the bytes of each delta, `rebalances` how often
    partitions were assigned or revoked, `assigned` the input partitions, as topic and partition, `kept_bytes`
    the memory of remembered ids and of joined tables, `held_up` the rows that wait for a silent partner of a
    join to show that they have no match.

    >>> both = WorkFigures(rebalances=1) + WorkFigures(assigned=frozenset({("posts", 0)}))
    >>> both.rebalances, sorted(both.assigned)
    (1, [('posts', 0)])
    """

    checkpoints: Buckets = _SECONDS
    deltas: Buckets = _BYTES
    rebalances: int = 0
    assigned: frozenset[tuple[str, int]] = frozenset()
    kept_bytes: int = 0
    held_up: int = 0

    def __add__(self, other: WorkFigures) -> WorkFigures:
        return WorkFigures(
            self.checkpoints + other.checkpoints,
            self.deltas + other.deltas,
            self.rebalances + other.rebalances,
            self.assigned | other.assigned,
            self.kept_bytes + other.kept_bytes,
            self.held_up + other.held_up,
        )

    @property
    def past(self) -> WorkFigures:
        """The same after the workers are gone."""
        return replace(self, assigned=frozenset(), kept_bytes=0, held_up=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """A run at one moment.

    `account`, `missed` (late messages that arrived as sketches), `inputs` and `watermark_us` are for the
    whole group, whichever process counted; `work`, `open_windows`, `open_groups`, `state_bytes`,
    `closed_windows` and `replayed`, the messages of the table topic that a restart rereads, are for this
    process and its workers. `stalled_seconds` is how long messages have waited with none counted,
    `since_progress` how long none has been counted, waiting or not. `caught_up` says whether the merger has
    once read its log to the end, `owned` whether every input partition has a worker somewhere. `why` is the
    error of a failed run.
    """

    group: str
    state: State = "running"
    why: str = ""
    account: Account = field(default_factory=Account)
    missed: int = 0
    inputs: Mapping[tuple[str, int], InputFigures] = field(default_factory=dict)
    watermark_us: int | None = None
    now: float = 0.0
    duplicates: int = 0
    overlaps: int = 0
    open_windows: int = 0
    open_groups: int = 0
    state_bytes: int | None = None
    closed_windows: int = 0
    replayed: int = 0
    since_progress: float = 0.0
    stalled_seconds: float = 0.0
    owned: bool = False
    caught_up: bool = False
    work: WorkFigures = WorkFigures()

    @property
    def lag(self) -> int | None:
        """The number of waiting messages in all partitions; None unless it is known for each."""
        known = [own.lag for own in self.inputs.values() if own.lag is not None]
        return sum(known) if known and len(known) == len(self.inputs) else None

    @property
    def unaccounted(self) -> int:
        """Messages read that are missing from the account, or counted twice: always 0."""
        own = self.account
        return own.read - own.counted - own.filtered - own.late - own.dead_lettered

    @property
    def watermark_lag(self) -> float | None:
        """The seconds from the watermark to the wall clock; None before there is a watermark."""
        return None if self.watermark_us is None else self.now - self.watermark_us / 1e6
