"""What was seen lately, in fixed memory: filters that forget, and deduplication with them, on one core.

Filters are held to a million values that never came, at the end of four windows in which 100,000 different
values come: evenly, each once; all within the last hundredth of their window; or the same ones in each eighth
of each window. The ring is of eight blocked Bloom filters and the one that fills; its bytes are the fewest
with which it finds at most 1 % of the strangers.

Deduplication looks at 6 million rows, each of an id of its own, a million within reach, and forgets as it
goes. Its memory is the most that it took.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from bench.measure import line, medians
from streamgauge.operators.steps.id_filter import IdFilter
from streamgauge.operators.steps.id_index import IdIndex
from streamgauge.sketches.bloom import Bloom
from streamgauge.sketches.sliding_bloom import SlidingBloom

CAPACITY, PARTS, WINDOWS, FPP = 100_000, 8, 4, 0.01
SECOND = 1_000_000
WINDOW = 3600 * SECOND
IDS, ROWS, BATCH = 1_000_000, 6_000_000, 100_000
STRANGERS = np.arange(1_000_000) + (1 << 40)
PATTERNS = ("evenly", "in a burst", "the same again and again")


def arriving(pattern: str) -> tuple[np.ndarray, np.ndarray]:
    """Values and their times, in order."""
    each, windows = np.arange(CAPACITY), np.arange(WINDOWS)[:, None]
    if pattern == "evenly":
        values, times = windows * CAPACITY + each, windows * WINDOW + each * WINDOW // CAPACITY
    elif pattern == "in a burst":
        values, times = windows * CAPACITY + each, (windows + 1) * (WINDOW * 102 // 100) - CAPACITY + each
    else:
        parts = np.arange(WINDOWS * PARTS)[:, None]
        values, times = each + 0 * parts, parts * (WINDOW // PARTS) + each
    return values.reshape(-1), times.reshape(-1)


def ring(values: np.ndarray, times: np.ndarray, capacity: int) -> list[Bloom]:
    """A filter for each part of the last window, and the one that fills."""
    parts = times // (WINDOW // PARTS)
    last = int(parts[-1])
    return [Bloom(capacity, FPP).update(values[parts == part]) for part in range(last - PARTS, last + 1)]


def hit_rate(filters: list[Any]) -> float:
    """The share of strangers that one of the filters finds."""
    return float(np.logical_or.reduce([one.contains(STRANGERS) for one in filters]).mean())


def bytes_of_ring(values: np.ndarray, times: np.ndarray) -> int:
    """Bytes with which a ring keeps the rate, to a few percent."""
    low, high = CAPACITY // 20, CAPACITY * 4
    while high > 1.02 * low:
        middle = (low + high) // 2
        low, high = (low, middle) if hit_rate(ring(values, times, middle)) <= FPP else (middle, high)
    return (PARTS + 1) * len(Bloom(high, FPP).to_bytes())


def filters() -> list[dict[str, Any]]:
    """False positives and sizes by how values come, and how long an update and a look-up take."""
    lines, size = [], SlidingBloom(CAPACITY, FPP)._cells.size
    for pattern in PATTERNS:
        values, times = arriving(pattern)
        kept = SlidingBloom(CAPACITY, FPP, window=WINDOW / SECOND).update(values, time=times)
        peer, forever = bytes_of_ring(values, times), Bloom(CAPACITY, FPP).update(values)
        lines += [
            line(
                f"false positives, values come {pattern}",
                f"{hit_rate([kept]):.2%}",
                f"Bloom {hit_rate([forever]):.1%}",
                "",
            ),
            line(
                f"bytes a value for 1 %, values come {pattern}",
                f"{size / CAPACITY:.1f}",
                f"ring {peer / CAPACITY:.1f}",
                size / peer,
            ),
        ]
    values, times = np.arange(1_000_000), np.arange(1_000_000) * WINDOW // CAPACITY
    kept, bloom = SlidingBloom(CAPACITY), Bloom(CAPACITY)
    parts = [Bloom(CAPACITY // PARTS, 0.001) for _ in range(PARTS + 1)]
    own, once, turns = medians(
        lambda: kept.contains(values),
        lambda: bloom.contains(values),
        lambda: [part.contains(values) for part in parts],
    )
    lines.append(
        line(
            "nanoseconds to look a value up",
            f"{own * 1e3:.1f}",
            f"ring {turns * 1e3:.1f}, Bloom {once * 1e3:.1f}",
            own / turns,
        )
    )
    own, once = medians(
        lambda: SlidingBloom(CAPACITY).update(values, time=times), lambda: Bloom(CAPACITY).update(values)
    )
    lines.append(
        line("nanoseconds to add a value", f"{own * 1e3:.1f}", f"Bloom {once * 1e3:.1f}", own / once)
    )
    return lines


def deduplicated(seen: IdIndex | IdFilter) -> tuple[int, int]:
    """The most bytes that were taken, and how many rows were dropped."""
    size = dropped = 0
    for low in range(0, ROWS, BATCH):
        rows = np.arange(low, low + BATCH)
        times = rows * WINDOW // IDS
        dropped += int(seen.mark([pa.array(rows)], times, rows).sum())
        size = max(size, seen.size)
        seen.forget_before(int(times[-1]))
    return size, dropped


def deduplication() -> list[dict[str, Any]]:
    """Memory, rows dropped by mistake and time, beside exact ids."""
    lines, exact = [], deduplicated(IdIndex(WINDOW))[0]
    for fpp in (0.01, 0.001):
        size, dropped = deduplicated(IdFilter(WINDOW, IDS, fpp))
        own, peer = medians(
            lambda fpp=fpp: deduplicated(IdFilter(WINDOW, IDS, fpp)),
            lambda: deduplicated(IdIndex(WINDOW)),
            runs=3,
            warm=False,
        )
        ours, theirs = (f"{seconds / ROWS * 1e9:.0f} ns" for seconds in (own, peer))
        lines += [
            line(
                f"deduplicate, fpp={fpp}: memory",
                f"{size / 1e6:.0f} MB",
                f"exact {exact / 1e6:.0f} MB",
                size / exact,
            ),
            line(
                f"deduplicate, fpp={fpp}: a row",
                f"{ours}, {dropped / ROWS:.3%} dropped",
                f"exact {theirs}",
                own / peer,
            ),
        ]
    return lines


def main() -> list[dict[str, Any]]:
    """The table's lines."""
    return filters() + deduplication()
