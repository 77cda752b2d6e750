"""Rows by group, against NumPy's stable sort."""

import numpy as np
import pytest

from streamgauge.sketches.core.groups.group_order import by_group, is_scattered


@pytest.mark.parametrize("dtype", [np.int64, np.float64, np.uint32, np.float32])
def test_values_come_in_the_order_of_their_groups_each_groups_in_its_own(dtype):
    rng = np.random.default_rng(1)
    groups, values = rng.integers(0, 7, 1000) // 2 * 2, rng.integers(0, 100, 1000).astype(dtype)
    ends, ordered = by_group(groups, values, 9)
    assert ordered.dtype == dtype
    assert ordered.tolist() == values[np.argsort(groups, kind="stable")].tolist()
    assert ends.tolist() == np.cumsum(np.bincount(groups, minlength=9)).tolist()


@pytest.mark.parametrize("wrong", [-1, 3, 2**62])
def test_a_group_that_there_is_not_is_named(wrong):
    with pytest.raises(IndexError, match="3 groups"):
        by_group(np.array([0, wrong, 2]), np.arange(3), 3)


def test_ordering_pays_where_groups_alternate_and_have_several_rows():
    assert is_scattered(np.arange(100) % 10, 10)
    assert not is_scattered(np.arange(1000) // 100, 10)
    assert not is_scattered(np.arange(100) % 90, 90)
    assert not is_scattered(np.arange(10) % 2, 2)
