"""A merger's state besides its open windows, and its stored form beside an offset of the log."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

from ...kafka.log_faults import DeltaError
from ...kept_form import form_of
from ...sketching.account import Account
from ...watermarks.global_watermark import Mark
from ...watermarks.idle_timer import Rest
from ...watermarks.partition_watermark import PartitionTime
from ...watermarks.position import Input, Position
from ...windows.window import EARLIEST

FORM = 2
"""The version that `state_json` writes."""

_TIME = len(PartitionTime().to_list())


@dataclass(slots=True)
class LogState:
    """A merger's state besides its open windows.

    `epochs` holds the latest claim of each input partition that was claimed. `missed` counts those of the
    account's late messages that arrived only as sketches of closed windows, so they can't be forwarded.
    Windows that end at or before `closed_us` are closed for good, those up to `due_us` provisionally.
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
        marks = {where: Mark(mark.position, mark.rest, mark.wait_us) for where, mark in self.marks.items()}
        return replace(self, marks=marks, epochs=dict(self.epochs))


@dataclass(slots=True)
class EmittedWindows:
    """The emitted windows: all that end at or before `until_us`, and those in `delta_counts`, by their start.

    The latter are closed provisionally, and `delta_counts` has the number of deltas with which they were
    emitted; a window is removed from it when it closes for good. Sessions are too many for that: sessions
    that only silence has closed were emitted up to an end, as they were before an offset of the log
    (`idle_sessions`). For sessions, `until_us` covers those that had closed when the watermark reached it.
    """

    until_us: int = EARLIEST
    delta_counts: dict[int, int] = field(default_factory=dict)
    idle_sessions: tuple[int, int] = (EARLIEST, 0)

    @property
    def progress(self) -> tuple[int, int]:
        """Grows with each emitted window; orders states that resume at the same offset of the log."""
        return self.until_us, sum(self.delta_counts.values()) + self.idle_sessions[1]


def read_state(stored: str) -> tuple[LogState, EmittedWindows]:
    """Parse what `state_json` wrote. Raises `DeltaError` for damage, `WrittenByNewer` for a newer version."""
    try:
        fields: dict[str, Any] = json.loads(stored)
        form = form_of(fields, FORM, "the merger's state")
        marks = {
            Input(topic, int(partition)): _mark(stored)
            for topic, partitions in fields["chains"].items()
            for partition, stored in partitions.items()
        }
        account, (duplicates, overlaps) = Account(**fields["account"]), fields["extra"]
        kept = {int(pane): deltas for pane, deltas in fields["kept"].items()}
        epochs = {Input(topic, number): epoch for topic, number, epoch in fields["epochs"]}
        closed_us, due_us, missed = fields["closed"], fields["due"], fields["missed"]
        # States of releases without epochs have none.
        for topic, partition, leader_epoch in fields.get("leaders", ()):
            mark = marks[Input(topic, partition)]
            mark.position = replace(mark.position, leader_epoch=leader_epoch)
        state = LogState(marks, account, closed_us, due_us, duplicates, overlaps, epochs, missed)
        quiet_us, position = fields["quiet"]
        # Version 1 has two variants: the earlier one has another name for this.
        until_us = fields["told"] if form == 1 and "told" in fields else fields["emitted"]
        return state, EmittedWindows(until_us, kept, (quiet_us, position))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DeltaError(f"the merger's stored state is damaged ({error}): {stored[:200]!r}") from None


def state_json(state: LogState, emitted: EmittedWindows) -> str:
    """Serialise both as JSON, for `read_state`."""
    chains: dict[str, dict[str, list[int]]] = {}
    for (topic, partition), mark in state.marks.items():
        chains.setdefault(topic, {})[str(partition)] = _numbers(mark)
    leaders = {where: mark.position.leader_epoch for where, mark in state.marks.items()}
    fields = {
        "form": FORM,
        "chains": chains,
        "leaders": [[*where, epoch] for where, epoch in leaders.items() if epoch >= 0],
        "account": state.account.to_dict(),
        "closed": state.closed_us,
        "due": state.due_us,
        "emitted": emitted.until_us,
        "kept": {str(pane): deltas for pane, deltas in emitted.delta_counts.items()},
        "quiet": list(emitted.idle_sessions),
        "extra": [state.duplicates, state.overlaps],
        "missed": state.missed,
        "epochs": [[*where, epoch] for where, epoch in state.epochs.items()],
    }
    return json.dumps(fields, separators=(",", ":"))


EMPTY_STATE = state_json(LogState(), EmittedWindows())
"""A merger's state before the first delta."""


def _numbers(mark: Mark) -> list[int]:
    """A partition's mark as plain numbers; `_mark` parses them."""
    rest = [] if mark.rest is None else [mark.rest.us, mark.rest.patience_us, mark.rest.now_us]
    return [mark.position.offset, mark.wait_us, *mark.position.time.to_list(), *rest]


def _mark(numbers: list[int]) -> Mark:
    offset, wait_us, *time = numbers
    time, rest = time[:_TIME], time[_TIME:]
    return Mark(Position(offset, PartitionTime(*time)), Rest(*rest) if rest else None, wait_us)
