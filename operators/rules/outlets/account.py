"""The outcomes of the alerts passed to an outlet."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class OutletAccount:
    """Counts of alerts: `given` = `sent` + `failed` + `silenced` + `unmatched` + `pending`.

    `failed` were refused or given up, `silenced` are suppressed for good, `unmatched` are not for this
    outlet; `pending` wait for their group, for another attempt, or for a silence to end.
    """

    given: int = 0
    sent: int = 0
    failed: int = 0
    silenced: int = 0
    unmatched: int = 0

    @property
    def pending(self) -> int:
        """The number of waiting alerts."""
        return self.given - self.sent - self.failed - self.silenced - self.unmatched

    def to_dict(self) -> dict[str, int]:
        """As a dictionary.

        >>> OutletAccount(given=3, sent=2).to_dict()["pending"]
        1
        """
        names = ("given", "sent", "failed", "silenced", "unmatched", "pending")
        return {name: getattr(self, name) for name in names}

    def __str__(self) -> str:
        counts = self.to_dict()
        return f"{counts.pop('given'):,} given = " + " + ".join(f"{n:,} {name}" for name, n in counts.items())
