"""A run's files of one day combined into a growing file: each window is in it once, however often delivered.

The file's metadata names the files that it was made from. Readers of this package ignore those if they still
exist, as after a crash before they were deleted. A window that is delivered again replaces its own rows in
the day's file, so no window is ever in two files.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from .compaction import write_sorted
from .merge import group_rows, rows_without
from .schema import END, START
from .stored import COMPACTED, SOURCES, sources_of, tables_of
from .stored_files import StoredFile, delete, exists, write_whole
from .windows import edges


def day_file_of(folder: StoredFile, partition: int, digest: str) -> StoredFile:
    """The file in a day's folder for one partition of the table topic and one group of runs."""
    return folder / f"{COMPACTED}{partition:04d}-{digest}.parquet"


def has_source(day: StoredFile, name: str) -> bool:
    """Whether a day's file has the rows that were in a file with this name."""
    return exists(day) and name in sources_of(day)


def add_to_day(day: StoredFile, files: Sequence[StoredFile]) -> None:
    """Add the rows of files to a day's file, and delete the files. Raises `OSError`, `SketchError`."""
    known = sources_of(day) if exists(day) else []
    new = [file for file in files if file.name not in known]
    if new and len(new) + len(known) > 1:
        table = group_rows(tables_of([*([day] if known else []), *new]))
        _write(day, table, [*known, *(file.name for file in new)])
        known += [file.name for file in new]
    for file in files:
        if file.name in known:
            delete(file)


def replace_in_day(day: StoredFile, table: pa.Table) -> None:
    """Put a table of whole windows into a day's file, replacing its rows of the same windows."""
    (before,) = tables_of([day])
    kept = rows_without(before, table, [START, END])
    _write(day, group_rows([kept, table] if kept.num_rows else [table]), sources_of(day))


def last_end(day: StoredFile) -> int:
    """The end of the last of a day file's windows (microseconds since 1970)."""
    (table,) = tables_of([day])
    return int(edges(table)[1].max())


def _write(day: StoredFile, table: pa.Table, sources: Sequence[str]) -> None:
    notes = {SOURCES: json.dumps(sources)}

    def write(file: Any) -> None:
        write_sorted(table, file, notes)

    write_whole(day, write)
