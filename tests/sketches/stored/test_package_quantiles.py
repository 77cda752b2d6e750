"""REQ, classic quantiles and t-digest behind the protocol: what the package stored, and their promises."""

from __future__ import annotations

import pickle

import datasketches
import numpy as np
import pytest

from streamgauge.sketches.core.protocol import SketchError
from streamgauge.sketches.req import REQ
from streamgauge.sketches.stored.classic_quantiles import ClassicQuantiles
from streamgauge.sketches.tdigest import TDigest

from ...cases import each

VALUES = np.random.default_rng(5).lognormal(0, 2, 50_000)


@each("high_ranks", [True, False])
@each("n", [0, 1, 4, 5, 1000, 50_000])
def test_req_reads_what_the_package_wrote_and_the_reverse(n: int, high_ranks: bool) -> None:
    peer = datasketches.req_floats_sketch(12, high_ranks)
    peer.update(VALUES[:n].astype(np.float32))
    sketch = REQ.from_bytes(peer.serialize())
    if n:
        peer.get_rank(0.0)  # puts the lowest level in order, as our images are
    assert sketch.n == n and sketch.to_bytes() == peer.serialize() == bytes(sketch.copy())
    assert pickle.loads(pickle.dumps(sketch)) == sketch
    ours = REQ(12, high_ranks).update(VALUES[:n])
    assert datasketches.req_floats_sketch.deserialize(ours.to_bytes()).n == n


def test_req_keeps_its_bounds_in_the_tail() -> None:
    ordered = np.sort(VALUES)
    inside = []
    for _ in range(20):
        sketch = REQ(12)
        for part in np.array_split(VALUES, 3):
            sketch.merge(REQ(12).update(part))
        assert sketch.n == len(VALUES)
        for q in (0.9, 0.99, 0.999):
            x = float(np.float32(ordered[int(q * len(ordered))]))
            lower, upper = sketch.rank_bounds(x, 3)
            true = np.mean(VALUES.astype(np.float32) <= x)
            inside.append(lower <= true <= upper)
            assert abs(sketch.rank(x) - true) < 0.1 * (1 - q) + 2e-5
    assert np.mean(inside) > 0.95
    assert all(row["lower"] <= row["value"] <= row["upper"] for row in sketch.answer()["quantiles"])


def merged(parts: list[REQ], rng: np.random.Generator, shape: str) -> REQ:
    """The parts merged from the left, from the right, or any two neighbours at a time."""
    while len(parts) > 1:
        at = {"left": 0, "right": len(parts) - 2}.get(shape, int(rng.integers(len(parts) - 1)))
        parts[at : at + 2] = [parts[at].merge(parts[at + 1])]
    return parts[0]


@pytest.mark.parametrize("shape", ["left", "right", "any"])
def test_req_keeps_its_bounds_in_any_tree(shape: str) -> None:
    rng = np.random.default_rng(8)
    values = rng.standard_normal(8000).astype(np.float32)
    ordered, inside = np.sort(values), []
    for _ in range(25):
        cuts = np.sort(rng.integers(0, len(values), 40))
        sketch = merged([REQ().update(part) for part in np.split(values, cuts)], rng, shape)
        assert sketch.n == len(values)
        for q in (0.1, 0.5, 0.9, 0.99):
            x = float(ordered[int(q * len(ordered))])
            lower, upper = sketch.rank_bounds(x, 2)
            inside.append(lower <= np.searchsorted(ordered, x, "right") / len(ordered) <= upper)
    assert np.mean(inside) > 0.93


def test_req_of_a_smaller_k_widens_the_bounds() -> None:
    coarse = REQ(4).update(VALUES)
    for both in (REQ(50) | coarse, coarse | REQ(50), REQ(50).update([1.0, 2.0]) | coarse):
        assert both.rank_bounds(1.0, 2) == pytest.approx(coarse.rank_bounds(1.0, 2), abs=0.02)
        assert np.subtract(*both.rank_bounds(1.0, 2)[::-1]) > 0.5 * np.subtract(
            *coarse.rank_bounds(1.0, 2)[::-1]
        )


def test_tdigest_reads_what_the_package_wrote_and_merges() -> None:
    peer = datasketches.tdigest_double(100)
    peer.update(VALUES)
    sketch = TDigest.from_bytes(peer.serialize())
    assert sketch.n == 50_000 and sketch.rank(1.0) == peer.get_rank(1.0)
    sketch.merge(TDigest(100).update(VALUES))
    assert sketch.n == 100_000
    assert sketch.rank(float(np.quantile(VALUES, 0.99))) == pytest.approx(0.99, abs=0.002)
    assert sketch.quantiles([0, 1]) == [VALUES.min(), VALUES.max()]
    assert sketch.answer()["quantiles"][0]["lower"] is None


@pytest.mark.parametrize("k", [10, 50, 200])
def test_tdigest_quantiles_rise(k: int) -> None:
    """The package's own fall between two clusters."""
    aggregates = np.array(TDigest(k).update(VALUES).quantiles(np.linspace(0, 1, 501)))
    assert (np.diff(aggregates) >= 0).all()
    assert abs(np.mean(aggregates[250] >= VALUES) - 0.5) < 2 / k
    assert TDigest(k).update([1.0, 2.0, 4.0]).quantiles([0, 0.5, 1]) == [1.0, 2.0, 4.0]


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
    for family in (REQ, ClassicQuantiles, TDigest):
        with pytest.raises(SketchError, match="empty"):
            family().quantile(0.5)
        with pytest.raises(SketchError, match="from 0 to 1"):
            family().update([1.0]).quantile(2)
        with pytest.raises(SketchError, match="k must"):
            family(5)
        assert family().update([1.0, None, float("nan")]).n == 1 and "empty" in repr(family())
    with pytest.raises(SketchError, match="same end"):
        REQ().merge(REQ(high_ranks=False))
    with pytest.raises(SketchError, match="infinity"):
        TDigest().update([float("inf")])


def test_a_level_and_its_compactions_must_agree() -> None:
    image = bytearray(REQ(4).update(np.arange(5000.0)).to_bytes())
    image[24:32] = bytes(8)  # as if level 0 had never been compacted into the levels above
    with pytest.raises(SketchError, match="was compacted, or not"):
        REQ.from_bytes(bytes(image))


def test_raw_items_said_to_be_sorted_must_be() -> None:
    sketch = REQ().update([3.0, 1.0, 2.0])
    assert sketch.quantile(0.5) == 2.0  # for which the package sorts them, and says so in the image
    image = bytearray(sketch.to_bytes())
    assert image[3] & 32
    image[8:12], image[12:16] = image[12:16], image[8:12]
    with pytest.raises(SketchError, match="raw items are out of order"):
        REQ.from_bytes(bytes(image))


def test_a_digest_of_more_centroids_than_its_k_makes() -> None:
    image = bytearray(TDigest(200).update(np.arange(50_000.0)).to_bytes())
    image[3:5] = (10).to_bytes(2, "little")
    with pytest.raises(SketchError, match="more centroids"):
        TDigest.from_bytes(bytes(image))
