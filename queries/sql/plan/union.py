"""UNION ALL: the rows of several queries with the column names of the first, matched by position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from ..errors import error_at, errors_at
from ..scalars.scalars import a_type, holds, sql_type, type_source
from .logical_plan import LogicalPlan
from .stream_builder import arguments


def union_plans(plans: Sequence[LogicalPlan], at: Sequence[Any]) -> list[LogicalPlan]:
    """The plans with the first one's columns; `at` are their SELECTs.

    Raises `SqlError` for windows, for different numbers or types of columns, and if the event time would be
    different columns in different rows.
    """
    first = plans[0]
    names = list(first.columns)
    columns = dict(first.columns)
    united = []
    for plan, select in zip(plans, at):
        node = select.expressions[0]
        if plan.selection is not None:
            raise error_at(
                node,
                "UNION ALL combines rows, not windows: write the union of rows first, and SELECT "
                "windows from that",
            )
        if plan.limit is not None:
            raise error_at(
                node,
                "LIMIT of a UNION ALL: write CREATE STREAM … AS SELECT … UNION ALL …, and SELECT from that "
                "stream",
            )
        if len(plan.columns) != len(names):
            raise error_at(
                node,
                f"each SELECT of a UNION ALL must have as many columns as the first, {len(names)}, got "
                f"{len(plan.columns)}",
            )
        renamed = dict(zip(plan.columns, names))
        for (name, kind), (new, wanted) in zip(plan.columns.items(), columns.items()):
            if not holds(wanted, kind) and not holds(kind, wanted):
                raise error_at(
                    node,
                    f"{name} must be {a_type(wanted)} as in the first SELECT of the UNION ALL, got "
                    f"{a_type(kind)}; write CAST(… AS {sql_type(wanted)}) in one of them",
                )
            columns[new] = wanted if holds(wanted, kind) else kind
        time = renamed.get(plan.time, "")
        if (time, plan.time_format) != (first.time, first.time_format):
            raise error_at(
                node,
                "the event time must be the same column in all of a UNION ALL, got "
                f"{plan.time or 'none'} here and {first.time or 'none'} in the first SELECT",
            )
        partition = tuple(renamed[name] for name in plan.partition)
        if partition != first.partition:
            raise error_at(node, "PARTITION BY must name the same columns in each SELECT of a UNION ALL")
        united.append(replace(plan, time=time, partition=partition))
    return [_with_columns(plan, columns, select.expressions[0]) for plan, select in zip(united, at)]


def _with_columns(plan: LogicalPlan, columns: dict[str, pl.DataType], at: Any) -> LogicalPlan:
    """The plan with its columns renamed and cast."""
    if not renaming_text(plan, columns):
        return plan
    selected = {new: pl.col(old).cast(kind) for old, (new, kind) in zip(plan.columns, columns.items())}
    with errors_at(at):
        return replace(plan, stream=plan.stream.select(**selected), columns=columns)


def renaming_text(plan: LogicalPlan, columns: Mapping[str, pl.DataType]) -> str:
    """The Python that gives a plan's rows these columns, by position; empty if they have them."""
    if list(plan.columns.items()) == list(columns.items()):
        return ""
    named = {
        new: f"pl.col({old!r}).cast({type_source(kind)})"
        for old, (new, kind) in zip(plan.columns, columns.items())
    }
    return f".select({arguments(named)})"
