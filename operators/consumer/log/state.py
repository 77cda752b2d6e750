"""What a merger knows besides its open windows, and how it is stored beside an offset of the log."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ...definition.windows import EARLIEST
from ...sketching.accounting import Account
from ...sketching.closing import Mark
from ...sketching.lateness import PartitionTime
from ...sketching.silence import Rest
from .faults import DeltaError

_TIME = len(PartitionTime().to_list())


@dataclass(slots=True)
class Chain(Mark):
    """How far the log is with one input partition: its event time, and the next offset."""

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
    """All that a merger knows besides its open windows.

    Windows that end at or before `closed_us` are closed for good, those up to `due_us` for now.
    """

    chains: dict[int, Chain] = field(default_factory=dict)
    account: Account = field(default_factory=Account)
    closed_us: int = EARLIEST
    due_us: int = EARLIEST
    duplicates: int = 0
    overlaps: int = 0

    def copy(self) -> LogState:
        """An independent copy."""
        return replace(self, chains={p: replace(chain) for p, chain in self.chains.items()})


@dataclass(slots=True)
class Told:
    """The windows handed over: all that end at or before `until_us`, and those of the panes in `kept`.

    Windows of the latter are closed only for now, and were handed over with so many deltas. When a window
    closes for good, its pane is dropped from `kept`.
    """

    until_us: int = EARLIEST
    kept: dict[int, int] = field(default_factory=dict)

    @property
    def progress(self) -> tuple[int, int]:
        """Grows with each window handed over; orders states that begin at the same place of the log."""
        return self.until_us, sum(self.kept.values())


def read_state(told: str) -> tuple[LogState, Told]:
    """What `written` gave. Raises `DeltaError` if it is damaged."""
    try:
        found: dict[str, Any] = json.loads(told)
        chains = {int(p): Chain.from_list(chain) for p, chain in found["chains"].items()}
        account, (duplicates, overlaps) = Account(**found["account"]), found["extra"]
        # Earlier versions wrote no "kept" and no "due": all closed windows were final.
        kept = {int(pane): deltas for pane, deltas in found.get("kept", {}).items()}
        closed_us = found["closed"]
        state = LogState(chains, account, closed_us, found.get("due", closed_us), duplicates, overlaps)
        return state, Told(found["told"], kept)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DeltaError(f"the merger's kept state is damaged ({error}): {told[:200]!r}") from None


def written(state: LogState, told: Told) -> str:
    """Both as JSON, for `read_state`."""
    found = {
        "chains": {str(p): chain.to_list() for p, chain in state.chains.items()},
        "account": asdict(state.account),
        "closed": state.closed_us,
        "due": state.due_us,
        "told": told.until_us,
        "kept": {str(pane): deltas for pane, deltas in told.kept.items()},
        "extra": [state.duplicates, state.overlaps],
    }
    return json.dumps(found, separators=(",", ":"))


NOTHING = written(LogState(), Told())
"""What a merger knows before the first delta."""
