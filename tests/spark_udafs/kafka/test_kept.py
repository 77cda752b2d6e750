"""What a worker's process keeps is bounded, and closed when nobody uses it."""

from __future__ import annotations

from streamgauge.spark_udafs.kafka.kept import Kept


def test_the_longest_unused_go_first_and_idle_ones_go() -> None:
    now, closed = 0.0, []
    kept: Kept[str] = Kept(3, closed.append, lambda: now)
    for name in "abc":
        kept.put(name, name)
        now += 10
    assert kept.take("a") == "a"
    kept.put("a", "a")  # used, so younger than the others
    kept.put("d", "d")
    assert closed == ["b"]
    now = 85
    assert kept.take("none") is None and closed == ["b", "c"]
    assert kept.take("d") == "d" and kept.take("d") is None
    now = 200
    kept.put("e", "e")
    assert closed == ["b", "c", "a"] and kept.take("e") == "e"
