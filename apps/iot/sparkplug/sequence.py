"""A rule about the numbers of Sparkplug's messages: whether each of a node's is the next one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from ....operators.rules.alert import Alert
from ....operators.rules.row import Row
from ....operators.rules.rule import Rule, RuleState
from ....operators.rules.value_with_bounds import Figure

_NUMBERS = 256
"""A node counts its messages, those of its devices included, from 0 to 255 and again; a birth is 0."""


class SequenceGap(Rule):
    """Messages of a node are missing, or came twice or out of order; fired once for each window.

    The figure is how many gaps there are. Messages that Kafka stamps with the same millisecond are in the
    order of their numbers. A number that lies less than half the circle behind came late, or again, and the
    next number is compared with the ones before it. If the numbers continue from the late one, there was a
    gap of more than half the circle.
    """

    def paths(self) -> Iterable[str]:
        """See `Rule`."""
        return ("birth",)

    def names(self) -> Iterable[str]:
        """See `Rule`."""
        return [*super().names(), "node", "seq"]

    @property
    def over_at_once(self) -> bool:
        """See `Rule`."""
        return True

    def key_names(self, keys: Sequence[str]) -> Sequence[str]:
        """See `Rule`."""
        return ("node",)

    def window(
        self, state: RuleState, rows: Sequence[Row], start_us: int, end_us: int, step_us: int
    ) -> Iterator[Alert]:
        """See `Rule`."""
        by_node: dict[str, list[Row]] = {}
        for row in self.concerned(rows):
            if row.key["seq"] is not None:
                by_node.setdefault(row.key["node"], []).append(row)
        for node, said in sorted(by_node.items()):
            yield from self._look(state["keys"].setdefault(node, {}), node, said)

    def _look(self, memory: dict[str, Any], node: str, said: list[Row]) -> Iterator[Alert]:
        wrong: list[tuple[Row, str]] = []
        for _, together in groupby(sorted(said, key=lambda row: row.at_us), key=lambda row: row.at_us):
            several = list(together)
            if any(row.answers["birth"] for row in several):
                memory["next"] = _next_of({row.key["seq"] for row in several})
                continue
            due = memory.get("next", 0)
            for row in sorted(several, key=lambda row: _after(row, due)):
                if (gap := self._step(memory, row)) is not None:
                    wrong.append((row, gap))
        if wrong:
            row, gap = wrong[0]
            why = f"{gap}; {len(wrong)} such among {len(said)} messages" if len(wrong) > 1 else gap
            key = json.dumps([node], ensure_ascii=False)
            yield self._alert("fired", key, row.at_us, row.at_us, Figure.exactly(len(wrong)), 0.0, why)

    def _step(self, memory: dict[str, Any], row: Row) -> str | None:
        """What is wrong with the next message of a node, if anything is."""
        seq, due = row.key["seq"], memory.get("next")
        if due is None:
            memory["next"] = (seq + 1) % _NUMBERS
            return None
        missing = _after(row, due)
        late = memory.pop("late", None)
        if late is not None and seq == (late + 1) % _NUMBERS:
            memory["next"] = (seq + 1) % _NUMBERS
            return None
        if missing >= _NUMBERS // 2:
            memory["late"] = seq
            return f"number {seq} came again or late, where {due} was due"
        memory["next"] = (seq + 1) % _NUMBERS
        return None if not missing else f"number {seq} came where {due} was due: {missing} missing before it"


def _next_of(numbers: set[int]) -> int:
    """The number that is due after a birth and the messages of its millisecond.

    Others of that millisecond are of the session before.
    """
    return next(number for number in range(1, _NUMBERS + 1) if number not in numbers) % _NUMBERS


def _after(row: Row, due: int) -> int:
    """How far a message's number lies after the one that was due, around the circle."""
    return int((row.key["seq"] - due) % _NUMBERS)
