"""The distinct families' kernels on one core over 20 M values in memory, beside `numpy.sum` and peers.

Peers run on one thread too. Errors are those of 20 slices of a million distinct values each, or of the
thousand groups of 20,000.

By 1,000 groups the time goes, in nanoseconds a row on a quiet machine (numpy.sum: 0.24): 0.8 to hash, 1.4 to
bring coupons together by group, 2.0 to count them (37 % raise a register, each a division for the HIP sum),
and 0.7 while groups still hold coupons. The 4 MiB of registers come from the third level's cache once for
262,144 rows: where others use that too, it was 21 to 24 times numpy.sum, else 19.

Merging an HLL_8 image of 4 KiB is mostly memory, and the sum of its registers' inverse powers, by which a
broken image is recognised: 0.16 µs for 4,096 registers in the first-level cache of a busy machine, where a
sum in 64 bits takes 0.25.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from typing import Any

import datasketches
import numpy as np
import pyarrow as pa

from bench.columns import GROUPS, ROWS, SLICES, columns, texts
from bench.engines import Answer, answers, beside, java, millions
from bench.measure import line, medians, spread
from streamgauge.sketches.core.columns.columns import as_values
from streamgauge.sketches.hll import HLL, HLLGroups
from streamgauge.sketches.theta import Theta, ThetaGroups

FEW, IMAGES = 1_000_000, 10_000
ENGINES = {"datafusion": "DataFusion", "duckdb": "DuckDB", "polars": "Polars", "chdb": "chDB"}

ZIPF = """
import json, re, time
import numpy as np
n = 20_000_000
rng = np.random.default_rng(0)
ends = np.cumsum(1.0 / np.arange(1, 1_000_001))
numbers, values = np.empty(n, np.int32), np.empty(n, np.int64)
for i in range(0, n, 1_000_000):  # a million rows at a time, so that making them is not the peak
    part = slice(i, i + 1_000_000)
    numbers[part] = np.searchsorted(ends, rng.random(1_000_000) * ends[-1])
    values[part] = rng.integers(0, 1 << 62, 1_000_000)
def report(seconds, size):
    peak = int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
    print(json.dumps([seconds, peak / 1024, size / 2**20]))
"""
OURS = """
from streamgauge.sketches.hll import HLLGroups
HLLGroups(10).update(numbers[:1000] % 10, values[:1000])
groups = HLLGroups(1_000_000)
start = time.process_time()
groups.update(numbers, values)
report(time.process_time() - start, sum(array.nbytes for array in groups._store))
"""
DUCKDB = """
import duckdb, pyarrow as pa
connection = duckdb.connect(config={"threads": 1})
connection.execute("SET enable_progress_bar = false")
connection.register("held", pa.table({"k": numbers, "v": values}))
connection.execute("CREATE TABLE t AS SELECT * FROM held")
start = time.process_time()
connection.execute("CREATE TABLE a AS SELECT k, approx_count_distinct(v) FROM t GROUP BY k")
report(time.process_time() - start, 0)
"""


def one_by_one(sketch: Any, values: Iterable[Any]) -> None:
    for value in values:
        sketch.update(value)


def grouped(groups: Any, numbers: np.ndarray, values: Any) -> Any:
    groups.update(numbers, values)
    return groups


def merged(column: pa.Array) -> float:
    groups = HLLGroups(1)
    groups.merge(np.zeros(len(column), np.int64), column)
    return float(groups.estimates()[0])


def merged_by_datasketches(images: list[bytes]) -> float:
    union = datasketches.hll_union(12)
    for image in images:
        union.update(datasketches.hll_sketch.deserialize(image))
    return float(union.get_estimate())


def against_the_sum(
    v: np.ndarray, k: np.ndarray, strings: Any
) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """Every kernel in times of `numpy.sum` over the same values, and its nanoseconds a value."""
    doubles = v.astype(np.float64)
    total, *elapsed = medians(
        lambda: np.sum(v),
        lambda: HLL().update(v),
        lambda: HLL(16).update(v),
        lambda: HLL().update(doubles),
        lambda: HLL().update(strings),
        lambda: grouped(HLLGroups(GROUPS), k, v),
        lambda: Theta().update(v),
        lambda: grouped(ThetaGroups(GROUPS), k, v),
    )
    lines = (
        ("HLL int64", "≤ 5"),
        ("HLL int64, lg_k 16", ""),
        ("HLL float64", ""),
        ("HLL Arrow strings of 10 bytes", "≤ 40"),
        ("HLL int64 by 1,000 groups", "≤ 20"),
        ("Theta int64", "≤ 6"),
        ("Theta int64 by 1,000 groups", ""),
    )
    sum_ns = 1e9 * total / ROWS
    speeds = {
        name: 1e9 * seconds / (len(strings) if "strings" in name else ROWS)
        for (name, _), seconds in zip(lines, elapsed, strict=True)
    }
    rows = [
        line(f"{name}, times of numpy.sum", millions(speeds[name]), f"numpy.sum {millions(sum_ns)}",
             speeds[name] / sum_ns, target)
        for name, target in lines
    ]  # fmt: skip
    return rows, speeds


def against_peers(v: np.ndarray, k: np.ndarray, speeds: dict[str, float]) -> list[dict[str, Any]]:
    """HLL and Theta beside engines on one thread, datasketches in Java and in Python."""
    slices = np.split(v, SLICES)
    error = spread([HLL().update(part).estimate() for part in slices], ROWS // SLICES)
    large = spread([HLL(16).update(part).estimate() for part in slices], ROWS // SLICES)
    sizes = np.bincount(k, minlength=GROUPS)
    by_key = spread(grouped(HLLGroups(GROUPS), k, v).estimates(), sizes)
    rows, strings = [], {}
    for engine, name in ENGINES.items():
        result = answers(engine, "distinct", "distinct by slice", "distinct by key", "texts")
        if not result:
            continue
        reported = spread(result["distinct by slice"].answer, ROWS // SLICES)
        rows += beside("HLL int64, lg_k 16", speeds["HLL int64, lg_k 16"], large, name, result["distinct"],
                       reported, "> 1 ×, less error")  # fmt: skip
        rows += beside(
            "HLL int64", speeds["HLL int64"], error, name, result["distinct"], reported, "> 1 ×, less error"
        )
        reported = spread([row[1] for row in result["distinct by key"].answer], sizes)
        rows += beside("HLL by 1,000 groups", speeds["HLL int64 by 1,000 groups"], by_key, name,
                       result["distinct by key"], reported,
                       "> 1 ×" if engine == "duckdb" else "")  # fmt: skip
        strings[name] = result["texts"]
    for name, peer in strings.items():
        fastest = min(strings.values(), key=lambda answer: answer.nanoseconds or np.inf)
        rows += beside("HLL strings", speeds["HLL Arrow strings of 10 bytes"], "", name, peer, "",
                       "> 1 ×" if peer is fastest else "")  # fmt: skip
    peer = java("hll", v)
    reported = f"error {peer.answer / ROWS - 1:+.1%}" if peer else ""
    rows += beside("HLL int64", speeds["HLL int64"], error, "datasketches-java", peer, reported, "> 1 ×")
    few = v[:FEW].tolist()
    hll, theta = medians(
        lambda: one_by_one(datasketches.hll_sketch(12), few),
        lambda: one_by_one(datasketches.update_theta_sketch(12), few),
        runs=3,
    )
    rows += beside(
        "HLL int64", speeds["HLL int64"], "", "datasketches", Answer(1e9 * hll / FEW, None), "", "≥ 30 ×"
    )
    rows += beside(
        "Theta int64", speeds["Theta int64"], "", "datasketches", Answer(1e9 * theta / FEW, None), "", ""
    )
    result = answers("spark", "theta", "distinct by key")
    if result:
        rows += beside("Theta int64", speeds["Theta int64"], "", "Spark", result["theta"], "", "≥ 10 ×")
        rows += beside("HLL by 1,000 groups", speeds["HLL int64 by 1,000 groups"], by_key, "Spark",
                       result["distinct by key"], "", "≥ 25 ×")  # fmt: skip
    return rows


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
        line(f"merging 10,000 {kind} images, faster than datasketches", f"{mine / IMAGES * 1e6:.2f} µs",
             f"{peer / IMAGES * 1e6:.2f} µs", peer / mine, "≥ 5 ×")
        for kind, mine, peer in (("HLL_8", ours, theirs), ("HLL_4", ours_4, theirs_4))
    ]  # fmt: skip


def many_groups() -> list[dict[str, Any]]:
    """A million groups of Zipf sizes, ours and DuckDB's in processes of their own."""
    rows = []
    for name, script, target in (("ours", OURS, "≤ 1 GiB"), ("DuckDB, one thread", DUCKDB, "")):
        done = subprocess.run([sys.executable, "-c", ZIPF + script], capture_output=True, text=True)
        if done.returncode:
            print(done.stderr[-500:], file=sys.stderr)
            continue
        payload, peak, size = json.loads(done.stdout.splitlines()[-1])
        claim = f"HLL by 1,000,000 groups of Zipf sizes, {name}"
        held = f"holds {size:,.0f} MiB" if size else ""
        speed = millions(1e9 * payload / ROWS)
        rows.append(line(claim, speed, held, f"process {peak / 1024:.2f} GiB", target))
    return rows


def main() -> list[dict[str, Any]]:
    """All of them."""
    table = columns()
    v, k = (table[name].to_numpy() for name in ("v", "k"))
    rows, speeds = against_the_sum(v, k, as_values(texts()))
    return [*rows, *against_peers(v, k, speeds), *merging(), *many_groups()]


if __name__ == "__main__":
    for results in main():
        print(*results.values(), sep=" | ")
