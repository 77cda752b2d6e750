"""Deleted values keep the bounds, and one that can't be deleted changes nothing."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.sketches.frequent_items import FrequentItems, FrequentItemsGroups

from .streams import KINDS, column, zipf


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("max_size", [8, 64, 8192])
def test_deletions_keep_the_bounds(kind: str, max_size: int) -> None:
    rng = np.random.default_rng(max_size)
    values = column(zipf(12, 8_000), kind)
    items = values.to_pylist()
    groups = FrequentItemsGroups(3, max_size=max_size, kind=kind)
    sketch = FrequentItems(max_size, kind)
    truth: Counter[Any] = Counter()
    for begin in range(0, 8_000, 1_000):
        sketch.update(values[begin : begin + 1_000])
        groups.update(np.full(1_000, 1), values[begin : begin + 1_000])
        truth.update(items[begin : begin + 1_000])
        gone = []
        for i in rng.permutation(begin + 1_000)[:400]:
            if truth[items[i]] > 0:
                truth[items[i]] -= 1
                gone.append(i)
        gone_values = values.take(pa.array(np.array(gone)))
        for part in np.array_split(np.arange(len(gone)), 3):
            sketch.delete(gone_values.take(pa.array(part)))
        groups.delete(np.full(len(gone), 1), gone_values, weight=np.ones(len(gone), np.int64))
        assert sketch.weight == truth.total()
        for item, n in truth.items():
            low, high = sketch.bounds(item)
            assert low <= n <= high
            assert max_size < 8192 or low == n
        assert FrequentItems.from_bytes(sketch.to_bytes(), kind) == sketch == groups[1]
    assert sketch.error <= 3.5 / max_size * 8_000
    left = [item for item, n in truth.items() for _ in range(n)]
    assert sketch.delete(left) == FrequentItems(max_size, kind)
    with pytest.raises(ValueError, match="can't delete 1 from group 0"):
        sketch.delete(values[:1])
    assert groups[0] == groups[2] == FrequentItems(max_size, kind)


@pytest.mark.parametrize("kind", ["long", "string"])
def test_a_delete_that_raises_deletes_nothing(kind: Any) -> None:
    word = str if kind == "string" else int
    values = [word(i % 20) for i in range(300)]
    groups = FrequentItemsGroups(3, 64, kind)
    for group in range(3):
        groups.update(np.full(300, group), pa.array(values))
    before = groups.to_arrow()
    gone = pa.array([*values[:40], *[word(1)] * 60])
    with pytest.raises(ValueError, match="nothing was deleted"):
        groups.delete(np.array([0] * 10 + [2] * 90), gone)
    assert groups.to_arrow() == before
    groups.delete(np.zeros(300, int), pa.array(values))
    assert groups[0] == FrequentItems(64, kind) and groups.to_arrow()[1:] == before[1:]
