"""A running group's table together with its closed windows in files, which its table topic no longer has.

A run with a `table`, or the sink `SketchesToParquet`, writes the files. If both have a window's group, the
one in the table topic counts, because it is later; so each exists once.
"""

from __future__ import annotations

import math
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...operators.table.merge import check_alike, group_rows, rows_without
from ...operators.table.schema import END, START, keys_of
from ...operators.table.stored import files_of, read_group_rows, tables_of
from ...operators.table.stored_files import StoredFile, exists, stored_at, version_of
from ...operators.table.windows import declared_windows, edges
from ...sketches.core.protocol import SketchError
from .view import Gap, ServedTable, Stale, TableView, new_version, rows_of, windows_of

_OF_FILES = -1
"""In place of the partition of the table topic, which files don't need."""


def with_kept(view: TableView, folder: str | Path) -> TableView:
    """A view with the closed windows in a folder; an empty folder adds none.

    The missing span ends where the files begin. Raises `SketchError` for files of another definition, or that
    don't contain a table of sketches.
    """
    try:
        table = read_group_rows(folder)
    except FileNotFoundError:
        return view
    return _with_table(view, table, folder)


class TableWithKept:
    """A live table together with the closed windows in a folder, as one `ServedTable`.

    The folder is checked when the table is queried, at most every `seconds`, and files are read once. If its
    files can't be read, or have another definition, the table becomes stale and answers without them.
    """

    def __init__(self, table: ServedTable, folder: str | Path, seconds: float = 2.0) -> None:
        self.name = table.name
        self._table, self._folder, self._seconds = table, folder, seconds
        self._lock = threading.Lock()
        self._looked = -math.inf
        self._files: dict[StoredFile, tuple[tuple[Any, ...], pa.Table]] = {}
        self._kept: pa.Table | None = None
        self._kept_version = 0
        self._stale: Stale | None = None
        self._joined: tuple[int, int, TableView] | None = None

    def view(self) -> TableView:
        """See `ServedTable`."""
        view = self._table.view()
        with self._lock:
            self._look()
            if self._joined is None or self._joined[:2] != (view.version, self._kept_version):
                joined = view
                try:
                    if self._kept is not None:
                        joined = _with_table(view, self._kept, self._folder)
                except SketchError as error:
                    joined = replace(view, stale=Stale(time.time(), str(error)))
                self._joined = view.version, self._kept_version, joined
            joined = self._joined[2]
            stale = view.stale or joined.stale or self._stale
            return replace(joined, stale=stale, final_us=view.final_us, lag=view.lag, ready=view.ready)

    def describe(self) -> dict[str, Any]:
        """See `ServedTable`."""
        return {**self._table.describe(), "closed": str(self._folder)}

    def watch(self, changed: Any) -> Any:
        """See `ServedTable`."""
        return self._table.watch(changed)

    def close(self) -> None:
        """See `ServedTable`."""
        self._table.close()

    def _look(self) -> None:
        """Read new files in the folder."""
        if time.monotonic() < self._looked + self._seconds:
            return
        try:
            files = files_of(self._folder) if exists(stored_at(self._folder)) else []
            seen = {file: version_of(file) for file in files}
            if seen != {file: state for file, (state, _) in self._files.items()}:
                new = [file for file in seen if file not in self._files or self._files[file][0] != seen[file]]
                read = dict(zip(new, tables_of(new)))
                self._files = {
                    file: (state, read[file] if file in read else self._files[file][1])
                    for file, state in seen.items()
                }
                tables = [table for _, table in self._files.values()]
                self._kept, self._kept_version = group_rows(tables) if tables else None, new_version()
            self._stale = None
        except FileNotFoundError:
            pass  # no file yet, or one was just deleted: the next check will tell
        except (OSError, SketchError) as error:
            self._stale = Stale(time.time(), str(error))
        self._looked = time.monotonic()


def _with_table(view: TableView, table: pa.Table, folder: str | Path) -> TableView:
    own, others = declared_windows(view.schema), declared_windows(table.schema)
    if own != others:
        raise SketchError(
            f"{view.name} has {own}, and the files in {folder} have {others}: name its own folder"
        )
    check_alike(view.schema, table.schema, f"{view.name} and {folder}")
    table = table.select(view.schema.names).cast(view.schema)
    names = [START, END, *keys_of(view.schema)]
    kept = rows_without(table, rows_of(view.windows), names) if view.windows else table
    windows = [*view.windows, *windows_of(_OF_FILES, kept)]
    windows.sort(key=lambda one: (one.start, one.end, one.partition))
    return replace(
        view, windows=tuple(windows), version=new_version(), gaps=tuple(_left(view, table, folder))
    )


def _left(view: TableView, table: pa.Table, folder: str | Path) -> list[Gap]:
    """What is missing before the files' first window and, for windows in steps, after their last."""
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
