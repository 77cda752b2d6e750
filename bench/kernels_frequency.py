"""Counting kernels: frequent items, count-min and Bloom filters against memory speed and their peers.

20 M values in memory on one core; the yardstick is `numpy.sum` over the same array. Peers count a part of it,
as they take a value at a time; rates are compared. Zipf 1.1 is over a million values, as words of a language
or tags of a network are, and, harder, over all integers.
"""

from __future__ import annotations

from typing import Any

import datasketches
import numpy as np
import pyarrow as pa

from streamgauge.sketches.bloom import Bloom
from streamgauge.sketches.count_min import CountMin
from streamgauge.sketches.frequent_items import FrequentItems, FrequentItemsGroups

from .engines import Answer, answers, beside, java
from .measure import medians

N = 20_000_000
STRINGS = 5_000_000
PEER = 500_000
SIZE = 4096


def zipf(n: int, universe: int = 1_000_000) -> np.ndarray:
    """Ranks from 1, Zipf 1.1 over so many values."""
    shares = np.cumsum(np.arange(1, universe + 1) ** -1.1)
    drawn = np.random.default_rng(1).random(n)
    return np.searchsorted(shares, drawn * shares[-1]).astype(np.int64) + 1


def millions(n: int, seconds: float) -> str:
    return f"{n / seconds / 1e6:,.0f} M/s"


def against_sum(claim: str, values: np.ndarray, call: Any, target: float | None = None) -> dict[str, Any]:
    """A kernel's time in times of `numpy.sum` over the same array."""
    ours, yardstick = medians(call, values.sum)
    return {
        "claim": claim,
        "ours": millions(len(values), ours),
        "peer": f"numpy.sum {millions(len(values), yardstick)}",
        "ratio": f"{ours / yardstick:.1f} ×",
        "target": f"≤ {target:g} ×" if target else "report",
    }


def against_peer(claim: str, n: int, ours: Any, peer: str, theirs: Any, target: str) -> dict[str, Any]:
    """Our rate over `n` values against a peer's over `PEER` of them."""
    mine, other = medians(ours, theirs, runs=3)
    return {
        "claim": claim,
        "ours": millions(n, mine),
        "peer": f"{peer} {PEER / other / 1e6:,.2f} M/s",
        "ratio": f"{n / mine / (PEER / other):.1f} × as fast",
        "target": target,
    }


def frequent_peer(items: list[Any], kind: Any) -> Any:
    def run() -> None:
        sketch = kind(12)
        for item in items:
            sketch.update(item)

    return run


def beside_engines(ranked: np.ndarray, uniform: np.ndarray) -> list[dict[str, Any]]:
    """Frequent items beside datasketches-java, count-min beside Spark's, each of the same size."""
    frequent, counting = medians(
        lambda: FrequentItems(SIZE, "long").update(ranked), lambda: CountMin(0.001, 0.99).update(uniform)
    )
    bound = FrequentItems(SIZE, "long").update(ranked).error
    peer = java("frequent", ranked)
    reported = f"counts to {peer.answer / N:.4%} of all" if peer else ""
    ours = f"counts to {bound / N:.4%} of all"
    claim = "frequent items, int64, Zipf 1.1"
    rows = beside(claim, 1e9 * frequent / N, ours, "datasketches-java", peer, reported, "≥ 1 ×")
    spark = answers("spark", "count-min")
    peer = spark.get("count-min", Answer(None, None))
    return rows + beside("count-min, int64 uniform", 1e9 * counting / N, "", "Spark", peer, "", "≥ 5 ×")


def main() -> list[dict[str, Any]]:
    rows = []
    ranked = zipf(N)
    endless = np.random.default_rng(2).zipf(1.1, N)
    uniform = np.random.default_rng(3).integers(-(2**62), 2**62, N)
    for name, values in (("1 M values", ranked), ("all integers", endless)):
        rows.append(
            against_sum(
                f"frequent items, int64, Zipf 1.1 over {name}, {SIZE}",
                values,
                lambda values=values: FrequentItems(SIZE, "long").update(values),
                40,
            )
        )
    rows.append(
        against_peer(
            "frequent items, int64, Zipf 1.1",
            N,
            lambda: FrequentItems(SIZE, "long").update(ranked),
            "datasketches",
            frequent_peer(ranked[:PEER].tolist(), datasketches.frequent_items_sketch),
            "≥ 6 ×",
        )
    )
    rows += beside_engines(ranked, uniform)
    words = pa.array([f"tag{i}" for i in range(1, 1_000_001)]).take(pa.array(ranked[:STRINGS] - 1))
    rows.append(
        against_peer(
            "frequent items, strings of 4 to 10 bytes",
            STRINGS,
            lambda: FrequentItems(SIZE).update(words),
            "datasketches",
            frequent_peer(words[:PEER].to_pylist(), datasketches.frequent_strings_sketch),
            "report",
        )
    )
    for groups in (4, 1000):
        numbers = np.random.default_rng(4).integers(0, groups, STRINGS)
        rows.append(
            against_peer(
                f"the same by {groups:,} groups, rows in random order",
                STRINGS,
                lambda n=groups, numbers=numbers: FrequentItemsGroups(n, SIZE).update(numbers, words),
                "datasketches, ungrouped",
                frequent_peer(words[:PEER].to_pylist(), datasketches.frequent_strings_sketch),
                "report",
            )
        )
    for name, values in (("uniform", uniform), ("Zipf 1.1", ranked)):
        rows.append(
            against_sum(
                f"count-min, int64 {name}, eps 0.001, confidence 0.99",
                values,
                lambda values=values: CountMin(0.001, 0.99).update(values),
                20,
            )
        )
    peer = datasketches.count_min_sketch(7, 2000)
    few = uniform[:PEER].tolist()
    rows.append(
        against_peer(
            "count-min, int64 uniform",
            N,
            lambda: CountMin(0.001, 0.99).update(uniform),
            "datasketches",
            lambda: [peer.update(x) for x in few],
            "report",
        )
    )
    bloom = Bloom(1_000_000, 0.01)
    adding = "Bloom, blocked, 1 M values at 1 %, int64 added"
    rows.append(against_sum(adding, uniform, lambda: bloom.update(uniform)))
    rows.append(against_sum("the same, contained?", uniform, lambda: bloom.contains(uniform)))
    return rows


if __name__ == "__main__":
    for row in main():
        print(*row.values(), sep=" | ")
