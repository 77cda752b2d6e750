"""Quantile sketches' kernels on one core over 20 M doubles in memory, beside `numpy.sum` and peers.

Peers run on one thread too. Errors are those of p50, p99 and p99.9 of lognormal values, as shares of the
value, over 20 M rows, or the root of the mean square over a thousand groups of 20,000 rows each. DDSketch,
which promises 1 % of the value, is what `quantiles` uses by default; KLL with k = 200 promises 1.33 % of the
rank.

By 1,000 groups a row takes 2.3 ns on a quiet machine (numpy.sum: 0.24) to bring values together by group,
each of 1,000 streams ending in its own cache line, and 0.3 to find the extremes. The rest goes into thinning
blocks in a sorting network, merging what is left upwards, and a group's first 600 values, which are compacted
level by level as the reference does.

With weights every row's weight is read twice from memory, to refuse it before any is added and to add it up
(0.6 ns), and a value is looked up for each draw (0.3). By groups weights cost most before a sketch is deep
enough to draw: a value joins a level for each bit of its weight, and these levels are sorted and halved.
"""

from __future__ import annotations

from typing import Any

import datasketches
import ddsketch
import numpy as np

from bench.columns import GROUPS, ROWS, columns
from bench.engines import Answer, answers, beside, millions
from bench.measure import line, medians
from streamgauge.sketches.ddsketch import DDSketch, DDSketchGroups
from streamgauge.sketches.kll import KLL, KLLGroups
from streamgauge.sketches.req import REQ, REQGroups
from streamgauge.sketches.tdigest import TDigest, TDigestGroups

QS = (0.5, 0.99, 0.999)
FEW = 2_000_000


def grouped(groups: Any, numbers: np.ndarray, values: np.ndarray) -> Any:
    groups.update(numbers, values)
    return groups


def merged(images: Any) -> KLLGroups:
    groups = KLLGroups(1, k=200, seed=1)
    groups.merge(np.zeros(len(images), np.int64), images)
    return groups


def merged_by_datasketches(images: list[bytes]) -> Any:
    sketch = datasketches.kll_doubles_sketch(200)
    for image in images:
        sketch.merge(datasketches.kll_doubles_sketch.deserialize(image))
    return sketch


def images_of(values: np.ndarray, size: int) -> Any:
    """KLL images of so many values each."""
    parts = len(values) // size
    return grouped(KLLGroups(parts, seed=1), np.arange(len(values)) % parts, values).to_arrow()


def merging(x: np.ndarray) -> list[dict[str, Any]]:
    """KLL images of few, some and many values, each sort folded into one sketch."""
    rows = []
    for size, values in ((200, x[:FEW]), (1_000, x[:FEW]), (20_000, x)):
        column = images_of(values, size)
        images = column.to_pylist()
        ours, theirs = medians(
            lambda column=column: merged(column), lambda images=images: merged_by_datasketches(images)
        )
        rows.append(
            line(f"merging {len(images):,} KLL images of {size:,} values, times datasketches",
                 f"{ours / len(images) * 1e6:.1f} µs", f"{theirs / len(images) * 1e6:.1f} µs",
                 theirs / ours, "≥ 2 ×")
        )  # fmt: skip
    return rows


def weighted(k: np.ndarray, x: np.ndarray) -> list[dict[str, Any]]:
    """Updates with weights of 1 to 9 beside the same without, single and by groups."""
    weights = np.random.default_rng(4).integers(1, 10, len(x))
    pairs = (
        ("KLL", lambda **given: KLL(200, seed=1).update(x, **given)),
        ("DDSketch", lambda **given: DDSketch(0.01).update(x, **given)),
        ("KLL by 1,000 groups", lambda **given: KLLGroups(GROUPS, seed=1).update(k, x, **given)),
        ("DDSketch by 1,000 groups", lambda **given: DDSketchGroups(GROUPS, 0.01).update(k, x, **given)),
    )
    rows = []
    for name, update in pairs:
        once, often = medians(update, lambda update=update: update(weight=weights))
        rows.append(
            line(f"{name} with weights of 1 to 9, times its speed without", millions(1e9 * often / len(x)),
                 millions(1e9 * once / len(x)), once / often, "≥ 0.5 ×")
        )  # fmt: skip
    return rows


def one_by_one(sketch: Any, values: list[float]) -> None:
    for value in values:
        sketch.add(value)


def errors(result: Any, true: np.ndarray) -> str:
    """How far p50, p99 and p99.9 are off: a sketch's, or the root of the mean square of many."""
    off = np.atleast_2d(np.asarray(result, float)) / true - 1
    return "off by " + ", ".join(f"{error:.1%}" for error in np.sqrt(np.mean(off**2, axis=0)))


def true_by_group(k: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The quantiles of each group, exactly."""
    order = np.argsort(k, kind="stable")
    ends = np.cumsum(np.bincount(k, minlength=GROUPS))
    return np.array([np.quantile(part, QS) for part in np.split(x[order], ends[:-1])])


def main() -> list[dict[str, Any]]:
    """Times of `numpy.sum`, times of the peers, by groups, and merging."""
    table = columns()
    k, x = (table[name].to_numpy() for name in ("k", "x"))
    longs, normal, few = (
        (x * 1e6).astype(np.int64),
        np.random.default_rng(2).normal(size=ROWS),
        x[:FEW].copy(),
    )
    total, *elapsed = medians(
        lambda: np.sum(x),
        lambda: KLL(200, seed=1).update(x),
        lambda: KLL(200, "long", seed=1).update(longs),
        lambda: grouped(KLLGroups(GROUPS, seed=1), k, x),
        lambda: DDSketch(0.01).update(x),
        lambda: DDSketch(0.01).update(normal),
        lambda: grouped(DDSketchGroups(GROUPS, 0.01), k, x),
        lambda: REQ(12, seed=1).update(x),
        lambda: grouped(REQGroups(GROUPS, seed=1), k, x),
        lambda: TDigest(200).update(x),
        lambda: grouped(TDigestGroups(GROUPS), k, x),
    )
    names = (
        ("KLL float64, k = 200", "≤ 5"),
        ("KLL int64, k = 200", ""),
        ("KLL by 1,000 groups", ""),
        ("DDSketch 1 %, lognormal", "≤ 8"),
        ("DDSketch 1 %, normal", "≤ 8"),
        ("DDSketch by 1,000 groups", ""),
        ("REQ, k = 12", ""),
        ("REQ by 1,000 groups", ""),
        ("t-digest, k = 200", ""),
        ("t-digest by 1,000 groups", ""),
    )
    sum_ns = 1e9 * total / ROWS
    speeds = {name: 1e9 * seconds / ROWS for (name, _), seconds in zip(names, elapsed, strict=True)}
    rows = [
        line(f"{name}, times of numpy.sum", millions(speeds[name]), f"numpy.sum {millions(sum_ns)}",
             speeds[name] / sum_ns, target)
        for name, target in names
    ]  # fmt: skip
    rows += weighted(k, x)
    true, by_group = np.quantile(x, QS), true_by_group(k, x)
    kll, dds = (
        errors(KLL(seed=1).update(x).quantiles(QS), true),
        errors(DDSketch().update(x).quantiles(QS), true),
    )
    kll_groups = grouped(KLLGroups(GROUPS, seed=1), k, x)
    kll_groups = errors([kll_groups[g].quantiles(QS) for g in range(GROUPS)], by_group)
    dds_groups = grouped(DDSketchGroups(GROUPS), k, x)
    dds_groups = errors([dds_groups[g].quantiles(QS) for g in range(GROUPS)], by_group)

    floats = few.astype(np.float32)  # the package's items, which it else would have to convert
    array, req_array, digest_array, theirs = medians(
        lambda: datasketches.kll_doubles_sketch(200).update(few),
        lambda: datasketches.req_floats_sketch(12).update(floats),
        lambda: datasketches.tdigest_double(200).update(few),
        lambda: one_by_one(ddsketch.DDSketch(0.01), few[:50_000].tolist()),
        runs=3,
    )
    held = datasketches.kll_doubles_sketch(200)
    held.update(x.copy())  # the column's own memory can't be written to, which it asks for
    aggregates = errors(held.get_quantiles(list(QS)), true)
    single, many = speeds["KLL float64, k = 200"], speeds["KLL by 1,000 groups"]
    log, logs = speeds["DDSketch 1 %, lognormal"], speeds["DDSketch by 1,000 groups"]
    rows += beside("KLL", single, kll, "datasketches", Answer(1e9 * array / FEW, None), aggregates, "≥ 15 ×")
    for claim, name, ours, peer, ns in (
        ("REQ", "REQ, k = 12", REQ(seed=1), datasketches.req_floats_sketch(12), req_array),
        ("t-digest", "t-digest, k = 200", TDigest(), datasketches.tdigest_double(200), digest_array),
    ):
        peer.update(x.astype(np.float32) if claim == "REQ" else x.copy())
        aggregates = errors([peer.get_quantile(q) for q in QS], true)
        own = errors(ours.update(x).quantiles(QS), true)
        target = "≥ 5 ×" if claim == "REQ" else ""
        rows += beside(
            claim, speeds[name], own, "datasketches", Answer(1e9 * ns / FEW, None), aggregates, target
        )
    rows += beside("DDSketch", log, dds, "ddsketch", Answer(1e9 * theirs / 50_000, None), "", "")
    result = answers("chdb", "t-digest", "DDSketch", "quantiles by key", "DDSketch by key")
    if result:
        aggregates = {query: errors([row[-1] for row in answer.answer], by_group if "key" in query else true)
                for query, answer in result.items()}  # fmt: skip
        rows += beside(
            "KLL", single, kll, "chDB quantilesTDigest", result["t-digest"], aggregates["t-digest"], "≥ 8 ×"
        )
        rows += beside(
            "DDSketch", log, dds, "chDB quantilesDD", result["DDSketch"], aggregates["DDSketch"], "≥ 3 ×"
        )
        for claim, ours, error in (("KLL", many, kll_groups), ("DDSketch", logs, dds_groups)):
            for query, name in (("quantiles by key", "quantiles"), ("DDSketch by key", "quantilesDD")):
                target = "≥ 3 ×" if name == "quantiles" else ""
                peer = result[query]
                rows += beside(
                    f"{claim} by 1,000 groups", ours, error, f"chDB {name}", peer, aggregates[query], target
                )
    result = answers("spark", "KLL by key")
    if result:
        reported_p99 = np.array([row[1] for row in result["KLL by key"].answer]) / by_group[:, 1] - 1
        aggregates = f"p99 of fewer rows off by {np.sqrt(np.mean(reported_p99**2)):.1%}"
        for claim, ours, error in (("KLL", many, kll_groups), ("DDSketch", logs, dds_groups)):
            rows += beside(
                f"{claim} by 1,000 groups",
                ours,
                error,
                "Spark KLL",
                result["KLL by key"],
                aggregates,
                "≥ 30 ×",
            )
    return rows + merging(x)


if __name__ == "__main__":
    for results in main():
        print(*results.values(), sep=" | ")
