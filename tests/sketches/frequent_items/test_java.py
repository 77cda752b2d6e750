"""Frequent items to and from datasketches-java, and through Spark's own top-k functions."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.sketches.core.protocol import SketchError
from streamgauge.sketches.frequent_items import FrequentItems, FrequentItemsGroups
from streamgauge.sketches.frequent_items.approx_top_k import (
    from_state,
    items_tracked,
    max_size_of,
    state_type,
    to_state,
)

Oracle = Callable[[str, list[str]], list[str]]
KINDS = ("string", "long", "plain")

pytestmark = pytest.mark.spark


def values(kind: str, n: int) -> list[Any]:
    ranks = np.arange(1, 2001) ** -1.1
    drawn = np.random.default_rng(n).choice(2000, n, p=ranks / ranks.sum()) - 5
    if kind != "string":
        return [2**63 - 1 if x == -5 else int(x) for x in drawn]
    return ["" if x == 7 else "日本" if x == -5 else f"tag{x}" for x in drawn]


def sketch_of(kind: str, size: int, items: list[Any]) -> FrequentItems:
    return FrequentItems(size, "string" if kind == "string" else "long").update(items)


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def words(kind: str, items: list[Any]) -> str:
    return ",".join(b64(item.encode()) if kind == "string" else str(item) for item in items)


def rows(kind: str, line: str) -> tuple[int, int, dict[Any, tuple[int, int]]]:
    weight, error, *result = line.split(" ")
    table = {}
    for row in result:
        item, lower, upper = row.split(":")
        key = base64.b64decode(item).decode() if kind == "string" else int(item)
        table[key] = (int(lower), int(upper))
    return int(weight), int(error), table


def ours(sketch: FrequentItems) -> tuple[int, int, dict[Any, tuple[int, int]]]:
    return sketch.weight, sketch.error, {i.item: (i.lower, i.upper) for i in sketch.top(len(sketch))}


CASES = [(kind, size, n) for kind in KINDS for size, n in ((8, 3), (8, 500), (64, 4000), (1024, 9000))]


def test_java_reads_ours_as_we_do(java_oracle: Oracle) -> None:
    sketches = [sketch_of(kind, size, values(kind, n)) for kind, size, n in CASES]
    all_equal = [
        sketch_of(kind, 8, values(kind, 0) + ([*"abcdefg"] if kind == "string" else [*range(7)]))
        for kind in KINDS
    ]
    lines = [f"rows {case[0]} {b64(s.to_bytes())}" for case, s in zip(CASES, sketches)]
    lines += [f"rows {kind} {b64(s.to_bytes())}" for kind, s in zip(KINDS, all_equal)]
    answers = java_oracle("FrequentItemsOracle", lines)
    for (kind, *_), sketch, answer in zip(
        [*CASES, *((kind,) for kind in KINDS)], sketches + all_equal, answers, strict=True
    ):
        assert rows(kind, answer) == ours(sketch)


def test_we_read_javas_and_it_merges_both(java_oracle: Oracle) -> None:
    built = java_oracle(
        "FrequentItemsOracle",
        [f"build {kind} {size} {words(kind, values(kind, n))}" for kind, size, n in CASES],
    )
    own = [sketch_of(kind, size, values(kind, n + 1)) for kind, size, n in CASES]
    lines = [f"rows {kind} {image}" for (kind, *_), image in zip(CASES, built)]
    lines += [f"merge {kind} {image} {b64(s.to_bytes())}" for (kind, *_), image, s in zip(CASES, built, own)]
    answers = java_oracle("FrequentItemsOracle", lines)
    for i, (kind, size, n) in enumerate(CASES):
        name = "string" if kind == "string" else "long"
        theirs = FrequentItems.from_bytes(base64.b64decode(built[i]), name)
        assert ours(theirs) == rows(kind, answers[i])
        truth = Counter(values(kind, n)) + Counter(values(kind, n + 1))
        merged_there = FrequentItems.from_bytes(base64.b64decode(answers[len(CASES) + i]), name)
        for both in (merged_there, theirs | own[i], own[i] | theirs):
            assert both.weight == 2 * n + 1
            assert both.error <= 3.5 / size * (2 * n + 1)
            for item, count in truth.items():
                assert both.bounds(item)[0] <= count <= both.bounds(item)[1]


@pytest.mark.parametrize("kind", ["string", "long"])
def test_spark_combines_ours_with_its_own(spark: Any, kind: str) -> None:
    items = values(kind, 3000)
    groups = FrequentItemsGroups(3, max_size=64, kind=kind)
    groups.update(np.arange(2000) % 3, items[:2000])
    states = to_state(groups.to_arrow(), kind, 64)
    spark.createDataFrame(pa.table({"state": states})).createOrReplaceTempView("ours")
    spark.createDataFrame(pa.table({"item": items[2000:]})).createOrReplaceTempView("theirs")
    tracked = items_tracked(64)
    frame = spark.sql(
        f"SELECT state FROM ours UNION ALL SELECT approx_top_k_accumulate(item, {tracked}) FROM theirs"
    )
    both = frame.selectExpr(f"approx_top_k_combine(state, {tracked}) AS state")
    image = from_state(both.toArrow()["state"], kind)
    merged = FrequentItems.from_bytes(image[0].as_py(), kind)
    assert merged.max_size == 64 and merged.weight == 3000
    for item, count in Counter(items).items():
        assert merged.bounds(item)[0] <= count <= merged.bounds(item)[1]
    top = both.selectExpr("approx_top_k_estimate(state, 1) AS top").collect()[0].top[0]
    assert (top["item"], top["count"]) == (merged.top(1)[0].item, merged.top(1)[0].estimate)
    back = FrequentItemsGroups(1, max_size=64, kind=kind)
    back.merge(np.zeros(1, np.int64), image)
    assert back[0] == merged


def test_the_struct() -> None:
    for size in (8, 64, 4096, 16_384, 2**21):
        assert max_size_of(items_tracked(size)) == size
    with pytest.raises(SketchError):
        items_tracked(2**22)
    with pytest.raises(SketchError):
        max_size_of(0)
    images = pa.array([FrequentItems(64).update(["a"]).to_bytes(), None])
    states = to_state(images, "string", 64)
    assert states.type == state_type("string") and states[1].as_py() is None
    assert from_state(states, "string").equals(images)
    with pytest.raises(SketchError, match="counts longs"):
        from_state(states, "long")
    with pytest.raises(SketchError, match="expected a struct"):
        from_state(images, "string")
