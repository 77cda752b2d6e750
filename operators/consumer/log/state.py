"""What a merger knows besides its open windows, and how it is stored beside an offset of the log."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ...definition.windows import EARLIEST
from ...sketching.accounting import Account
from ...sketching.closing import Mark
from ...sketching.lateness import PartitionTime
from ...sketching.position import Input, Position
from ...sketching.silence import Rest
from .faults import DeltaError

_TIME = len(PartitionTime().to_list())


@dataclass(slots=True)
class LogState:
    """All that a merger knows besides its open windows.

    `epochs` holds the latest claim of each input partition that was claimed. `missed` counts those
    of the account's late messages that came as sketches of closed windows, so that nobody can send them on.
    Windows that end at or before `closed_us` are closed for good, those up to `due_us` for now.
    """

    marks: dict[Input, Mark] = field(default_factory=dict)
    account: Account = field(default_factory=Account)
    closed_us: int = EARLIEST
    due_us: int = EARLIEST
    duplicates: int = 0
    overlaps: int = 0
    epochs: dict[Input, int] = field(default_factory=dict)
    missed: int = 0

    def copy(self) -> LogState:
        """An independent copy."""
        marks = {where: replace(mark) for where, mark in self.marks.items()}
        return replace(self, marks=marks, epochs=dict(self.epochs))


@dataclass(slots=True)
class Told:
    """The windows handed over: all that end at or before `until_us`, and those that begin as `kept` says.

    The latter are closed only for now, and were handed over with so many deltas. When a window closes for
    good, it is dropped from `kept`. Sessions are too many for that: those that only silence has closed were
    handed over up to an end, as they were before an offset of the log (`quiet`). Of sessions, `until_us`
    means those that closed by the time that the watermark was there.
    """

    until_us: int = EARLIEST
    kept: dict[int, int] = field(default_factory=dict)
    quiet: tuple[int, int] = (EARLIEST, 0)

    @property
    def progress(self) -> tuple[int, int]:
        """Grows with each window handed over; orders states that begin at the same place of the log."""
        return self.until_us, sum(self.kept.values()) + self.quiet[1]


def read_state(told: str) -> tuple[LogState, Told]:
    """What `written` gave. Raises `DeltaError` if it is damaged."""
    try:
        found: dict[str, Any] = json.loads(told)
        marks = {
            Input(topic, int(partition)): _mark(told)
            for topic, partitions in found["chains"].items()
            for partition, told in partitions.items()
        }
        account, (duplicates, overlaps) = Account(**found["account"]), found["extra"]
        # Earlier versions wrote no "kept" and no "due": all closed windows were final.
        kept = {int(pane): deltas for pane, deltas in found.get("kept", {}).items()}
        closed_us = found["closed"]
        epochs = {Input(topic, number): epoch for topic, number, epoch in found.get("epochs", [])}
        due_us, missed = found.get("due", closed_us), found.get("missed", 0)
        state = LogState(marks, account, closed_us, due_us, duplicates, overlaps, epochs, missed)
        quiet_us, position = found.get("quiet", Told().quiet)
        return state, Told(found["told"], kept, (quiet_us, position))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DeltaError(f"the merger's kept state is damaged ({error}): {told[:200]!r}") from None


def of_one_topic(told: str, topic: str) -> str:
    """A state as it is written now; that of earlier versions, for one topic, had partitions without it."""
    try:
        found = json.loads(told)
        chains = found["chains"]
        if all(isinstance(chain, dict) for chain in chains.values()):
            return told
        return json.dumps({**found, "chains": {topic: chains}}, separators=(",", ":"))
    except (ValueError, KeyError, TypeError, AttributeError):
        return told  # and is refused by whoever reads it


def written(state: LogState, told: Told) -> str:
    """Both as JSON, for `read_state`."""
    chains: dict[str, dict[str, list[int]]] = {}
    for (topic, partition), mark in state.marks.items():
        chains.setdefault(topic, {})[str(partition)] = _numbers(mark)
    found = {
        "chains": chains,
        "account": asdict(state.account),
        "closed": state.closed_us,
        "due": state.due_us,
        "told": told.until_us,
        "kept": {str(pane): deltas for pane, deltas in told.kept.items()},
        "quiet": list(told.quiet),
        "extra": [state.duplicates, state.overlaps],
        "missed": state.missed,
        "epochs": [[*where, epoch] for where, epoch in state.epochs.items()],
    }
    return json.dumps(found, separators=(",", ":"))


NOTHING = written(LogState(), Told())
"""What a merger knows before the first delta."""


def _numbers(mark: Mark) -> list[int]:
    """A partition's mark as plain numbers, for `_mark`."""
    rest = [] if mark.rest is None else [mark.rest.us, mark.rest.patience_us, mark.rest.now_us]
    return [mark.position.offset, mark.wait_us, *mark.position.time.to_list(), *rest]


def _mark(told: list[int]) -> Mark:
    offset, wait_us, *time = told
    time, rest = time[:_TIME], time[_TIME:]
    return Mark(Position(offset, PartitionTime(*time)), Rest(*rest) if rest else None, wait_us)
