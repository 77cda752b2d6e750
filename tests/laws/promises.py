"""What each family promises, held against the obvious slow way: the error as a share of the bound.

Each function takes a sketch and the very values it has seen, and gives the largest error in times of what is
promised for it: up to 1 the promise is kept. A broken certainty is infinite.
"""

from __future__ import annotations

import math
from collections import Counter
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

BROKEN = math.inf


def key(value: Any) -> Any:
    """What counts as the same value: one NaN, one zero."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value


def excess(error: float, bound: float) -> float:
    """An error in times of its bound; where nothing may be off, nothing must be."""
    if bound <= 0:
        return 0.0 if error <= 0 else BROKEN
    return error / bound


def nothing(sketch: Any, values: list[Any]) -> float:
    """For a family without a known promise; `test_exact.py` asks for a promise by its name."""
    return 0.0


def distinct(sketch: Any, values: list[Any]) -> float:
    true = len({key(value) for value in values if value != ""})
    (lower, upper), estimate = sketch.bounds(2), sketch.estimate()
    if not lower <= estimate <= upper:
        return BROKEN
    slack = 1e-9 * max(true, 1)
    return max(
        excess(true - estimate - slack, upper - estimate), excess(estimate - true - slack, estimate - lower)
    )


def quantiles(sketch: Any, values: list[Any]) -> float:
    ordered = np.sort(np.array([value for value in values if value == value], object))
    n = len(ordered)
    if n == 0:
        return 0.0 if sketch.n == 0 else BROKEN
    if sketch.n != n or sketch.quantiles([0.0, 1.0]) != [ordered[0], ordered[-1]]:
        return BROKEN
    worst = 0.0
    for q in (0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999):
        result = sketch.quantile(q)
        below, upto = (np.searchsorted(ordered, result, side) / n for side in ("left", "right"))
        worst = max(worst, below - q - 1 / n, q - upto - 1 / n)
    bound = 0.0 if sketch.exact else sketch.normalized_rank_error()
    return excess(max(worst, 0.0), bound)


def double_quantiles(sketch: Any, values: list[Any]) -> float:
    return quantiles(sketch, list(map(float, values)))


def tail_ranks(sketch: Any, values: list[Any]) -> float:
    """Ranks of floats, each with bounds of its own at two standard deviations."""
    with np.errstate(over="ignore"):
        ordered = np.sort(np.array([value for value in values if value == value], float).astype(np.float32))
    n = len(ordered)
    if sketch.n != n or (n and sketch.quantiles([0.0, 1.0]) != [ordered[0], ordered[-1]]):
        return BROKEN
    errors = [0.0]
    for q in (0.01, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999) if n else ():
        x = float(ordered[int(q * (n - 1))])
        true, rank = np.searchsorted(ordered, x, "right") / n, sketch.rank(x)
        lower, upper = sketch.rank_bounds(x, 2)
        errors.append(excess(abs(rank - true) - 1e-9, max(upper - rank, rank - lower)))
    # Each rank's promise has its own chance: one in seven may break it.
    return sorted(errors)[-2] if n else 0.0


def ends(sketch: Any, values: list[Any]) -> float:
    """For a t-digest, which promises no more: it counts what is finite, has the ends, and quantiles rise."""
    ordered = np.sort(np.array([value for value in values if math.isfinite(value)], float))
    if sketch.n != len(ordered):
        return BROKEN
    if not len(ordered):
        return 0.0
    result = np.array(sketch.quantiles(np.linspace(0, 1, 21)))
    fine = result[0] == ordered[0] and result[-1] == ordered[-1] and (result[1:] >= result[:-1]).all()
    return 0.0 if fine else BROKEN


def relative_quantiles(sketch: Any, values: list[Any]) -> float:
    ordered = np.sort(np.array([value for value in values if value == value], float))
    if sketch.n != len(ordered):
        return BROKEN
    worst = 0.0
    for q in (0.0, 0.001, 0.1, 0.25, 0.5, 0.75, 0.9, 0.999, 1.0) if len(ordered) else ():
        true, result = ordered[int(np.floor(q * (len(ordered) - 1)))], sketch.quantile(q)
        lower, upper = sketch.quantile_bounds(q)
        slack = 1e-9 * abs(true) if math.isfinite(true) else 0.0
        if not (lower <= true + slack and true - slack <= upper):
            return BROKEN
        if result != true and not (result == 0 and abs(true) < 2.4e-308):  # what is this small counts as zero
            worst = max(worst, excess(abs(result - true), sketch.relative_accuracy * abs(true) * (1 + 1e-9)))
    return worst


def decayed_count(sketch: Any, values: list[Any]) -> float:
    """With a half-life of decades: every row counts as one, nearly."""
    n, estimate = len(values), sketch.estimate()
    lower, upper = sketch.bounds()
    fine = sketch.n == n and lower <= estimate <= upper and n * (1 - 1e-5) <= estimate <= n * (1 + 1e-12)
    return 0.0 if fine else BROKEN


def decayed_quantiles(sketch: Any, values: list[Any]) -> float:
    """With a half-life of decades: values off by their share, at ranks off by next to nothing."""
    ordered = np.sort(np.array([value for value in values if value == value], float))
    n = len(ordered)
    if sketch.n != n:
        return BROKEN
    worst = 0.0
    for q in (0.0, 0.001, 0.1, 0.25, 0.5, 0.75, 0.9, 0.999, 1.0) if n else ():
        result, (lower, upper) = sketch.quantile(q), sketch.quantile_bounds(q)
        near = ordered[max(int(q * n * (1 - 1e-5)) - 1, 0) : int(q * n * (1 + 1e-5)) + 2]
        near = np.where(np.abs(near) < 2.4e-308, 0.0, near)  # what is this small counts as zero
        errors = [
            0.0
            if result == true
            else excess(abs(result - true), sketch.relative_accuracy * abs(true) * (1 + 1e-9))
            for true in near.tolist()
        ]
        if not lower <= result <= upper or not ((near >= lower * (1 - 1e-9)) | (near <= upper)).any():
            return BROKEN
        worst = max(worst, min(errors))
    return worst


def frequencies(sketch: Any, values: list[Any], max_size: int | None = None) -> float:
    """Of one `max_size`, or merged from sketches whose smallest is `max_size`."""
    nan = float("nan")
    counts = Counter(nan if value != value else value for value in values)  # one item, as the object is one
    if sketch.weight != len(values):
        return BROKEN
    for value, count in counts.items():
        lower, upper = sketch.bounds(value)
        if not lower <= count <= upper:
            return BROKEN
    promised = 3.5 / (max_size or sketch.max_size) * len(values)
    top = {nan if item.item != item.item else item.item for item in sketch.top(len(counts))}
    if any(count > promised and value not in top for value, count in counts.items()):
        return BROKEN
    return excess(sketch.error, promised)


def point_counts(sketch: Any, values: list[Any]) -> float:
    counts = Counter(values)
    if not counts:
        return 0.0
    # Spark's hash functions can't tell longs 2^63 apart, as CountMin says: such a pair counts as one.
    pairs = {value: counts[value ^ -(2**63)] for value in counts if isinstance(value, int)}
    true = np.array([count + pairs.get(value, 0) for value, count in counts.items()])
    errors = sketch.estimates(list(counts)) - true
    if errors.min() < 0:
        return BROKEN
    # Each value's promise has its own chance: as many may break it.
    return excess(float(np.quantile(errors, sketch.confidence)), sketch.eps * len(values))


@cache
def _strangers(kind: str) -> pa.Array:
    """Values of a type that no stream has."""
    if kind == "str":
        return pa.array([f"not there {i}" for i in range(20_000)])
    return pa.array(np.arange(20_000) + 0.123 if kind == "float" else np.arange(20_000) * 7 + 3_000_000_017)


def membership(sketch: Any, values: list[Any]) -> float:
    if not values:
        return 0.0
    unsigned = isinstance(values[0], int) and max(values) >= 2**63
    if not sketch.contains(pa.array(values, pa.uint64() if unsigned else None)).all():
        return BROKEN
    result = sketch.contains(_strangers(type(values[0]).__name__)).mean()
    chance = 3 * math.sqrt(0.01 / 20_000)
    return excess(float(result) - chance, 0.01)


def share(sketch: Any, values: list[Any]) -> float:
    """The share of the values that are at or before the median, by value."""
    if part_of(sketch, values) != 0.0:
        return BROKEN
    if len(values) <= len(sketch):
        return 0.0
    middle = sorted(map(repr, values))[len(values) // 2]
    true = sum(repr(value) <= middle for value in values) / len(values)
    sampled = sketch.values().to_pylist()
    result = sum(repr(value) <= middle for value in sampled) / len(sampled)
    return excess(abs(result - true), sketch.error(0.95))


def part_of(sketch: Any, values: list[Any]) -> float:
    """Only rows of the stream, none more often than there; as many as there should be."""
    answer = sketch.values()
    sampled = (answer["item"] if isinstance(answer, pa.Table) else answer).to_pylist()
    extra = Counter(map(repr, sampled)) - Counter(map(repr, values))
    return BROKEN if extra or sketch.n != len(values) else 0.0
