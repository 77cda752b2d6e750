"""Rules that pass rows over by columns say what rules say that see every row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from streamgauge.operators.definition.aggregates import count, distinct, quantiles
from streamgauge.operators.definition.aggregates import max as maximum
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.jsonable import jsonable
from streamgauge.operators.rules.evaluation.rule_engine import RuleEngine, rule_view
from streamgauge.operators.rules.kinds.threshold import Threshold
from streamgauge.operators.rules.row import Row
from streamgauge.operators.rules.rule import Measured
from streamgauge.operators.rules.value_with_bounds import Figure, figure_columns, figure_of
from streamgauge.operators.rules.window_rows import WindowBatch
from streamgauge.operators.table.window_groups import WindowGroups
from streamgauge.operators.testing import StreamTester

ROWS = Stream.from_schema(
    {"at": pl.Int64, "k": pl.String, "zone": pl.Int64, "v": pl.Float64}, time=pl.from_epoch("at")
)
STREAM = (
    ROWS.group_by("k", "zone")
    .tumbling("1m", max_ahead=None)
    .agg(n=count(), top=maximum("v"), users=distinct("v", lg_k=4), spread=quantiles("v"))
)
START = 1_767_225_600


@dataclass(frozen=True)
class Seeing(Threshold):
    """A threshold that sees every row."""

    def measure(self, memory: dict[str, Any], row: Row, figure: Figure) -> Measured | None:
        return super().measure(memory, row, figure)


@pytest.fixture(scope="module")
def table() -> pa.Table:
    random = np.random.default_rng(3)
    rows = 3_000
    frame = pl.DataFrame(
        {
            "at": START + np.sort(random.integers(0, 40 * 60, rows)),
            "k": pl.Series(random.choice(np.array(["a", "b", 'c"é', "d"]), rows)).set(
                pl.Series(random.random(rows) < 0.1), None
            ),
            "zone": random.integers(0, 3, rows),
            "v": np.where(random.random(rows) < 0.02, np.nan, random.exponential(10, rows)),
        }
    )
    tester = StreamTester(STREAM)
    tester.feed(frame)
    return tester.finish().tables().to_arrow()


def said(table: pa.Table, kind: type[Threshold], cuts: Sequence[int], rule: dict[str, Any]) -> list[Any]:
    """All alerts of the table, cut into batches of windows."""
    engine = RuleEngine(
        [kind("one", kind="some", **rule)], rule_view([kind("one", **rule)], table.schema, None)
    )
    groups, collected = WindowGroups.of_table(table), list[Any]()
    begins = np.flatnonzero(np.diff(groups.starts, prepend=groups.starts[0] - 1)).tolist()
    for number, (low, high) in enumerate(pairwise([*begins, len(groups)])):
        window = groups.slice(low, high)
        if number in cuts:
            window = WindowGroups.of_table(window.table)
        collected += engine.evaluate(window, final=number % 7 != 3)
    return [str(one) for one in collected]


@pytest.mark.slow
@pytest.mark.parametrize(
    "rule",
    [
        {"value": "n", "above": 9},
        {"value": "n", "at_least": 9, "clear": 4, "hold": "2m"},
        {"value": "n", "below": 2, "release": "1m", "cooldown": "5m"},
        {"value": "n", "at_most": 1, "every": True, "cooldown": "3m"},
        {"value": "n", "above": 10, "per": ("k",)},
        {"value": "n", "above": 8, "per": ("zone", "k"), "where": {"k": ["a", None]}},
        {"value": "top", "above": 40.0},
        {"value": "users", "above": 9, "surely": True},
        {"value": "users", "below": 8, "surely": True, "support": {"n": 4}},
        {"value": "spread.n", "above": 12},
        {"value": "spread.p99", "above": 45, "report": ["top"]},
        {"value": "n", "above": 9, "absent": 0},
        {"value": "n", "above": 1_000_000},
    ],
    ids=str,
)
def test_what_is_passed_over_has_nothing_to_say(table: pa.Table, rule: dict[str, Any]) -> None:
    by_columns = said(table, Threshold, (), rule)
    assert by_columns == said(table, Seeing, (), rule) == said(table, Threshold, range(0, 40, 3), rule)
    assert ("fired" in str(by_columns)) == (rule.get("above") != 1_000_000)


def test_few_rows_are_made_of_many(table: pa.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    from streamgauge.operators.rules import window_rows

    made: list[int] = []

    def counted(*fields: Any) -> Row:
        made.append(1)
        return Row(*fields)

    monkeypatch.setattr(window_rows, "Row", counted)
    said(table, Threshold, (), {"value": "top", "above": 60.0})
    few = len(made)
    said(table, Seeing, (), {"value": "top", "above": 60.0})
    assert 0 < 4 * few < len(made) - few == table.num_rows


@pytest.mark.parametrize(
    ("answers", "part"),
    [
        (pl.Series([1, None, -(2**62)]), ""),
        (pl.Series([1.5, None, float("nan"), float("inf")]), ""),
        (pl.Series([{"estimate": 1.0, "lower": 0.5, "upper": float("inf")}, None]), ""),
        (pl.Series([{"value": 3, "lower": 1}, {"value": None, "lower": 2}]), ""),
        (pl.Series([{"n": 3, "error": None}, {"n": 7, "error": 0.5}]), "n"),
        (pl.Series(["a", None]), ""),
        (pl.Series([{"n": 3, "error": None}]), ""),
    ],
    ids=str,
)
def test_figures_of_a_column_are_those_of_its_values(answers: pl.Series, part: str) -> None:
    columns = figure_columns(answers, part)
    single = [figure_of(jsonable(answer), part) for answer in answers]
    if columns is None:
        assert single.count(None) == len(single)
        return
    rows = [None if np.isnan(row[0]) else Figure(*row) for row in zip(*(one.tolist() for one in columns))]
    assert rows == single


def test_rows_one_by_one_name_some_of_their_keys_each() -> None:
    rows = [Row({"k": key, "n": n}, 0, 9, {}) for n, key in enumerate("abc")]
    batch = WindowBatch({(9, 0): rows})
    assert batch.keys(("k",)).tolist() == ['["a"]', '["b"]', '["c"]']
    mask = batch.concerned({"k": ["a", "c"]})
    assert mask is not None
    assert mask.tolist() == [True, False, True]
