"""Every family's answers can be shown to people: as a table's text, and in a terminal for any question."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import streamgauge as sg
from streamgauge.apps.tables.request import answered
from streamgauge.apps.tables.view import show
from streamgauge.operators.definition.aggregate import aggregate
from streamgauge.operators.families import FAMILIES as REGISTRY
from streamgauge.operators.families import MOMENT
from streamgauge.operators.table.sketch_table import SketchTable
from streamgauge.queries.question.question import KINDS, BadQuestion

from ..cases import each
from .families import INPUTS, kinds_of
from .streams import STREAMS

ODD = ("Zipf", "infinities", "unicode", "zero-length")
CASES = [
    pytest.param(line.name, column, id=f"{line.name}-{kind}-{odd}")
    for line in REGISTRY.values()
    for odd in ODD
    for kind, column in STREAMS[odd].items()
    if kind in kinds_of(line)
]


def table_of(name: str, column: Any) -> SketchTable:
    """A table with one aggregate of a column."""
    inputs = [one for one in REGISTRY[name].inputs if one not in MOMENT]
    rows = np.arange(len(column))
    more = {one: pl.Series(INPUTS[one](rows)[one]) for one in inputs}
    at = pl.from_epoch(pl.Series(1_767_225_600 + rows % 60), time_unit="s")
    frame = pl.DataFrame({"at": at, "x": pl.from_arrow(column), **more})
    requested = aggregate(name, "x", **{one: one for one in inputs})
    stream = sg.Stream.from_frame(frame, time="at").tumbling("1m").agg(answer=requested)
    return stream.run(progress=False).table


@each(("name", "column"), CASES, by=lambda name, **_: name)
def test_every_family_can_be_printed(
    name: str, column: pa.Array, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = table_of(name, column)
    assert "answer" in str(table) and "answer" in table._repr_html_()
    table.write(tmp_path / "table.parquet")
    shown = []
    given = {"cdf": {"x": ["1"]}, "frequency": {"item": ["1"]}, "membership": {"item": ["1"]}}
    for kind in KINDS:
        try:
            show(answered(str(tmp_path / "table.parquet"), kind, given.get(kind, {}), None))
        except BadQuestion:
            continue  # not a question that this family answers
        shown.append(kind)
        assert "1 window" in capsys.readouterr().out or not table.num_rows
    assert "rows" in shown
