"""A rule about the sequence numbers of Sparkplug messages: each of a node's must follow the previous one."""

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
"""A node numbers its messages, including its devices', from 0 to 255 and then from 0 again; a birth is 0."""


class SequenceGap(Rule):
    """Messages of a node are missing, repeated or out of order; fires once for each window.

    The value is the number of gaps. Messages with the same Kafka millisecond are ordered by their numbers. A
    number less than half the circle behind is late, or repeated, and the next number is compared with the
    ones before it. If the numbers continue from the late one, there was a gap of more than half the circle.
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
        """Return what is wrong with the next message of a node, if anything."""
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
    """Return the next number after a birth and the messages of its millisecond.

    Other messages of that millisecond belong to the previous session.
    """
    return next(number for number in range(1, _NUMBERS + 1) if number not in numbers) % _NUMBERS


def _after(row: Row, due: int) -> int:
    """Return how far a message's number is after the expected one, around the circle."""
    return int((row.key["seq"] - due) % _NUMBERS)
