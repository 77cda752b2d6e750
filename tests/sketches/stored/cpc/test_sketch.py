"""CPC against the package's own sketches, in every state from empty to a window that has moved."""

from __future__ import annotations

import datasketches
import numpy as np
import pytest

from streamgauge.sketches.core.protocol import SketchError
from streamgauge.sketches.hll import HLL
from streamgauge.sketches.stored.cpc import CPC
from streamgauge.sketches.stored.cpc.images import image_fault

SHARES = (0.01, 0.09, 0.1, 0.3, 0.49, 0.5, 0.7, 1, 1.3, 1.6, 1.9, 2.2, 2.3, 2.4, 3, 3.4, 5, 9, 20, 100, 1000)


@pytest.mark.parametrize("lg_k", [4, 5, 8, 11])
def test_every_image_that_the_package_writes_is_found_sound(lg_k: int) -> None:
    rng = np.random.default_rng(lg_k)
    for share in SHARES:
        n = int(share * (1 << lg_k))
        peer, finer = datasketches.cpc_sketch(lg_k), datasketches.cpc_sketch(lg_k + 1)
        for value in rng.integers(0, 1 << 62, n).tolist():
            peer.update(value)
            finer.update(value + 1 if value % 3 else value)
        union = datasketches.cpc_union(lg_k)
        union.update(peer)
        union.update(finer)
        for image in (peer.serialize(), union.get_result().serialize()):
            assert image_fault(image) == "", (share, n)
            assert CPC.from_bytes(image).to_bytes() == image


def test_values_are_hashed_as_everywhere() -> None:
    # The package itself takes negative integers for doubles.
    for values in (
        -np.arange(1 << 60, (1 << 60) + 3000),
        np.array([2**64 - 1 - i for i in range(3000)], np.uint64),
    ):
        lower, upper = HLL(14).update(values).bounds(3)
        assert lower < CPC(14).update(values).estimate() < upper
    assert CPC().update([1.0, -0.0, 0.0, float("nan"), float("nan")]).estimate() == pytest.approx(3, abs=0.01)
    assert CPC().update(["a", "", None, "a"]).estimate() == pytest.approx(1, abs=0.01)


def test_an_empty_image_counts_on() -> None:
    # The package's own forgets where its estimator starts, and counts to infinity.
    sketch = CPC.from_bytes(CPC(11).to_bytes()).update(np.arange(5000))
    assert sketch == CPC(11).update(np.arange(5000))


def test_registers_that_the_bits_do_not_make_are_refused() -> None:
    image = CPC(6).update(np.arange(500)).to_bytes()
    at = 16  # kxp, before the numbers of words as there are table and window
    for kxp, estimate in ((0.0, 500.0), (64.0, 500.0), (float("nan"), 500.0)):
        broken = image[:at] + np.array([kxp, estimate]).tobytes() + image[at + 16 :]
        with pytest.raises(SketchError, match="kxp"):
            CPC.from_bytes(broken)
    for estimate in (1.0, 1e12, float("nan"), -5.0):
        broken = image[: at + 8] + np.array([estimate]).tobytes() + image[at + 16 :]
        with pytest.raises(SketchError, match="can't have given"):
            CPC.from_bytes(broken)


def test_wrong_use_is_named() -> None:
    with pytest.raises(SketchError, match="4 to 26"):
        CPC(3)
    with pytest.raises(TypeError, match="binary"):
        CPC().update([b"a"])
    with pytest.raises(ValueError, match="1, 2 or 3"):
        CPC().bounds(4)
