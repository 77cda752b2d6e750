"""How tests wait: for a condition, with a limit that a slow machine does not reach."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from streamgauge.operators.kafka.topics import admin, end_offsets, high_watermarks, partitions_of

T = TypeVar("T")


def until(condition: Callable[[], object], seconds: float = 300.0) -> None:
    """Wait until the condition holds; fails after so many seconds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"still not true after {seconds:.0f} s"
        time.sleep(0.02)


def patiently(what: str, begin: Callable[[], T], tries: int = 4) -> T:
    """What `begin` gives, tried again where a busy machine let it fail; says what failed and why."""
    for tried in range(1, tries + 1):
        try:
            return begin()
        except Exception as error:
            if tried == tries:
                raise
            print(f"{what} failed and is tried again ({tried + 1} of {tries}): {error!r}")
    raise AssertionError("tries must be at least 1")


def readable(servers: str, topic: str) -> None:
    """Wait until readers of committed messages see all of a topic.

    A transaction's producer hears of its end before the topic has the marker that shows it.
    """
    client = admin({"bootstrap.servers": servers})
    places = [(topic, partition) for partition in range(partitions_of(client, topic, 120.0))]
    until(lambda: end_offsets(client, places, 120.0) == high_watermarks(client, places, 120.0))
