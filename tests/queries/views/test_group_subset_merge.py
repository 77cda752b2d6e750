"""Few groups merged at once are what merging their windows one by one, in the tree of windows, gives."""

from __future__ import annotations

import random
from functools import cache

import numpy as np
import polars as pl
import pytest

from streamgauge.operators.table.query import query
from streamgauge.queries.views.group_subset_merge import GroupSubset, hashes_of, pieces
from streamgauge.queries.views.merge_cache import Deadline, MergeCache, Selection
from streamgauge.queries.views.view import TableView

from ..logs import STREAM, Fed, deltas, messages, rows


@cache
def posts_view() -> TableView:
    return Fed(partitions=2).feed(messages(deltas(rows(seed=7, minutes=23)), 2)).table.view()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_few_groups_are_those_of_the_whole_tree(seed: int) -> None:
    """Any windows, with gaps between them, closed and open, of both partitions of the log."""
    chance = random.Random(seed)
    columns = tuple(name for name in STREAM.aggregates if name != "ranks")  # KLL draws random numbers
    wanted = Selection(columns, ("lang",), () if seed % 2 else (("lang", ("en", None)),))
    windows = [window for window in posts_view().windows if chance.random() < (0.4, 0.9, 1.1)[seed % 3]]
    langs = pl.DataFrame({"lang": chance.sample(["en", "de", "", None], chance.randrange(1, 5))})
    langs = langs.cast({"lang": pl.String})
    whole = MergeCache().table(posts_view().schema, windows, wanted, "span")
    result = MergeCache().few(posts_view().schema, windows, wanted, langs, Deadline())
    answered = query(whole).join(langs, on="lang", how="semi", nulls_equal=True)
    assert query(result).equals(answered)


def test_rows_of_chosen_groups_are_found_by_both_halves_of_their_hashes() -> None:
    keys = pl.DataFrame({"a": [f"k{n % 700}" for n in range(5_000)], "b": range(5_000)})
    table = keys.with_columns(b=pl.col("b") % 3).to_arrow()
    chosen = table.take([4, 17, 4_000])
    at = GroupSubset(hashes_of(chosen, ["a", "b"])).among(hashes_of(table, ["a", "b"]))
    groups = set(zip(chosen["a"].to_pylist(), chosen["b"].to_pylist()))
    rows_of = zip(table["a"].to_pylist(), table["b"].to_pylist())
    assert at.tolist() == [row for row, group in enumerate(rows_of) if group in groups]


def test_pieces_are_aligned_and_cover_all() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        numbers = np.unique(rng.integers(-40, 200, rng.integers(1, 60)))
        result = list(pieces(numbers))
        assert [at for _, _, first, last in result for at in range(first, last)] == list(range(len(numbers)))
        assert all(low % size == 0 and size & (size - 1) == 0 for low, size, _, _ in result)
