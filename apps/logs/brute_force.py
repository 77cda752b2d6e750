"""Refused logins of an address, counting each attempt once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ...operators.rules.kinds.rolling_sum import RollingSum
from ...operators.rules.row import Row
from ...operators.rules.rule import Measured
from ...operators.rules.value_with_bounds import Figure

_SEEN = "connections"
_PARTS = ("announced", "ended", "probe")
_ANSWERS = ("challenged", "accepted")


@dataclass(frozen=True)
class RefusedLogins(RollingSum):
    """The number of an address's logins that were refused within the last `over`, like fail2ban's `findtime`.

    A daemon writes several lines about one attempt: that the user doesn't exist, that the password was wrong,
    that the connection ended without a login. Within one connection, lines that announce an attempt and lines
    that report its failure are the same attempt, and the connection's end is an attempt only if there was
    none before. Lines without a connection, and probes, count separately.

    With `challenges`, a server's 401 for a request without a user name is a request for credentials: it
    counts until the same path is granted with a user name. For such rows the ``connection`` is the path, and
    there are two more answers, ``challenged`` and ``accepted``.

    Rows are keyed by ``address``, ``connection`` and the time. The answers are ``refused`` and its parts
    ``announced``, ``ended`` (the connection) and ``probe``. `RollingSum` has all other fields.
    """

    # Without challenged requests, the stored state is the same.
    challenges: bool = field(default=False, kw_only=True, repr=False)

    def paths(self) -> Iterable[str]:
        """See `Rule`."""
        return [*super().paths(), *_PARTS, *(_ANSWERS if self.challenges else ())]

    def figures(self, row: Row) -> Iterator[tuple[tuple[Any, ...], Figure | None]]:
        """See `LimitRule`; refusals without an address don't count."""
        if row.key["address"] is not None:
            yield from super().figures(row)

    def measure(self, memory: dict[str, Any], row: Row, figure: Figure) -> Measured:
        """See `LimitRule`."""
        since = row.at_us - self._duration("over")
        seen = {name: one for name, one in memory.pop(_SEEN, {}).items() if one[-1] > since}
        connection = row.key.get("connection")
        challenged, accepted = (
            (int(row.answers.get(name) or 0) for name in _ANSWERS) if self.challenges else (0, 0)
        )
        if connection is not None and (challenged or accepted):
            pending = seen.pop(connection, [])
            if accepted:
                _take_back(memory.get("rows", ()), pending)
                challenged = 0
            elif pending or challenged:
                seen[connection] = [*pending, *[row.at_us] * challenged]
            figure = Figure.exactly(float(challenged))
        elif connection is not None:
            announced, ended, probes = (int(row.answers[name] or 0) for name in _PARTS)
            failed = int(figure.value) - announced - ended - probes
            before = seen.get(connection, [0, 0, 0, 0])
            sums = [known + more for known, more in zip(before, (announced, failed, ended))]
            figure = Figure.exactly(float(probes + _attempts(*sums) - _attempts(*before[:3])))
            seen[connection] = [*sums, row.at_us]
        if seen:
            memory[_SEEN] = seen
        return super().measure(memory, row, figure)


def _take_back(rows: Iterable[list[float]], times: Iterable[int]) -> None:
    """Stop counting refusals at these times."""
    for time in times:
        row = next((row for row in rows if row[0] == time and row[1] > 0), None)
        if row is not None:
            row[1:] = [part - 1 for part in row[1:]]


def _attempts(announced: int, failed: int, ended: int) -> int:
    """Return the number of attempts behind these numbers of lines of a connection."""
    return max(announced, failed) or min(ended, 1)
