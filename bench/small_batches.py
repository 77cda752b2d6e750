"""What a call costs that brings one value, or a hundred: microseconds, beside the `datasketches` package.

A call here normalises its column, makes sure of room and starts a kernel, and that is all it costs: bring
values by the batch. `datasketches` takes one at a time, but for KLL, which takes arrays too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import datasketches
import numpy as np

from bench.measure import line, medians
from streamgauge.sketches.frequent_items import FrequentItems
from streamgauge.sketches.hll import HLL
from streamgauge.sketches.kll import KLL
from streamgauge.sketches.theta import Theta

CALLS = 2000


def repeated(update: Callable[[Any], Any], value: Any) -> Callable[[], None]:
    def run() -> None:
        for _ in range(CALLS):
            update(value)

    return run


def each(update: Callable[[Any], Any]) -> Callable[[Any], None]:
    def run(values: list[Any]) -> None:
        for value in values:
            update(value)

    return run


def main() -> list[dict[str, Any]]:
    """A line a family."""
    numbers = np.arange(100)
    pairs: list[tuple[str, Any, Any, Any]] = [
        ("HLL", HLL(), datasketches.hll_sketch(12), numbers),
        ("Theta", Theta(), datasketches.update_theta_sketch(12), numbers),
        ("KLL", KLL(), datasketches.kll_doubles_sketch(200), numbers.astype(float)),
        ("frequent items", FrequentItems(4096, "long"), datasketches.frequent_items_sketch(12), numbers),
    ]
    rows = []
    for name, ours, theirs, values in pairs:
        their_batch = theirs.update if name == "KLL" else each(theirs.update)
        held = values if name == "KLL" else values.tolist()
        elapsed = medians(
            repeated(ours.update, values[:1]),
            repeated(ours.update, values),
            repeated(theirs.update, held[0]),
            repeated(their_batch, held),
        )
        one, many, their_one, their_many = (1e6 * seconds / CALLS for seconds in elapsed)
        cells = f"{one:.1f} µs, {many:.1f} µs", f"datasketches {their_one:.1f} µs, {their_many:.1f} µs"
        rows.append(line(f"{name}: a call of 1 value, of 100", *cells, their_many / many, "report"))
    return rows


if __name__ == "__main__":
    for result in main():
        print(*result.values(), sep=" | ")
