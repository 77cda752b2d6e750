"""Counts of this process's outlets, for its metrics: outlets register, and are counted while they live."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Protocol
from weakref import WeakSet


class CountedOutlet(Protocol):
    """An outlet that counts its alerts by outcome."""

    @property
    def title(self) -> str:
        """Its name."""

    def counts(self) -> Mapping[str, int]:
        """The number of alerts by outcome."""


_outlets: WeakSet[CountedOutlet] = WeakSet()
_lock = threading.Lock()
"""Guards `_outlets`, which threads add to while others iterate over it."""


def watch_outlet(outlet: CountedOutlet) -> None:
    """Include an outlet's counts for as long as it lives."""
    with _lock:
        _outlets.add(outlet)


def counts_by_title() -> dict[str, dict[str, int]]:
    """The counts of all outlets; those with the same name are added up.

    >>> isinstance(counts_by_title(), dict)
    True
    """
    with _lock:
        outlets = list(_outlets)
    by_title: dict[str, dict[str, int]] = {}
    for outlet in outlets:
        total = by_title.setdefault(outlet.title, {})
        for name, count in outlet.counts().items():
            total[name] = total.get(name, 0) + count
    return by_title
