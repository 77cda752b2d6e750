"""t-digests beside DataSketches': equal bytes, and answers that stay within what was seen."""

from __future__ import annotations

import struct

import datasketches
import numpy as np
import pytest

from streamgauge.sketches.core.protocol import SketchError
from streamgauge.sketches.tdigest import TDigest, TDigestGroups

VALUES = np.random.default_rng(5).lognormal(0, 2, 50_000)


def theirs(values: np.ndarray, k: int) -> bytes:
    """The package's image."""
    peer = datasketches.tdigest_double(k)
    peer.update(values)
    return bytes(peer.serialize())


@pytest.mark.parametrize("k", [10, 100, 200])
def test_bytes_are_the_packages(k: int) -> None:
    for n in (0, 1, 2, 3, 500, 4 * (2 * k + 10), 4 * (2 * k + 10) + 1, 7000, 50_000):
        for values in (VALUES[:n], np.floor(VALUES[:n])):
            ours = TDigest(k).update(values)
            assert ours.to_bytes() == theirs(values, k), n
            assert TDigest.from_bytes(ours.to_bytes()) == ours and ours.n == n


def test_merged_digests_count_and_answer_as_the_packages() -> None:
    halves = VALUES[:20_000], VALUES[20_000:]
    peers = [datasketches.tdigest_double(100) for _ in halves]
    for peer, half in zip(peers, halves):
        peer.update(half)
    peers[0].merge(peers[1])
    ours = TDigest(100).update(halves[0]).merge(TDigest(100).update(halves[1]))
    assert ours.n == 50_000 == peers[0].get_total_weight()
    assert ours.quantiles([0, 1]) == [VALUES.min(), VALUES.max()]
    for q in (0.001, 0.1, 0.5, 0.9, 0.999):
        x = float(np.quantile(VALUES, q))
        assert ours.rank(x) == pytest.approx(q, abs=0.1 * q * (1 - q) + 1e-4)
        assert ours.rank(x) == pytest.approx(peers[0].get_rank(x), abs=0.05 * q * (1 - q) + 1e-4)


@pytest.mark.parametrize("k", [10, 50, 200])
def test_quantiles_rise_and_ranks_turn_them_round(k: int) -> None:
    """The package's own quantiles fall between two clusters."""
    sketch, shares = TDigest(k).update(VALUES), np.linspace(0, 1, 501)
    result = np.array(sketch.quantiles(shares))
    assert (np.diff(result) >= 0).all() and abs(np.mean(result[250] >= VALUES) - 0.5) < 2 / k
    assert [sketch.rank(x) for x in result.tolist()] == pytest.approx(shares.tolist(), abs=1 / len(VALUES))
    few = TDigest(k).update([1.0, 2.0, 4.0])
    assert few.quantiles([0, 0.5, 1]) == [1.0, 2.0, 4.0]


@pytest.mark.parametrize("largest", [1.7e308, 1e308, 1e154, 5e-324])
def test_answers_stay_within_what_was_seen_however_large_it_is(largest: float) -> None:
    signs = np.random.default_rng(2).uniform(-1, 1, 20_000)
    signs[:2] = -1, 1
    values = signs * largest
    ordered = np.sort(values)
    whole, parts = TDigest(20).update(values), TDigest(20)
    for part in np.array_split(values, 30):
        parts.merge(TDigest(20).update(part))
    for sketch in (whole, parts, TDigest.from_bytes(parts.to_bytes())):
        result = np.array(sketch.quantiles(np.linspace(0, 1, 301)))
        assert (result >= -largest).all() and (result <= largest).all() and (result[1:] >= result[:-1]).all()
        ranks = [sketch.rank(x) for x in (-np.inf, -largest / 2, 0.0, largest / 2, np.inf)]
        assert ranks == sorted(ranks) and ranks[0] == 0 and ranks[-1] == 1
        if largest > 1:
            assert ranks == pytest.approx([0, 0.25, 0.5, 0.75, 1], abs=0.05)
            true = np.searchsorted(ordered, result[150]) / len(ordered)
            assert true == pytest.approx(0.5, abs=0.05)


def test_infinities_are_left_out_of_groups_and_of_one() -> None:
    sketch = TDigest().update([1.0, np.inf, 2.0, -np.inf, None, np.nan])
    groups = TDigestGroups(1)
    groups.update([0] * 6, [1.0, np.inf, 2.0, -np.inf, None, np.nan])
    assert sketch.n == 2 and sketch.quantiles([0, 1]) == [1.0, 2.0] and groups[0] == sketch
    assert groups.answers().to_pylist() == [sketch.answer()]
    assert sketch.answer()["quantiles"][0]["lower"] is None


def test_the_reference_librarys_bytes_are_read_as_the_package_reads_them() -> None:
    weights, means = np.array([1.0, 40.0, 9.0, 1.0]), np.array([-2.5, 0.25, 7.0, 11.5])
    pairs = np.stack([weights, means], axis=1)
    large = struct.pack(">idddi", 1, -2.5, 11.5, 50.0, 4) + pairs.astype(">f8").tobytes()
    small = struct.pack(">iddfhhh", 2, -2.5, 11.5, 50.0, 0, 0, 4) + pairs.astype(">f4").tobytes()
    for data in (large, small):
        read, peer = TDigest.from_bytes(data), datasketches.tdigest_double.deserialize(data)
        assert (read.n, read.k, read.quantiles([0, 1])) == (51, 50, [-2.5, 11.5])
        assert read.to_bytes() == peer.serialize() and read.rank(3.0) == pytest.approx(peer.get_rank(3.0))
        groups = TDigestGroups(2, k=50)
        groups.merge([1, 0, 1], [data, None, TDigest(50).update([1.0]).to_bytes()])
        assert [groups[0].n, groups[1].n] == [0, 52]
        for broken in (data[:-1], data[:20], data[:3] + b"\3" + data[4:], data + b"\0"):
            with pytest.raises(SketchError, match="not a sketch"):
                TDigest.from_bytes(broken)
    half = struct.pack(">idddi", 1, 1.0, 2.0, 50.0, 1) + struct.pack(">dd", 1.5, 1.0)
    with pytest.raises(SketchError, match="whole number"):
        TDigest.from_bytes(half)
    empty = struct.pack(">idddi", 1, np.inf, -np.inf, 50.0, 0)
    assert TDigest.from_bytes(empty) == TDigest(50)


def test_what_a_digest_answers_doesnt_depend_on_when_it_is_asked() -> None:
    queried, quiet = TDigest(50), TDigest(50)
    for part in np.array_split(VALUES, 23):
        queried.update(part)
        queried.quantile(0.5), queried.to_bytes(), queried.rank(1.0)
        quiet.update(part)
    assert queried == quiet == TDigest(50).update(VALUES)


def test_wrong_use_is_named() -> None:
    image = bytearray(TDigest(200).update(VALUES).to_bytes())
    image[3:5] = (10).to_bytes(2, "little")
    for attempt, words in (
        (lambda: TDigest().quantile(0.5), "empty"),
        (lambda: TDigest().update([1.0]).quantile(2), "from 0 to 1"),
        (lambda: TDigest(5), "k must"),
        (lambda: TDigest().merge(None), "can't take in"),
        (lambda: TDigest.from_bytes(bytes(image)), "more clusters"),
    ):
        with pytest.raises(SketchError, match=words):
            attempt()
    assert "empty" in repr(TDigest())


def test_weights_beyond_any_count_are_refused() -> None:
    sketch = TDigest(10).update(np.arange(100.0))
    with pytest.raises(SketchError, match=r"2\^53"):
        for _ in range(60):
            sketch.merge(sketch)
    assert 1 << 52 <= sketch.n < 1 << 53 and 45 < sketch.quantile(0.5) < 55
