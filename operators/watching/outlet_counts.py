"""The counts of this process's outlets, for its metrics: outlets register, and are known while they live."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Protocol
from weakref import WeakSet


class CountedOutlet(Protocol):
    """What counts its alerts by what became of them."""

    @property
    def title(self) -> str:
        """What it is called."""

    def counts(self) -> Mapping[str, int]:
        """How many alerts became what."""


_outlets: WeakSet[CountedOutlet] = WeakSet()
_lock = threading.Lock()
"""Of `_outlets`, which threads add to while others go through it."""


def watch_outlet(outlet: CountedOutlet) -> None:
    """Have an outlet counted for as long as it lives."""
    with _lock:
        _outlets.add(outlet)


def counts_by_title() -> dict[str, dict[str, int]]:
    """The counts of all outlets; of those of one name together.

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
