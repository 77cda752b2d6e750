"""Columns of lists that are made for some of the rows only."""

from __future__ import annotations

import polars as pl

TEXTS = pl.List(pl.String)


def empty_lists(length: int) -> pl.Series:
    """So many lists without texts."""
    return pl.Series([[]], dtype=TEXTS).new_from_index(0, length)


def replace_lists(lists: pl.Series, rows: pl.Series, others: pl.Series) -> pl.Series:
    """The lists, in whose rows of these numbers are the others.

    >>> replace_lists(empty_lists(3), pl.Series([1], dtype=pl.UInt32), pl.Series([["a"]])).to_list()
    [[], ['a'], []]
    """
    # Polars scatters no lists: they are gathered from behind the others.
    end = len(lists) + len(others)
    places = pl.arange(0, len(lists), dtype=pl.UInt32, eager=True)
    places = places.scatter(rows, pl.arange(len(lists), end, dtype=pl.UInt32, eager=True))
    return pl.concat([lists, others]).gather(places)
