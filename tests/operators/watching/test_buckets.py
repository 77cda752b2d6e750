"""Histograms that add up."""

from __future__ import annotations

import random

import pytest

from streamgauge.operators.watching.buckets import Buckets


def test_parts_add_up_to_the_whole() -> None:
    values = [random.Random(7).lognormvariate(0, 2) for _ in range(500)]
    whole, parts = Buckets.upto(0.1, 1.0, 10.0), [Buckets.upto(0.1, 1.0, 10.0) for _ in range(3)]
    for at, value in enumerate(values):
        whole = whole.with_value(value)
        parts[at % 3] = parts[at % 3].with_value(value)
    added = parts[0] + parts[1] + parts[2]
    assert added.counts == whole.counts and added.total == pytest.approx(sum(values))
    assert dict(added.cumulative) == {b: sum(v <= b for v in values) for b in (0.1, 1.0, 10.0, float("inf"))}


def test_other_bounds_are_refused() -> None:
    with pytest.raises(ValueError, match="can't be added"):
        Buckets.upto(1.0) + Buckets.upto(2.0)
