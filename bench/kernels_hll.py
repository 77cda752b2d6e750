"""The distinct families' kernels on one core over 20 M values in memory, beside `numpy.sum` and peers."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from typing import Any

import datasketches
import numpy as np
import polars as pl
import pyarrow as pa

from bench.measure import medians
from streamgauge.sketches.columns import as_values
from streamgauge.sketches.hll import HLL, HLLGroups
from streamgauge.sketches.theta import Theta, ThetaGroups

ROWS, PEER_ROWS, IMAGES = 20_000_000, 1_000_000, 10_000

MANY_GROUPS = """
import json, resource, time
import numpy as np
from streamgauge.sketches.hll import HLLGroups
n = 20_000_000
rng = np.random.default_rng(0)
ends = np.cumsum(1.0 / np.arange(1, 1_000_001))
numbers, values = np.empty(n, np.int32), np.empty(n, np.int64)
for i in range(0, n, 1_000_000):  # a million rows at a time, so that making them is not the peak
    part = slice(i, i + 1_000_000)
    numbers[part] = np.searchsorted(ends, rng.random(1_000_000) * ends[-1])
    values[part] = rng.integers(0, 1 << 62, 1_000_000)
HLLGroups(10).update(numbers[:1000] % 10, values[:1000])
groups = HLLGroups(1_000_000)
start = time.perf_counter()
groups.update(numbers, values)
took = time.perf_counter() - start
size = sum(array.nbytes for array in groups._store)
print(json.dumps([took, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, size / 2**20]))
"""


def row(claim: str, ours: str, peer: str, ratio: float, target: str) -> dict[str, Any]:
    """One line of the table."""
    return {"claim": claim, "ours": ours, "peer": peer, "ratio": f"{ratio:.2f} ×", "target": target}


def speed(rows: int, seconds: float) -> str:
    return f"{rows / seconds / 1e6:,.1f} M/s"


def one_by_one(sketch: Any, values: Iterable[Any]) -> None:
    for value in values:
        sketch.update(value)


def grouped(groups: Any, numbers: np.ndarray, values: Any) -> None:
    groups.update(numbers, values)


def merged(column: pa.Array) -> float:
    groups = HLLGroups(1)
    groups.merge(np.zeros(len(column), np.int64), column)
    return float(groups.estimates()[0])


def merged_by_datasketches(images: list[bytes]) -> float:
    union = datasketches.hll_union(12)
    for image in images:
        union.update(datasketches.hll_sketch.deserialize(image))
    return float(union.get_estimate())


def against_the_sum(values: np.ndarray, texts: pa.Array, numbers: np.ndarray) -> list[dict[str, Any]]:
    """Every kernel in times of `numpy.sum` over the same values."""
    doubles, strings = values.astype(np.float64), as_values(texts)
    total, whole, double, text, groups, theta, theta_groups = medians(
        lambda: np.sum(values),
        lambda: HLL().update(values),
        lambda: HLL().update(doubles),
        lambda: HLL().update(strings),
        lambda: grouped(HLLGroups(1000), numbers, values),
        lambda: Theta().update(values),
        lambda: grouped(ThetaGroups(1000), numbers, values),
    )
    yardstick = f"numpy.sum {speed(ROWS, total)}"
    lines = (
        ("HLL int64", whole, ROWS, "≤ 5"),
        ("HLL float64", double, ROWS, ""),
        ("HLL Arrow strings of 10 bytes", text, len(texts), "≤ 40"),
        ("HLL int64 by 1,000 groups", groups, ROWS, "≤ 20"),
        ("Theta int64", theta, ROWS, "≤ 6"),
        ("Theta int64 by 1,000 groups", theta_groups, ROWS, ""),
    )
    return [
        row(f"{name}, times of numpy.sum", speed(n, took), yardstick, took / n / (total / ROWS), target)
        for name, took, n, target in lines
    ]


def against_peers(values: np.ndarray, texts: pa.Array, numbers: np.ndarray) -> list[dict[str, Any]]:
    """HLL and Theta beside `datasketches`, a call a value, and Polars on all its threads."""
    few, series = values[:PEER_ROWS].tolist(), pl.Series(values)
    strings, frame = pl.Series(texts), pl.DataFrame({"g": numbers, "v": values})
    by_group = frame.lazy().group_by("g").agg(pl.col("v").approx_n_unique())
    hll, theta, theirs, theirs_theta, polars, text, polars_text, groups, polars_groups = medians(
        lambda: HLL().update(values),
        lambda: Theta().update(values),
        lambda: one_by_one(datasketches.hll_sketch(12), few),
        lambda: one_by_one(datasketches.update_theta_sketch(12), few),
        series.approx_n_unique,
        lambda: HLL().update(texts),
        strings.approx_n_unique,
        lambda: grouped(HLLGroups(1000), numbers, values),
        by_group.collect,
        runs=3,
    )
    lines = (
        ("HLL int64", hll, ROWS, f"datasketches {speed(PEER_ROWS, theirs)}", theirs / PEER_ROWS, "≥ 30"),
        ("Theta int64", theta, ROWS, f"datasketches {speed(PEER_ROWS, theirs_theta)}",
         theirs_theta / PEER_ROWS, ""),
        ("HLL int64", hll, ROWS, f"Polars, all threads, {speed(ROWS, polars)}", polars / ROWS, "> 1"),
        ("HLL strings", text, len(texts), f"Polars, all threads, {speed(len(texts), polars_text)}",
         polars_text / len(texts), "> 1"),
        ("HLL by 1,000 groups", groups, ROWS, f"Polars, all threads, {speed(ROWS, polars_groups)}",
         polars_groups / ROWS, "> 1"),
    )  # fmt: skip
    return [
        row(f"{name}, faster than", speed(n, took), peer, per_row / (took / n), target)
        for name, took, n, peer, per_row, target in lines
    ]


def merging() -> list[dict[str, Any]]:
    """10,000 sketches of 6,000 values, in their registers, folded into one."""
    rng = np.random.default_rng(1)
    parts = HLLGroups(IMAGES)
    for _ in range(3):
        parts.update(np.repeat(np.arange(IMAGES), 2000), rng.integers(0, 1 << 62, 2000 * IMAGES))
    column = parts.to_arrow()
    images = column.to_pylist()
    small = [HLL.from_bytes(image).to_bytes("hll_4") for image in images]
    small_column = pa.array(small, pa.binary())
    assert abs(merged(column) / merged_by_datasketches(images) - 1) < 1e-9
    ours, theirs, ours_4, theirs_4 = medians(
        lambda: merged(column),
        lambda: merged_by_datasketches(images),
        lambda: merged(small_column),
        lambda: merged_by_datasketches(small),
    )
    return [
        row(f"merging 10,000 {kind} images, lg_k 12, faster than", speed(IMAGES, mine), f"datasketches "
            f"{speed(IMAGES, peer)}", peer / mine, "≥ 5")
        for kind, mine, peer in (("HLL_8", ours, theirs), ("HLL_4", ours_4, theirs_4))
    ]  # fmt: skip


def many_groups() -> list[dict[str, Any]]:
    """A million groups of Zipf sizes, in a process of their own."""
    done = subprocess.run([sys.executable, "-c", MANY_GROUPS], capture_output=True, text=True, check=True)
    took, peak, size = json.loads(done.stdout)
    claim = (
        f"HLL by 1,000,000 groups of Zipf sizes: {size:,.0f} MiB held, peak of the process {peak:,.0f} MiB"
    )
    return [row(claim, speed(ROWS, took), "1 GiB", peak / 1024, "≤ 1")]


def main() -> list[dict[str, Any]]:
    """All of them."""
    rng = np.random.default_rng(0)
    values = rng.integers(0, 1 << 62, ROWS)
    numbers = rng.integers(0, 1000, ROWS)
    texts = pa.array(np.char.add("user", np.char.zfill((values[: ROWS // 4] % 10**6).astype("U6"), 6)))
    return [
        *against_the_sum(values, texts, numbers),
        *against_peers(values, texts, numbers),
        *merging(),
        *many_groups(),
    ]


if __name__ == "__main__":
    for line in main():
        print(line)
