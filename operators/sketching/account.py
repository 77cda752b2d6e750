"""The outcome of every message that was read."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from operator import add, attrgetter, sub


@dataclass(frozen=True, slots=True, repr=False)
class Account:
    """Counts of messages, each in exactly one place: ``read == counted + filtered + late + dead_lettered``.

    A message counts once however many rows `explode` makes of it: as counted if any of them is in the table,
    as filtered if none is left. Two counts are not part of the sum, and are shown only if they aren't 0.
    `skipped` counts offsets that were skipped on request (``streamgauge kafka groups skip``), or whose
    messages were deleted while no run was active (``auto.offset.reset`` lets a run continue then).
    `truncated` counts messages that were counted and that their log has lost since.

    >>> import streamgauge as sg
    >>> sg.Account(read=3, counted=2, late=1) + sg.Account(read=1, dead_lettered=1)
    Account(read=4, counted=2, filtered=0, late=1, dead_lettered=1)
    """

    read: int = 0
    counted: int = 0
    filtered: int = 0
    late: int = 0
    dead_lettered: int = 0
    skipped: int = 0
    truncated: int = 0

    def __repr__(self) -> str:
        return f"Account({', '.join(f'{name}={count}' for name, count in self.to_dict().items())})"

    def __add__(self, other: Account) -> Account:
        return Account(*map(add, _counts(self), _counts(other)))

    def __sub__(self, other: Account) -> Account:
        return Account(*map(sub, _counts(self), _counts(other)))

    @property
    def balanced(self) -> bool:
        """Whether the identity holds."""
        return self.read == self.counted + self.filtered + self.late + self.dead_lettered

    def to_dict(self) -> dict[str, int]:
        """The counts by name, for JSON; `skipped` and `truncated` only where there are any."""
        return {name: n for name, n in asdict(self).items() if n or name not in ("skipped", "truncated")}


_counts = attrgetter(*Account.__dataclass_fields__)
"""All counts; `astuple` would also copy each, which takes several times as long."""
