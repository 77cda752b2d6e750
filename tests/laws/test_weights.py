"""Weights that may be left out: the same rows count, and the same are refused, in every family with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import streamgauge as sg
from streamgauge.operators.families import FAMILIES, Family

WEIGHTED = [line for line in FAMILIES.values() if "weight" in line.optional]

KINDS = (pl.Int64, pl.Int32, pl.Int8, pl.UInt64, pl.UInt8, pl.Float32, pl.Decimal(5, 0))
WIDTHS = [pl.Series([2, 0, 3, 1], dtype=kind) for kind in KINDS]


def fed(line: Family, values: Any, weight: Any) -> tuple[Any, Any]:
    """One sketch, and a group's, with the same values and weights."""
    one = line.sketch_class()(**({"seed": 1} if line.seeded else {}))
    groups = line.groups_class()(2, **({"seed": 1} if line.seeded else {}))
    groups.update(np.zeros(len(values), np.int64), values, weight=weight)
    return one.update(values, weight=weight), groups[0]


def test_some_families_have_them() -> None:
    assert {line.name for line in WEIGHTED} >= {"quantiles", "kll_quantiles"}


def test_a_weight_counts_as_so_many_values() -> None:
    for line in WEIGHTED:
        for weight in (
            [2, 0, 3, 1],
            [2, None, 3, 1],
            np.array([2.0, 0.0, 3.0, 1.0]),
            *WIDTHS,
        ):
            repeated = fed(line, [10, 10, 30, 30, 30, 40], 1)
            for weighted, plain in zip(fed(line, [10, 20, 30, 40], weight), repeated):
                assert weighted == plain and weighted.n == 6, (line.name, weight)
        for rows in ([1, None, float("nan"), 4], pl.Series([[1, 1], [], [None], [4]])):
            (one, group), n = fed(line, rows, [5, 6, 7, 8]), 13 if isinstance(rows, list) else 18
            assert one.n == group.n == n, line.name


def test_impossible_weights_are_refused_and_change_nothing() -> None:
    refused = (-1, float("nan"), float("inf"), [1, -2, 1], 1 << 63, [1, 2], "2", [True, True, False])
    for line in WEIGHTED:
        one, groups = fed(line, [1, 2, 3], [4, 5, 6])[0], line.groups_class()(1)
        before = one.to_bytes()
        for weight in refused:
            with pytest.raises((ValueError, TypeError), match=f"{one.family}: .*weight"):
                one.update([1, 2, 3], weight=weight)
            with pytest.raises((ValueError, TypeError), match=f"{one.family}: .*weight"):
                groups.update([0, 0, 0], [1, 2, 3], weight=weight)
        assert one.to_bytes() == before and groups[0].n == 0
        assert one.update([], weight=[]).to_bytes() == before


def test_streams_take_weights_from_a_column_and_refuse_them_by_its_name() -> None:
    rows = sg.Stream.from_schema({"ms": pl.Int64, "seen": pl.Int64, "at": pl.String}, time="at")

    def row(ms: int, seen: int | None) -> dict[str, Any]:
        return {"ms": ms, "seen": seen, "at": "2026-01-01T00:00:01"}

    for line in WEIGHTED:
        aggregate = getattr(sg, line.name)("ms", weight="seen")
        assert sg.Aggregate.from_json(aggregate.to_json()) == aggregate and aggregate.columns == [
            "ms",
            "seen",
        ]
        for windows in (
            rows.tumbling("1m"),
            rows.hopping("2m", every="1m"),
            rows.session("1m"),
            rows.count_window(3),
        ):
            tester = sg.StreamTester(windows.agg(spread=aggregate))
            tester.feed([row(10, 3), row(20, None), row(40, 1)])
            answers = tester.finish().windows()["spread"].to_list()
            assert answers and all(answer["n"] == 4 for answer in answers), line.name
        tester = sg.StreamTester(rows.tumbling("1m").agg(spread=aggregate))
        with pytest.raises(ValueError, match=f"{line.name}.'ms', weight='seen'.: .*got -3"):
            tester.feed([row(10, -3)])
        with pytest.raises(TypeError, match="weight='at' must name a column of numbers"):
            rows.tumbling("1m").agg(spread=getattr(sg, line.name)("ms", weight="at"))
