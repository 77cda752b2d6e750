"""Determine from a recording's order which hour a local clock means at the end of summer time."""

from __future__ import annotations

_DISORDER_MS = 120_000
"""How far a line's time may be before the previous one's until its clock counts as set back."""
_HOUR_MS = 3_600_000


class LocalClocks:
    """The latest times of hosts' or sensors' clocks in a recording, in milliseconds since 1970.

    With `once_each`, a host has one line per time, such as a sensor's reading.
    """

    def __init__(self, once_each: bool = False) -> None:
        self._once_each = once_each
        self._by_host: dict[str | None, int] = {}
        self._steps: dict[str | None, int] = {}
        self._latest: int | None = None

    def choose(self, host: str | None, first: int, second: int) -> int:
        """Choose one of two times of a line by its order; they only differ in the repeated hour.

        >>> clocks, hour = LocalClocks(once_each=True), 3_600_000
        >>> [clocks.choose("meter", at, at + hour * (at == hour)) // hour for at in (0, hour, hour, 3 * hour)]
        [0, 1, 2, 3]
        """
        chosen = first
        if first != second:
            before = self._by_host.get(host, self._latest)
            # Another host's lines may be hours ahead, for example in concatenated files.
            goes_on = before is not None and before <= second + _HOUR_MS
            if goes_on and before is not None and (first < before - _DISORDER_MS or self._again(host, first)):
                chosen = second
        own = self._by_host.get(host, chosen)
        if self._once_each and chosen != own:
            self._steps[host] = chosen - own
        self._by_host[host] = max(chosen, own)
        self._latest = chosen
        return chosen

    def _again(self, host: str | None, first: int) -> bool:
        """Whether a host with a line every half an hour or more rarely shows the same time as before."""
        return self._by_host.get(host) == first and self._steps.get(host, 0) >= _HOUR_MS // 2
