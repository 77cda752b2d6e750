"""Runs of items sorted in place: in any order, and as sorted runs one after another."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from streamgauge.sketches.core.compilation.jit import lean
from streamgauge.sketches.core.sorting.sort import sort


@lean
def sort_in(run: Any, scratch: Any, top: Any) -> None:
    sort(run, scratch, top)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["f8", "i8"])
def test_a_run_is_sorted_however_many_sorted_ones_it_consists_of(dtype: str) -> None:
    rng = np.random.default_rng(3)
    for n in (0, 1, 8, 9, 64, 65, 200, 700):
        for runs in (1, 2, 3, 4, 7, 8, 12, n):
            given = (rng.normal(size=n) * 50).astype(dtype)  # equal ones among the whole numbers
            cuts = np.sort(rng.integers(0, n + 1, max(runs, 1) - 1))
            run = np.concatenate([np.sort(part) for part in np.split(given, cuts)])
            memory = np.full(2 * n + 256 + 20, 7, dtype)
            sort_in(run, memory[10:-10], given.max(initial=0))
            assert (run == np.sort(given)).all(), (n, runs)
            assert (memory[:10] == 7).all() and (memory[-10:] == 7).all(), (n, runs)
