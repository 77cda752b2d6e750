"""Sets of rows become one row each, as if all had been merged; rows alone keep their bytes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.operators.definition.aggregate import Aggregate
from streamgauge.operators.definition.aggregates import count, distinct, kll_quantiles, sum, top_k
from streamgauge.operators.table.row_sets import RowSets
from streamgauge.sketches.core.protocol import SketchError

AGGREGATES = {"count": count(), "sum": sum("x"), "distinct": distinct("x"), "kll": kll_quantiles("x")}
SETS = {"some": [2, 0, 1, 2, 3, 2, 0], "none": [2, 0, 1, 3], "all": [1, 0, 1, 0, 0], "no rows": []}


def sketched(aggregate: Aggregate, rows: int) -> pa.Array:
    """A column in which row i has the values i, i + 1 … 2 i."""
    groups = aggregate.groups(rows, seed=1)
    numbers = np.repeat(np.arange(rows), np.arange(rows) + 1)
    values = np.concatenate([np.arange(i, 2 * i + 1) for i in range(rows)] or [[]])
    groups.update(numbers, *([] if aggregate.column is None else [values.astype(np.float64)]))
    return groups.to_arrow()


@pytest.mark.parametrize("name", AGGREGATES)
@pytest.mark.parametrize("sets", SETS)
def test_sets_answer_as_if_all_their_rows_had_been_merged(name: str, sets: str) -> None:
    aggregate, numbers = AGGREGATES[name], np.array(SETS[sets], np.int64)
    column = sketched(aggregate, len(numbers))
    row_sets = RowSets(numbers)
    merged, wanted = (aggregate.groups(len(row_sets), seed=1) for _ in range(2))
    wanted.merge(numbers, column)
    result = row_sets.merge(aggregate, column, seed=1)
    merged.merge(np.arange(len(row_sets)), result)
    assert result.type == column.type and list(merged.answers()) == list(wanted.answers())
    assert row_sets.firsts.tolist() == [SETS[sets].index(own) for own in range(len(row_sets))]
    for own in range(len(row_sets)):
        if SETS[sets].count(own) == 1:
            assert result[own] == column[SETS[sets].index(own)]


def test_columns_of_nested_types_are_merged() -> None:
    aggregate = top_k("x")
    groups = aggregate.groups(3)
    groups.update(np.array([0, 1, 2, 2]), pa.array(["a", "b", "c", "c"]))
    column = RowSets(np.array([0, 1, 1])).merge(aggregate, groups.to_arrow())
    answers = aggregate.groups(2)
    answers.merge(np.arange(2), column)
    assert [[item["item"] for item in answer] for answer in pa.array(answers.answers()).to_pylist()] == [
        ["a"],
        ["c", "b"],
    ]


def test_bytes_to_merge_that_are_no_sketches_are_refused() -> None:
    column = pa.array([b"", b"no sketch", b"no sketch"], pa.binary())
    with pytest.raises(SketchError, match="HLL"):
        RowSets(np.array([0, 1, 1])).merge(distinct("x"), column)
