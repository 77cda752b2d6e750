"""Columns of lists that are computed for some rows only."""

from __future__ import annotations

import polars as pl

TEXTS = pl.List(pl.String)


def empty_lists(length: int) -> pl.Series:
    """Return a number of empty lists of texts."""
    return pl.Series([[]], dtype=TEXTS).new_from_index(0, length)


def replace_lists(lists: pl.Series, rows: pl.Series, others: pl.Series) -> pl.Series:
    """Replace lists in some rows by others.

    >>> replace_lists(empty_lists(3), pl.Series([1], dtype=pl.UInt32), pl.Series([["a"]])).to_list()
    [[], ['a'], []]
    """
    # Polars can't scatter lists: the replacements are appended, then all are gathered.
    end = len(lists) + len(others)
    places = pl.arange(0, len(lists), dtype=pl.UInt32, eager=True)
    places = places.scatter(rows, pl.arange(len(lists), end, dtype=pl.UInt32, eager=True))
    return pl.concat([lists, others]).gather(places)
