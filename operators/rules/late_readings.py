"""Counts of late readings, and their keys."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..rendering.names import amount

_NAMED = 5


@dataclass(frozen=True)
class LateReadings:
    """Readings that were late for their windows, by key.

    `in_time` were evaluated in the order of their key; `too_late` were left out, because they came more than
    `lateness` after later ones. `evicted` keys had their order forgotten. The key "" stands for all beyond
    the first thousand.
    """

    in_time: Mapping[str, int] = field(default_factory=dict)
    too_late: Mapping[str, int] = field(default_factory=dict)
    evicted: int = 0

    @property
    def total(self) -> int:
        """The number of late readings."""
        return sum(self.in_time.values()) + sum(self.too_late.values())

    def __add__(self, other: LateReadings) -> LateReadings:
        return LateReadings(
            Counter(self.in_time) + Counter(other.in_time),
            Counter(self.too_late) + Counter(other.too_late),
            self.evicted + other.evicted,
        )

    def to_dict(self) -> dict[str, Any]:
        """The numbers as JSON, the keys as text, the most frequent first.

        >>> LateReadings({'["s9"]': 360}).to_dict()
        {'in_time': {'s9': 360}, 'too_late': {}, 'evicted': 0}
        """
        named = {
            name: {_name(key): n for key, n in Counter(counts).most_common()}
            for name, counts in (("in_time", self.in_time), ("too_late", self.too_late))
        }
        return {**named, "evicted": self.evicted}

    def sentences(self) -> list[str]:
        """Sentences for logs, the worst last.

        >>> late = LateReadings({'["s9"]': 360, '["s1"]': 2}, {'["s3"]': 12})
        >>> for sentence in late.sentences():
        ...     print(sentence)
        362 readings were late for their windows; rules evaluated them in their keys' order: s9 360, s1 2
        12 readings were too late for their keys' order, so no rule has seen them: s3 12; wait longer by ...
        """
        return described(self.to_dict())


def described(counts: Mapping[str, Any]) -> list[str]:
    """Sentences for the numbers of `LateReadings.to_dict`."""
    sentences = []
    if in_time := counts["in_time"]:
        sentences.append(
            f"{_readings(in_time)} late for their windows; rules evaluated them in their keys' order: "
            f"{_listed(in_time)}"
        )
    if counts["evicted"]:
        sentences.append(
            f"the order of {counts['evicted']:,} keys was evicted: their late readings counted as in order"
        )
    if too_late := counts["too_late"]:
        sentences.append(
            f"{_readings(too_late)} too late for their keys' order, so no rule has seen them: "
            f"{_listed(too_late)}; wait longer by --set lateness="
        )
    return sentences


def _readings(counts: Mapping[str, int]) -> str:
    n = sum(counts.values())
    return f"{amount(n, 'reading')} {'was' if n == 1 else 'were'}"


def _listed(counts: Mapping[str, int]) -> str:
    names = [f"{name} {n:,}" for name, n in list(counts.items())[:_NAMED]]
    more = len(counts) - len(names)
    return ", ".join(names) + (f" and {more:,} other keys" if more else "")


def _name(key: str) -> str:
    return ", ".join(map(str, json.loads(key))) if key else "others"
