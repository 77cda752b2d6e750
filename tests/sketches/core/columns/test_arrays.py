"""NumPy's times, whole or refused: what Arrow and NumPy would cut or wrap around silently."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from streamgauge.sketches.core.columns.arrays import as_array
from streamgauge.sketches.core.columns.columns import as_values


@pytest.mark.parametrize("dtype", ["M8[D]", "M8[Y]", "M8[100ms]", "m8[W]", "m8[7h]", "M8[1500ps]"])
def test_times_that_int64_does_not_hold_are_refused(dtype: str) -> None:
    for count in (2**62, -(2**62)):
        with pytest.raises(ValueError, match="too far off"):
            as_array(np.array([0, count], dtype))


@pytest.mark.parametrize("dtype", ["m8", "m8[M]", "m8[3Y]", "M8"])
def test_times_without_a_length_are_refused(dtype: str) -> None:
    with pytest.raises(TypeError, match=r"have no length; cast them to [mM]8\[s\] or finer"):
        as_array(np.array([5], "i8").view(dtype))
    assert as_array(np.array(["NaT"], dtype)).null_count == 1


def test_numbers_beside_lengths_of_time_are_refused() -> None:
    with pytest.raises(TypeError, match="expected a column of one type"):
        as_values([np.timedelta64(3, "s"), 1.5])


def test_times_in_records_and_lists_keep_their_values() -> None:
    day, later = date(2026, 7, 1), datetime(2026, 7, 1, 5)
    tenth = np.datetime64(7, "100ms")
    given: list[Any] = [
        {"day": day, "at": later, "times": [day, later], "tenth": tenth, "none": None},
        None,
        {"day": day, "at": later, "times": None, "tenth": None, "none": None},
    ]
    first = {
        "day": day,
        "at": later,
        "times": [datetime(2026, 7, 1), later],
        "tenth": datetime(1970, 1, 1, 0, 0, 0, 700_000),
        "none": None,
    }
    assert as_array(given).to_pylist() == [first, None, {**first, "times": None, "tenth": None}]
    assert as_array([np.array([3, 4], "M8[100ms]"), None]).to_pylist() == [
        [datetime(1970, 1, 1, 0, 0, 0, 300_000), datetime(1970, 1, 1, 0, 0, 0, 400_000)],
        None,
    ]
    for beside in (timedelta(1), datetime(2026, 7, 1)):
        with pytest.raises(TypeError, match="expected a column of one type"):
            as_array([beside, np.timedelta64(3, "100ms"), None])


def test_only_the_index_that_pandas_adds_is_left_out() -> None:
    frame = pd.DataFrame({"user": ["ann", "bob"], "__index_level_0__": [7, 8]})
    assert as_array(frame).to_pylist()[0] == {"user": "ann", "__index_level_0__": 7}
    table = pa.table({"user": ["ann"], "__index_level_0__": [7]})
    assert as_array(table).to_pylist() == [{"user": "ann", "__index_level_0__": 7}]
    kept = pa.Table.from_pandas(frame[["user"]][frame["user"] == "bob"])
    assert as_array(kept).to_pylist() == as_array(kept.to_batches()[0]).to_pylist() == [{"user": "bob"}]
