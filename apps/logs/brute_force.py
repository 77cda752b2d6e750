"""Refused logins of an address, each attempt once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ...operators.rules.kinds.rolling_sum import RollingSum
from ...operators.rules.row import Row
from ...operators.rules.rule import Measured
from ...operators.rules.value_with_bounds import Figure

_SEEN = "connections"
_PARTS = ("announced", "ended", "probe")


@dataclass(frozen=True)
class RefusedLogins(RollingSum):
    """How many logins of an address were refused in the last `over` of time, as fail2ban's `findtime`.

    A daemon writes several lines about one attempt: that there is no such user, that its password failed,
    that the connection ended without a login. Of one connection those that announce an attempt and those that
    say that it failed are the same attempts, and its end is one only if there was none before. Lines without
    a connection, and probes, count as they are.

    Rows are keyed by ``address``, ``connection`` and the time; answers are ``refused``, and of it what was
    ``announced``, what ``ended`` a connection and what was a ``probe``. What else it can be given stands with
    `RollingSum`.
    """

    def paths(self) -> Iterable[str]:
        """See `Rule`."""
        return [*super().paths(), *_PARTS]

    def figures(self, row: Row) -> Iterator[tuple[tuple[Any, ...], Figure | None]]:
        """See `LimitRule`: refusals of nobody add up to nothing."""
        if row.key["address"] is not None:
            yield from super().figures(row)

    def measure(self, memory: dict[str, Any], row: Row, figure: Figure) -> Measured:
        """See `LimitRule`."""
        since = row.at_us - self._duration("over")
        seen = {name: one for name, one in memory.pop(_SEEN, {}).items() if one[-1] > since}
        if (connection := row.key.get("connection")) is not None:
            announced, ended, probes = (int(row.answers[name] or 0) for name in _PARTS)
            failed = int(figure.value) - announced - ended - probes
            before = seen.get(connection, [0, 0, 0, 0])
            sums = [known + more for known, more in zip(before, (announced, failed, ended))]
            figure = Figure.exactly(float(probes + _attempts(*sums) - _attempts(*before[:3])))
            seen[connection] = [*sums, row.at_us]
        if seen:
            memory[_SEEN] = seen
        return super().measure(memory, row, figure)


def _attempts(announced: int, failed: int, ended: int) -> int:
    """The attempts that so many lines of a connection are about."""
    return max(announced, failed) or min(ended, 1)
