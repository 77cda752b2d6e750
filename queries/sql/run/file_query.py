"""A query of files: its windows or its rows, computed in this process without a broker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import polars as pl

from ....operators.consumer.options import RunOptions
from ....operators.definition.sources import FrameSource
from ....operators.files.inputs import inputs_of, pieces
from ....operators.files.local_run import run_over_data
from ....operators.testing import StreamTester
from ..plan.logical_plan import LogicalPlan
from ..plan.selection import ResultSet
from .statement_result import warnings_of

_ROWS = "sql.rows"


def reads_files(plan: LogicalPlan) -> bool:
    """Whether a plan's stream reads files."""
    return isinstance(plan.stream.source, FrameSource)


def file_result(plan: LogicalPlan) -> ResultSet:
    """The rows of a query of files. Raises `InputError` for files that can't be read."""
    if plan.selection is not None:
        summary = run_over_data(plan.stream, RunOptions(), progress=False)
        warnings = warnings_of(summary.account, summary.example)
        return replace(plan.selection.result(summary.table), warnings=warnings)
    stream: Any = plan.stream.rows_to_kafka(_ROWS)
    tester = StreamTester(stream)
    rows: list[list[Any]] = []
    for frame in _frames(plan):
        tester.feed(frame)
        for message in tester.sent():
            row = json.loads(message.value or b"{}")
            rows.append([row.get(name) for name in plan.columns])
        if plan.limit is not None and len(rows) >= plan.limit:
            rows = rows[: plan.limit]
            break
    frame = pl.DataFrame(rows, list(plan.columns), orient="row", strict=False, infer_schema_length=None)
    reason = str(tester.refused[0].reason) if tester.refused else ""
    return ResultSet(frame, warnings=warnings_of(tester.account, reason))


def _frames(plan: LogicalPlan) -> Iterator[pl.DataFrame]:
    source: Any = plan.stream.source
    for one in inputs_of(source.data):
        yield from pieces(one, source.schema)
