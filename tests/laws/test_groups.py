"""Many groups at once are so many single sketches."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.sketches.core.protocol import SketchError

from .families import CASES, FAMILIES, IDS, Family
from .family import each_family
from .streams import fresh, rows_of, values_of

N = 7


def shared_out(family: Family, kind: str, rows: int = 1400) -> tuple[pa.Array, np.ndarray]:
    """A column and the group of each of its rows: the last group gets none, the first most."""
    return fresh(kind, 11, rows), np.minimum(np.random.default_rng(5).zipf(1.5, rows) - 1, N - 2)


@each_family(("family", "kind"), CASES, ids=IDS)
def test_groups_equal_singles(family: Family, kind: str) -> None:
    column, numbers = shared_out(family, kind)
    groups = family.many(2, kind)
    groups.resize(N)
    for start in range(0, len(column), 333):
        rows = slice(start, start + 333)
        family.feed_groups(groups, numbers[rows].astype(np.int32), column[rows], start)
    assert len(groups) == N and len(groups.to_arrow()) == N
    for group in range(N):
        own = np.flatnonzero(numbers == group)
        values = column.take(pa.array(own))
        sketch = groups[group]
        assert family.promise(sketch, values.to_pylist()) <= (1.0 if family.confidence == 1.0 else 2.0)
        assert groups.to_arrow()[group].as_py() == sketch.to_bytes()
        if not family.seeded and family.cut:
            assert family.new(kind).update(values, **family.inputs(own)).to_bytes() == sketch.to_bytes()
    answers = groups.answers()
    answers = answers.to_pylist() if isinstance(answers, pa.Array) else answers
    assert answers == [groups[group].answer() for group in range(N)]


@each_family(("family", "kind"), CASES, ids=IDS)
def test_one_group_is_a_single(family: Family, kind: str) -> None:
    column = fresh(kind, 12, 2000)
    groups = family.many(1, kind, seed=4)
    family.feed_groups(groups, np.zeros(len(column), np.uint8), column)
    single = family.feed(family.new(kind, seed=4), column)
    if family.cut:
        assert groups[0].to_bytes() == single.to_bytes()
    assert family.promise(groups[0], column.to_pylist()) <= (1.0 if family.confidence == 1.0 else 2.0)


@each_family(("family", "kind"), CASES, ids=IDS)
def test_groups_merge_as_singles_do(family: Family, kind: str) -> None:
    column, numbers = shared_out(family, kind)
    parts = [family.many(N, kind, seed=seed) for seed in (1, 2, 3)]
    for part, start in zip(parts, (0, 400, 900)):
        rows = slice(start, start + 500)
        family.feed_groups(part, numbers[rows], column[rows], start)
    merged = family.many(N, kind, seed=9)
    images = pa.concat_arrays([part.to_arrow() for part in parts] + [pa.nulls(2, pa.binary())])
    merged.merge(np.append(np.tile(np.arange(N), 3), [0, 1]), images)
    for group in range(N):
        singles = [part[group] for part in parts]
        expected = family.new(kind, 9).merge(singles[0]).merge(singles[1]).merge(singles[2])
        if family.order and not (family.seeded and expected.n == 0):
            # What saw nothing keeps a random state of its own.
            assert merged[group].to_bytes() == expected.to_bytes()
        else:
            reported = 40 if family.repeats else 12
            assert str(merged[group])[:reported] == str(expected)[:reported]


@each_family(
    ("family", "kind", "column"),
    [
        pytest.param(family, kind, column, id=f"{family}-{kind}-{name}")
        for family in FAMILIES
        for name, kind, column in family.columns()
        if name in ("nulls", "sliced", "chunked", "dictionary", "lists", "zero-length", "NaN", "unicode")
    ],
)
def test_groups_are_given_by_row(family: Family, kind: str, column: pa.Array) -> None:
    numbers = np.arange(len(column)) % 3
    groups = family.many(3, kind)
    family.feed_groups(groups, numbers, column)
    values, rows = values_of(column), rows_of(column)
    for group in range(3):
        own = [value for value, row in zip(values, rows) if row % 3 == group]
        assert family.promise(groups[group], own) <= (1.0 if family.confidence == 1.0 else 2.0)


@pytest.mark.parametrize("family", FAMILIES, ids=str)
def test_wrong_group_numbers_are_refused_and_change_nothing(family: Family) -> None:
    kind = family.kinds[0]
    column = fresh(kind, 1, 4)
    groups = family.many(3, kind)
    before = groups.to_arrow()
    for numbers in ([0, 1, 2, 3], [0, -1, 0, 0], [0, 1, 2, 2**40]):
        with pytest.raises(IndexError):
            family.feed_groups(groups, np.array(numbers), column)
        with pytest.raises(IndexError):
            groups.merge(np.array(numbers), pa.concat_arrays([before, before.slice(0, 1)]))
    for short in ([0, 1], [0.0, 1.0, 2.0, 0.0]):
        with pytest.raises((ValueError, IndexError)):
            family.feed_groups(groups, np.array(short), column)
    assert groups.to_arrow().equals(before)
    with pytest.raises(IndexError):
        groups[3]


@pytest.mark.parametrize("family", FAMILIES, ids=str)
def test_a_column_of_something_else_is_refused(family: Family) -> None:
    kind = family.kinds[0]
    stranger = next(other for other in FAMILIES if other.single is not family.single)
    groups = family.many(2, kind)
    strange = stranger.feed(stranger.new(stranger.kinds[0]), fresh(stranger.kinds[0], 1, 10)).to_bytes()
    for column in ([strange], [b""], [b"\0"], [b"nonsense" * 9]):
        with pytest.raises(SketchError):
            groups.merge(np.zeros(1, int), pa.array(column, pa.binary()))
