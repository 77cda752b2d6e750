"""The outcome of all messages that an agent has read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class IngestAccount:
    """Messages by outcome; `dropped` by reason. Messages in flight are in none of these.

    >>> account = IngestAccount(5, 3, 1, {"filter": 1})
    >>> print(account + IngestAccount(1, 1))
    6 read = 4 sent + 1 dead-lettered + 1 dropped (filter 1)
    """

    read: int = 0
    sent: int = 0
    dead_lettered: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, other: IngestAccount) -> IngestAccount:
        return IngestAccount(
            self.read + other.read,
            self.sent + other.sent,
            self.dead_lettered + other.dead_lettered,
            dict(Counter(self.dropped) + Counter(other.dropped)),
        )

    def __str__(self) -> str:
        why = ", ".join(f"{reason} {count:,}" for reason, count in sorted(self.dropped.items()))
        return (
            f"{self.read:,} read = {self.sent:,} sent + {self.dead_lettered:,} dead-lettered + "
            f"{self.dropped_count:,} dropped" + (f" ({why})" if why else "")
        )

    @property
    def dropped_count(self) -> int:
        """The number of dropped messages, for all reasons."""
        return sum(self.dropped.values())

    @property
    def unaccounted(self) -> int:
        """Messages that were read and have no outcome yet: those in flight, 0 at the end."""
        return self.read - self.sent - self.dead_lettered - self.dropped_count

    def as_dict(self) -> dict[str, Any]:
        """Convert to a dictionary for JSON."""
        return {
            "read": self.read,
            "sent": self.sent,
            "dead_lettered": self.dead_lettered,
            "dropped": self.dropped_count,
            "dropped_by_reason": dict(sorted(self.dropped.items())),
        }
