"""Rows get the same groups whether or not their keys are found among the recent ones."""

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgauge.operators.grouping import group_index, recent_groups
from streamgauge.operators.grouping.arrow_columns import arrow_column
from streamgauge.operators.grouping.group_index import GroupIndex

STARTS = st.sampled_from([0, 60, -60, -(2**62), -(2**63), 2**62])
TEXTS = [
    "",
    "a",
    "a\0",
    "\0",
    "b",
    "fourteen bytes",
    "fifteen bytes !",
    "sixteen bytes !!",
    "x" * 40,
    "é" * 7,
]
KEYS = {
    pa.int64(): st.sampled_from([0, -1, 1, 60, -60, 2**63 - 1, -(2**63)]),
    pa.uint64(): st.sampled_from([0, 1, 2**64 - 1, 2**63]),
    pa.int8(): st.integers(-3, 3),
    pa.string(): st.sampled_from(TEXTS),
    pa.large_string(): st.sampled_from(TEXTS),
    pa.float64(): st.sampled_from([0.0, 1.5]),
    pa.bool_(): st.booleans(),
}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(group_index, "_BLOCK", 7)
    monkeypatch.setattr(recent_groups, "_FEW", 3)
    monkeypatch.setattr(recent_groups, "_PAUSE", 2)


@pytest.mark.parametrize("kind", KEYS, ids=str)
@settings(max_examples=60)
@given(data=st.data())
def test_groups_are_numbered_by_first_row(kind, data) -> None:
    nullable = data.draw(st.booleans())
    own = st.one_of(st.none(), KEYS[kind]) if nullable else KEYS[kind]
    batches = data.draw(st.lists(st.lists(st.tuples(STARTS, own), max_size=40), max_size=6))
    index, known = GroupIndex(), {}
    for batch in batches:
        starts = np.array([start for start, _ in batch], np.int64)
        key = pa.array([value for _, value in batch], kind)
        expected = [known.setdefault(row, len(known)) for row in batch]
        assert index.number(starts, [key]).tolist() == expected
    assert list(zip(index.starts().tolist(), index.keys([kind])[0].to_pylist())) == list(known)


def test_more_groups_than_are_remembered_are_numbered_too(monkeypatch) -> None:
    monkeypatch.setattr(group_index, "_BLOCK", 1_000)
    monkeypatch.setattr(recent_groups, "_MISSES", 10**9)
    rng, index, known = np.random.default_rng(1), GroupIndex(), {}
    for _ in range(20):
        keys = np.minimum(rng.zipf(1.2, 5_000), 20_000)
        expected = [known.setdefault(key, len(known)) for key in keys.tolist()]
        assert index.number(np.zeros(len(keys), np.int64), [pa.array(keys)]).tolist() == expected
    assert len(known) > 2 << recent_groups._LG_SETS


@pytest.mark.parametrize(
    "batches",
    [
        [[1, 2] * 3, [1, 2, 3] * 2, [3, 2, 1] * 2],
        [["a", "b"] * 3, ["a", "b", "c"] * 2, ["c", "b", "a"] * 2],
    ],
)
def test_only_rows_with_unknown_groups_are_hashed(batches, monkeypatch) -> None:
    hashed = []
    original = GroupIndex._number

    def counted(self, starts, keys):
        hashed.append(len(starts))
        return original(self, starts, keys)

    monkeypatch.setattr(GroupIndex, "_number", counted)
    index, starts = GroupIndex(), np.zeros(6, np.int64)
    for keys in batches:
        index.number(starts, [arrow_column(pl.Series(keys))])
    assert hashed == [6, 2]
