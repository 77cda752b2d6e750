"""Groups of rows by the pane that each is in: the same however their numbers are found."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from streamgauge.operators.definition.aggregates import count, sum
from streamgauge.operators.sketching import panes as module
from streamgauge.operators.sketching.panes import Panes
from streamgauge.operators.table.schema import table_schema
from streamgauge.operators.windows.hopping import Hopping
from streamgauge.operators.windows.paned import Paned
from streamgauge.operators.windows.tumbling import Tumbling

MINUTE = 60_000_000
SCHEMA = table_schema({"x": pa.int64()}, {"n": count(), "total": sum("x")}, None)


def table(window: Paned, batches: list[np.ndarray]) -> Any:
    panes = Panes(SCHEMA, window)
    for times in batches:
        panes.add(pl.DataFrame({"x": np.arange(len(times))}), times)
    return panes.drain()


@pytest.mark.parametrize("window", [Tumbling.every("1m"), Hopping.of("5m", "1m")])
@pytest.mark.parametrize("spread", [1, 2, 3, 7, 8, 9, 40])
def test_few_panes_are_numbered_as_many_are(window: Paned, spread: int, monkeypatch) -> None:
    rng = np.random.default_rng(spread)
    batches = [rng.integers(-MINUTE, (spread - 1) * MINUTE, rng.integers(1, 50)) for _ in range(20)]
    batches.append(np.array([MINUTE * spread, 0, MINUTE * spread]))  # those between have no row
    result = table(window, batches)
    monkeypatch.setattr(module, "_FEW", 0)
    assert table(window, batches).equals(result)


def test_a_kind_whose_windows_begin_elsewhere_is_asked_where(monkeypatch) -> None:
    class Shifted(Tumbling):
        def pane_start(self, time_us: int) -> int:
            return super().pane_start(time_us - 7) + 7

        def pane_starts(self, times_us: np.ndarray) -> np.ndarray:
            return super().pane_starts(times_us - 7) + 7

    window = Shifted(MINUTE, MINUTE)
    assert window.panes(7, MINUTE + 7) is None
    panes = Panes(SCHEMA, window)
    panes.add(pl.DataFrame({"x": [1, 2, 3]}), np.array([6, 7, MINUTE + 7]))
    assert panes.drain()["n"].to_pylist() == [1, 1, 1]
