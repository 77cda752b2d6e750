"""Counts of late readings, and their keys."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

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

    def sentences(self) -> list[str]:
        """Sentences for logs, the worst last.

        >>> late = LateReadings({'["s9"]': 360, '["s1"]': 2}, {'["s3"]': 12})
        >>> for sentence in late.sentences():
        ...     print(sentence)
        362 readings were late for their windows; rules evaluated them in their keys' order: s9 360, s1 2
        12 readings came too late for their keys' order, so no rule has seen them: s3 12; wait longer by ...
        """
        sentences = []
        if self.in_time:
            n = sum(self.in_time.values())
            sentences.append(
                f"{n:,} readings were late for their windows; rules evaluated them in their keys' order: "
                f"{_listed(self.in_time)}"
            )
        if self.evicted:
            sentences.append(
                f"the order of {self.evicted:,} keys was evicted: their late readings counted as in order"
            )
        if self.too_late:
            n = sum(self.too_late.values())
            sentences.append(
                f"{n:,} readings came too late for their keys' order, so no rule has seen them: "
                f"{_listed(self.too_late)}; wait longer by --set lateness="
            )
        return sentences


def _listed(counts: Mapping[str, int]) -> str:
    most = Counter(counts).most_common(_NAMED)
    names = [f"{', '.join(map(str, json.loads(key))) if key else 'others'} {n:,}" for key, n in most]
    more = len(counts) - len(most)
    return ", ".join(names) + (f" and {more:,} other keys" if more else "")
