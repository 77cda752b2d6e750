"""VarOpt behind the protocol: sums of subsets within their bounds, and the package's faults kept away."""

from __future__ import annotations

import datasketches
import numpy as np
import pytest

from streamgauge.sketches.core.protocol import SketchError
from streamgauge.sketches.stored.var_opt import VarOpt

WEIGHTS = np.random.default_rng(3).lognormal(0, 1.5, 4000)


def test_sums_of_subsets_lie_within_their_bounds() -> None:
    inside, errors = [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        weights = rng.permutation(WEIGHTS)
        sample = VarOpt(150, "long")
        for part in np.array_split(np.arange(4000), 3):
            sample.merge(VarOpt(150, "long").update(part, weight=weights[part]))
        for share in (3, 10):
            result = sample.subset_sum(lambda item, share=share: item % share == 0)
            true = weights[::share].sum()
            inside.append(result.lower <= true <= result.upper)
            errors.append((result.estimate - true) / weights.sum())
            assert result.total == pytest.approx(weights.sum())
        assert sample.bounds() == pytest.approx((weights.sum(), weights.sum()), rel=0.05)
    assert np.mean(inside) >= 0.9
    assert abs(np.mean(errors)) < 3.5 * np.std(errors) / np.sqrt(len(errors)), "biased"


def test_a_full_sample_from_bytes_goes_on() -> None:
    # The package itself fails on the next update: "invariant violated when growing candidate set".
    sample = VarOpt(20, "double").update(np.arange(500.0), weight=WEIGHTS[:500])
    again = VarOpt.from_bytes(sample.to_bytes(), "double").update(
        np.arange(500.0, 900.0), weight=WEIGHTS[500:900]
    )
    assert again.n == 900 and len(again) == 20
    assert again.subset_sum(lambda item: True).total == pytest.approx(WEIGHTS[:900].sum())


@pytest.mark.parametrize(("k", "weight", "ties"), [(50, 1 / 3, 5), (80, 0.1, 3)])
def test_items_as_heavy_as_the_reservoirs_are_no_fault(k: int, weight: float, ties: int) -> None:
    # k such weights add up to a rounding too much: the package mistook its own sample for a broken one.
    rows = np.arange(3000)
    weights = weight * (1 + rows % ties)
    sample = VarOpt(k, "long").update(rows, weight=weights)
    assert (sample.n, sample.k, len(sample)) == (3000, k, k)
    assert sample.subset_sum(lambda item: True).total == pytest.approx(weights.sum())
    again = VarOpt.from_bytes(sample.to_bytes(), "long").merge(VarOpt(k, "long").update(rows, weights))
    assert again.n == 6000
    assert again.subset_sum(lambda item: True).total == pytest.approx(2 * weights.sum())


def test_strings_are_counted_in_bytes() -> None:
    # The package's own format counts characters, and writes none beyond Latin-1.
    sample = VarOpt(3).update(["é", "日本語", "🦆", "plain"], weight=[3.0, 9.0, 2.0, 1.0])
    assert "日本語" in sample.values().to_pylist() and sample.copy() == sample
    peer = datasketches.var_opt_sketch(4)
    for item in ("a", "bc", ""):
        peer.update(item, 2.0)
    image = peer.serialize(datasketches.PyStringsSerDe())
    assert sorted(VarOpt.from_bytes(image, "string").values().to_pylist()) == ["", "a", "bc"]


def test_wrong_use_is_named() -> None:
    for k in (0, 1 << 21):
        with pytest.raises(SketchError, match="k must be"):
            VarOpt(k)
    with pytest.raises(SketchError, match="kind"):
        VarOpt(5, "binary")
    for weight in (-1.0, float("nan"), float("inf"), [1.0, None]):
        with pytest.raises(ValueError, match="weights must be"):
            VarOpt(5, "long").update([1, 2], weight=weight)
    with pytest.raises(SketchError, match="can't take"):
        VarOpt(5, "string").update([1])
    with pytest.raises(SketchError, match="int64"):
        VarOpt(5, "long").update([2**63])
    assert VarOpt(5, "long").update([1, None, 3], weight=[0.0, 1.0, 2.0]).values().to_pylist() == [3]
    # An image may request any memory: k is read before anything is allocated.
    image = bytearray(VarOpt(5, "long").update([1, 2]).to_bytes())
    image[0], image[7] = image[0] & 63, 0x7F
    with pytest.raises(SketchError, match="k must lie"):
        VarOpt.from_bytes(bytes(image), "long")
