"""Classic quantiles behind the protocol: what the package stored, and their promises."""

from __future__ import annotations

import pickle

import datasketches
import numpy as np
import pytest

from streamgauge.sketches.core.protocol import SketchError
from streamgauge.sketches.stored.classic_quantiles import ClassicQuantiles

VALUES = np.random.default_rng(5).lognormal(0, 2, 50_000)


@pytest.mark.parametrize("n", [0, 1, 255, 256, 257, 50_000])
def test_classic_reads_what_the_package_wrote_and_the_reverse(n: int) -> None:
    peer = datasketches.quantiles_doubles_sketch(128)
    peer.update(VALUES[:n])
    sketch = ClassicQuantiles.from_bytes(peer.serialize())
    assert sketch.n == n and sketch.to_bytes() == peer.serialize() == bytes(sketch.copy())
    assert pickle.loads(pickle.dumps(sketch)) == sketch
    if n:
        assert sketch.quantiles([0, 0.5, 1]) == [
            VALUES[:n].min(),
            peer.get_quantile(0.5, True),
            VALUES[:n].max(),
        ]


def test_classic_keeps_its_bounds() -> None:
    ordered, inside = np.sort(VALUES), []
    for _ in range(20):
        sketch = ClassicQuantiles(64)
        for part in np.array_split(VALUES, 3):
            sketch.merge(ClassicQuantiles(64).update(part))
        for q in (0.01, 0.5, 0.99):
            lower, upper = sketch.rank_bounds(float(ordered[int(q * len(ordered))]))
            inside.append(lower <= q <= upper)
        rows = sketch.answer()["quantiles"]
        assert all(row["lower"] <= row["value"] <= row["upper"] for row in rows)
    assert np.mean(inside) > 0.95


def test_wrong_use_is_named() -> None:
    with pytest.raises(SketchError, match="empty"):
        ClassicQuantiles().quantile(0.5)
    with pytest.raises(SketchError, match="from 0 to 1"):
        ClassicQuantiles().update([1.0]).quantile(2)
    with pytest.raises(SketchError, match="k must"):
        ClassicQuantiles(5)
    assert ClassicQuantiles().update([1.0, None, float("nan")]).n == 1
    assert "empty" in repr(ClassicQuantiles())
