"""Flatten lists to their elements with row numbers; this is the only place that does so.

A null list may still span values: that is valid Arrow, and results from Polars' `pl.when(…).then(list)`, from
masks, and for the fields of a null struct. Those values belong to no row. Arrow's `list_flatten` leaves them
out while its `list_parent_indices` counts them, so the two must never be used together.
"""

from __future__ import annotations

from ..lazy import np, pa, pc


def elements(lists: pa.Array) -> tuple[pa.Array, np.ndarray]:
    """Return the elements of all lists that are not null, in order, with their rows (int64, ascending).

    >>> whole = pa.array([[1, 2], [3], [4]])
    >>> gap = pa.ListArray.from_arrays(whole.offsets, whole.values, mask=pa.array([False, True, False]))
    >>> items, rows = elements(gap)
    >>> items.to_pylist(), rows.tolist()
    ([1, 2, 4], [0, 0, 2])
    """
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    return pc.list_flatten(lists), np.repeat(np.arange(len(lists)), lengths)
