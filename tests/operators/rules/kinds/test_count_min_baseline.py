"""Hashed means and variances against each key's own."""

from __future__ import annotations

import random

import pytest

from streamgauge.operators.rules.kinds.count_min_baseline import HashedMoments


def test_a_key_by_itself_has_its_own_mean_and_variance() -> None:
    dice, cells = random.Random(1), HashedMoments()
    mean = variance = 0.0
    for _ in range(200):
        value = dice.randrange(9)
        cells.learn({"a": value, "b": 100}, 0.05)
        difference = value - mean
        mean += 0.05 * difference
        variance = 0.95 * (variance + 0.05 * difference * difference)
        cells = HashedMoments.of_text(cells.text())
    assert cells.usual("a") == pytest.approx((mean, variance), rel=1e-4)
    cells.fade(30, 0.05)
    assert cells.usual("a").mean == pytest.approx(mean * 0.95**30, rel=1e-3)
    cells.fade(10**9, 0.05)
    assert cells.usual("b").mean < 1e-9


def test_cells_never_take_a_key_for_rarer_than_it_is() -> None:
    dice, cells, keys = random.Random(2), HashedMoments(), [f"k{n}" for n in range(3_000)]
    own = dict.fromkeys(keys, 0.0)
    for _ in range(30):
        window = {key: float(dice.randrange(5)) for key in keys}
        cells.learn(window, 0.1)
        own = {key: own[key] + 0.1 * (window[key] - own[key]) for key in keys}
    assert all(cells.usual(key).mean >= own[key] - 1e-3 for key in keys)
