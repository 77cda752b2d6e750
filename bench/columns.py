"""The columns that kernels and engines are measured on: the same values in every process."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

ROWS = 20_000_000
TEXTS = 5_000_000
GROUPS = 1000
SLICES = 20
"""Slices of equal length, each of distinct values of its own, for errors over many draws."""


def columns() -> pa.Table:
    """v: distinct int64; k: one of 1,000 groups; x: lognormal doubles; b: the slice, int8."""
    rng = np.random.default_rng(0)
    return pa.table(
        {
            "v": rng.integers(0, 1 << 62, ROWS),
            "k": rng.integers(0, GROUPS, ROWS),
            "x": rng.lognormal(0, 1, ROWS),
            "b": np.repeat(np.arange(SLICES, dtype=np.int8), ROWS // SLICES),
        }
    )


def texts() -> pa.Array:
    """Strings of 10 bytes, about a million different ones."""
    numbers = pa.array(np.random.default_rng(1).integers(0, 1_000_000, TEXTS)).cast(pa.string())
    return pc.binary_join_element_wise("user", pc.utf8_lpad(numbers, 6, "0"), "")
