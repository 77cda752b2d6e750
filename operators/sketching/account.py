"""The outcome of every message that was read."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field


@dataclass(frozen=True, slots=True)
class Account:
    """Counts of messages, each in exactly one place: ``read == counted + filtered + late + dead_lettered``.

    A message counts once however many rows `explode` makes of it: as counted if any of them is in the table,
    as filtered if none is left. `truncated` are messages that were read and counted, and that their log has
    lost since; it stays out of the sum.

    >>> import streamgauge as sg
    >>> sg.Account(read=3, counted=2, late=1) + sg.Account(read=1, dead_lettered=1)
    Account(read=4, counted=2, filtered=0, late=1, dead_lettered=1)
    """

    read: int = 0
    counted: int = 0
    filtered: int = 0
    late: int = 0
    dead_lettered: int = 0
    truncated: int = field(default=0, repr=False)

    def __add__(self, other: Account) -> Account:
        return Account(
            self.read + other.read,
            self.counted + other.counted,
            self.filtered + other.filtered,
            self.late + other.late,
            self.dead_lettered + other.dead_lettered,
            self.truncated + other.truncated,
        )

    def __sub__(self, other: Account) -> Account:
        return Account(
            self.read - other.read,
            self.counted - other.counted,
            self.filtered - other.filtered,
            self.late - other.late,
            self.dead_lettered - other.dead_lettered,
            self.truncated - other.truncated,
        )

    @property
    def balanced(self) -> bool:
        """Whether the identity holds."""
        return self.read == self.counted + self.filtered + self.late + self.dead_lettered

    def to_dict(self) -> dict[str, int]:
        """The counts by name, for JSON; `truncated` only where messages were lost."""
        return {name: n for name, n in asdict(self).items() if n or name != "truncated"}
