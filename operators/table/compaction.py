"""Rewrite many small files of sketches into few that are fast to query: a folder per day, sorted.

Each file's row groups are small and sorted by the keys, so a query for one key reads only its row groups,
which Parquet's statistics identify. `stored.read_table`, Spark and every other reader of Parquet skip the
rest.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from ...sketches.core.protocol import SketchError
from ..windows.table import TableWindows
from .merge import check_alike
from .schema import DAY, END, START, keys_of, read_parquet, write_parquet
from .stored import SOURCES, days_of, files_of, merged_of, schema_in, sources_of
from .stored_files import write_whole
from .windows import declared_windows

GROUP_BYTES = 1024 * 1024
"""The approximate size of a row group before compression."""
_FEWEST_ROWS = 64
_NAME = "sketches.parquet"


def compact(folder: str | Path, into: str | Path) -> list[Path]:
    """Rewrite a folder's table of sketches into one file per day; returns the files.

    `into` is another folder; its ``window_date=2026-01-01/sketches.parquet`` has the windows that begin on
    that day (UTC), sorted by the keys and then by time. Rows of one window and group become one, as in
    `merge`. The existing file of a day is replaced atomically, so you can compact again after a crash or when
    there are more files; days that the folder doesn't have stay. Only one day at a time is in memory. Compact
    days that are over: windows written later are not included. A table without windows becomes one file,
    ``sketches.parquet``.

    Raises `SketchError` before it writes anything: for files that aren't tables of sketches; for different
    definitions, also between days and with files already in `into`; and for a day in `into` that was built
    from files which are no longer in the folder, because their rows would be lost. Raises `FileNotFoundError`
    if there are none, and `ValueError` if `into` is the folder itself or in it.

    >>> from tempfile import mkdtemp
    >>> import polars as pl
    >>> import streamgauge as sg
    >>> rows = sg.Stream.from_schema({"at": pl.Int64}, time=pl.from_epoch("at"))
    >>> by_minute = rows.tumbling("1m").agg(n=sg.count())
    >>> small, large = mkdtemp(), mkdtemp()
    >>> tester = sg.StreamTester(by_minute, sinks=[sg.SketchesToParquet(small)])
    >>> _ = tester.feed([{"at": 1_767_225_600 + minute * 60} for minute in range(20)])
    >>> _ = tester.finish()
    >>> merged = [str(file.relative_to(large)) for file in sg.compact(small, large)]
    >>> merged, len(list(Path(small).rglob("*.*")))
    (['window_date=2026-01-01/sketches.parquet'], 20)
    """
    source, target = Path(folder).resolve(), Path(into).resolve()
    if target == source or source in target.parents:
        raise ValueError(f"compact: {into} is in {folder}, whose files it would count twice; name another")
    files = cast(list[Path], files_of(source))
    done = [*target.glob(_NAME), *target.glob(f"{DAY}=*/{_NAME}")]
    windows = _check_definitions([*files, *sorted(done)])
    days: dict[date | None, list[Path]] = {}
    for file in files:
        for day in days_of(file) if windows is None or not windows.all_time else [None]:
            days.setdefault(day, []).append(file)
    for day in days:
        _check_sources(_place(target, day), source, days[day])
    return [
        _write(_of_day(day, days[day]), _place(target, day), source, days[day])
        for day in sorted(days, key=str)
    ]


def _of_day(day: date | None, files: list[Path]) -> pa.Table:
    """The windows in files that begin on a day, or all rows if there are no windows."""
    if day is None:
        return merged_of(files)
    begin = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return merged_of(files, (pc.field(START) >= begin) & (pc.field(START) < begin + timedelta(days=1)))


def _check_definitions(files: list[Path]) -> TableWindows | None:
    """The windows that files declare. Raises `SketchError` for files of different definitions."""
    first = schema_in(files[0])
    for file in files[1:]:
        check_alike(first, schema_in(file), f"compact: {files[0].name} and {file}")
    return declared_windows(first)


def _check_sources(done: Path, source: Path, files: list[Path]) -> None:
    """Raise `SketchError` for a compacted day with rows of other files.

    Files that the day's files were themselves made from count as well.
    """
    if not done.exists():
        return
    within = (file.parent / name for file in files for name in sources_of(file))
    names = {file.relative_to(source).as_posix() for file in (*files, *within)}
    if gone := [name for name in sources_of(done) if name not in names]:
        more = f" and {len(gone) - 1} more" if len(gone) > 1 else ""
        raise SketchError(
            f"compact: {done} was written from {gone[0]}{more}, which the folder no longer has for that "
            "day, so their rows would be lost. Put them back, or compact the other files into another "
            "folder; if they were written again under other names, remove the day first"
        )


def _check_kept(table: pa.Table, done: Path) -> None:
    """Raise `SketchError` if a compacted day has windows and groups that its new table lacks."""
    names = [START, END, *keys_of(table.schema)]
    here, there = (pl.DataFrame(one.select(names)) for one in (table, read_parquet(done)))
    lost = there.join(here, on=names, how="anti", nulls_equal=True)
    if len(lost):
        raise SketchError(
            f"compact: {done} has {len(lost)} rows of windows and groups that the folder's files don't have "
            f"any more, the first {lost.row(0)}; they would be lost. Put the files back, compact into "
            "another folder, or remove the day first"
        )


def _place(into: Path, day: date | None) -> Path:
    return into / _NAME if day is None else into / f"{DAY}={day}" / _NAME


def _write(table: pa.Table, done: Path, source: Path, files: list[Path]) -> Path:
    if done.exists():
        _check_kept(table, done)
    notes = {SOURCES: json.dumps([file.relative_to(source).as_posix() for file in files])}
    write_whole(done, lambda file: write_sorted(table, file, notes))
    return done


def write_sorted(table: pa.Table, file: Any, notes: Mapping[bytes, str]) -> None:
    """Write a table sorted by its keys and then by time, in small row groups, to a path or an open file."""
    order = [(name, "ascending") for name in (*keys_of(table.schema), START, END)]
    table = table.sort_by(order).combine_chunks()
    rows = max(_FEWEST_ROWS, GROUP_BYTES * table.num_rows // max(table.nbytes, 1))
    write_parquet(table, file, rows, notes)
