"""A running group's table together with its closed windows in files, which its table topic has no more.

A run with the sink `SketchesToParquet` writes the files. Where both have a window's group, the one of the
table topic counts, which is the later one; so each is there once.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pyarrow as pa

from ...operators.table.merge import check_alike
from ...operators.table.schema import END, START, keys_of
from ...operators.table.stored import read_group_rows
from ...operators.table.windows import declared_windows, edges
from ...sketches.core.protocol import SketchError
from .view import Gap, TableView, new_version, rows_of, windows_of

_OF_FILES = -1
"""In place of the partition of the table topic, which files don't need."""


def with_kept(view: TableView, folder: Path) -> TableView:
    """A view with the closed windows of a folder; one that nothing was written to yet adds none.

    What is missing ends where the files begin. Raises `SketchError` for files of another definition, or that
    hold no table of sketches.
    """
    try:
        table = read_group_rows(folder)
    except FileNotFoundError:
        return view
    own, others = declared_windows(view.schema), declared_windows(table.schema)
    if own != others:
        raise SketchError(
            f"{view.name} has {own}, and the files in {folder} have {others}: name its own folder"
        )
    check_alike(view.schema, table.schema, f"{view.name} and {folder}")
    table = table.select(view.schema.names).cast(view.schema)
    names = [START, END, *keys_of(view.schema)]
    rows = _keys(table, names).with_row_index("row")
    if view.windows:
        rows = rows.join(_keys(rows_of(view.windows), names), on=names, how="anti", nulls_equal=True)
    kept = table.take(pa.array(rows["row"].sort()))
    windows = [*view.windows, *windows_of(_OF_FILES, kept)]
    windows.sort(key=lambda one: (one.start, one.end, one.partition))
    return replace(
        view, windows=tuple(windows), version=new_version(), gaps=tuple(_left(view, table, folder))
    )


def _keys(table: pa.Table, names: list[str]) -> pl.DataFrame:
    return pl.DataFrame(pl.from_arrow(table.select(names)))


def _left(view: TableView, table: pa.Table, folder: Path) -> list[Gap]:
    """What is missing before the first window of the files, and, of windows in steps, behind their last."""
    starts, ends = edges(table)
    first, last = int(starts.min()), int(ends.max())
    windows = declared_windows(view.schema)
    gaps = []
    for gap in view.gaps:
        if gap.since < first:
            gaps.append(Gap(gap.since, min(gap.until, first), f"{folder} begins after them"))
        if windows is not None and windows.in_steps and gap.until > max(last, gap.since):
            gaps.append(Gap(max(last, gap.since), gap.until, f"{folder} ends before them"))
    return gaps
