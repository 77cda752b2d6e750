"""Lists are taken apart in one place, and what lies beneath a null list belongs to no row."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.sketches.core.columns.columns import Values, as_values
from streamgauge.sketches.core.columns.lists import elements

ROOT = Path(__file__).resolve().parents[4]
WITHOUT = ("tests", "bench", "build", ".venv")


def test_values_beneath_a_null_list_belong_to_no_row() -> None:
    whole = pa.array([["ann"], ["bob", "bo"], ["cat"], []])
    gap = pa.ListArray.from_arrays(whole.offsets, whole.values, mask=pa.array([False, True, False, True]))
    for lists, shift in ((gap, 0), (gap.slice(1), 1), (pa.concat_arrays([gap.slice(2), gap]), -2)):
        items, rows = elements(lists)
        pairs = [(item, row) for row, some in enumerate(lists.to_pylist()) for item in some or []]
        assert list(zip(items.to_pylist(), rows.tolist())) == pairs, shift


def test_nothing_else_takes_lists_apart() -> None:
    """`list_parent_indices` counts what `list_flatten` drops: beside each other they mix up rows."""
    pattern = re.compile(r"list_parent_indices|value_parent_indices|list_flatten")
    modules = [path for path in ROOT.rglob("*.py") if path.relative_to(ROOT).parts[0] not in WITHOUT]
    using = [path.name for path in modules if pattern.search(path.read_text())]
    assert using == ["lists.py"]


@pytest.mark.parametrize(
    ("rows", "height", "reason"),
    [([0, 1], 2, "got 3 values of 2 rows"), ([0, 1, 2], 2, "0 to 2 of 2"), ([0, -1, 1], 2, "-1 to 1 of 2")],
)
def test_values_of_other_rows_reach_no_kernel(rows: list[int], height: int, reason: str) -> None:
    plain = as_values([1, 2, 3])
    with pytest.raises(ValueError, match=reason):
        Values("int64", plain.numbers, plain.offsets, plain.data, np.array(rows), height)


def test_offsets_beyond_the_bytes_reach_no_kernel() -> None:
    texts = as_values(["a", "bc"])
    with pytest.raises(ValueError, match="bytes 0 to 3 of 2"):
        Values("string", texts.numbers, texts.offsets, texts.data[:2], None)


def test_a_number_a_row_is_one_for_each_row() -> None:
    with pytest.raises(ValueError, match="one number a row, 3 in all, got 2"):
        as_values([1, 2, 3]).per_value(np.zeros(2, np.int64))
