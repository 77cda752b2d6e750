"""What a worker's process keeps is bounded, and closed when nobody uses it."""

from __future__ import annotations

import pytest

from streamgauge.spark_udafs.kafka.connection_pool import ConnectionPool


@pytest.mark.slow
def test_the_longest_unused_go_first_and_idle_ones_go() -> None:
    now, closed = 0.0, []
    kept: ConnectionPool[str] = ConnectionPool(3, closed.append, lambda: now)
    for name in "abc":
        kept.put(name, name)
        now += 10
    assert kept.borrow("a") == "a"
    kept.put("a", "a")  # used, so younger than the others
    kept.put("d", "d")
    assert closed == ["b"]
    now = 85
    assert kept.borrow("none") is None and closed == ["b", "c"]
    assert kept.borrow("d") == "d" and kept.borrow("d") is None
    now = 200
    kept.put("e", "e")
    assert closed == ["b", "c", "a"] and kept.borrow("e") == "e"
