"""Many small files of sketches into few that are fast to ask: a folder a day, sorted by keys and time.

Each file's row groups are small and sorted by the keys, so that who asks for one key reads its row groups
alone: Parquet's statistics say which these are. `stored.read_table`, Spark and every other reader of Parquet
skip the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from .schema import DAY, END, START, keys_of, write_parquet
from .stored import days_of, files_of, merged_of

GROUP_BYTES = 1024 * 1024
"""About how large a row group is, before compression."""
_FEWEST_ROWS = 64
_NAME = "sketches.parquet"


def compact(folder: str | Path, into: str | Path) -> list[Path]:
    """Write the table of sketches in a folder's files anew, one file a day; gives the files.

    `into` is another folder; in it ``window_date=2026-01-01/sketches.parquet`` holds the windows that begin
    on that day (UTC), sorted by the keys and then by time. Rows of one window and group become one, as in
    `merge`. What was there of a day is replaced at once and whole, so that it can be done again, after a
    crash or because there are more files; days that the folder doesn't have stay. Only a day at a time is in
    memory. Compact days that are over: a window written after that is not in them.

    Raises `SketchError` for files that aren't tables of sketches or have different definitions,
    `FileNotFoundError` if there are none, and `ValueError` if `into` is the folder itself or in it.

    >>> from tempfile import mkdtemp
    >>> import polars as pl
    >>> from streamgauge import Stream, StreamTester, ToParquet, count
    >>> rows = Stream.from_batches({"at": pl.Int64}, time=pl.from_epoch("at")).tumbling("1m").agg(n=count())
    >>> small, large = mkdtemp(), mkdtemp()
    >>> tester = StreamTester(rows, sinks=[ToParquet(small)])
    >>> _ = tester.feed([{"at": 1_767_225_600 + minute * 60} for minute in range(20)])
    >>> _ = tester.finish()
    >>> [str(file.relative_to(large)) for file in compact(small, large)], len(list(Path(small).rglob("*.*")))
    (['window_date=2026-01-01/sketches.parquet'], 20)
    """
    source, target = Path(folder).resolve(), Path(into).resolve()
    if target == source or source in target.parents:
        raise ValueError(f"compact: {into} is in {folder}, whose files it would count twice; name another")
    files = files_of(source)
    return [_write(table, target, day) for day, table in _days(files)]


def _days(files: list[Path]) -> Iterator[tuple[date, pa.Table]]:
    """Each day and the table of its windows, in order."""
    spans = {file: days_of(file) for file in files}
    for day in sorted({day for days in spans.values() for day in days}):
        begin = datetime(day.year, day.month, day.day, tzinfo=UTC)
        inside = (pc.field(START) >= begin) & (pc.field(START) < begin + timedelta(days=1))
        yield day, merged_of([file for file, days in spans.items() if day in days], inside)


def _write(table: pa.Table, into: Path, day: date) -> Path:
    order = [(name, "ascending") for name in (*keys_of(table.schema), START, END)]
    table = table.sort_by(order).combine_chunks()
    done = into / f"{DAY}={day}" / _NAME
    done.parent.mkdir(parents=True, exist_ok=True)
    unfinished = done.with_name(f".{_NAME}.unfinished")
    rows = max(_FEWEST_ROWS, GROUP_BYTES * table.num_rows // max(table.nbytes, 1))
    write_parquet(table, unfinished, rows)
    unfinished.replace(done)
    return done
