"""Serving a table from files, Parquet or Arrow IPC; they are reread when they change."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...operators.table.stored import files_of, read
from ...operators.table.stored_files import StoredFile, version_of
from ...sketches.core.protocol import SketchError
from .view import Stale, TableView, new_version, windows_of
from .watchers import Watchers

log = logging.getLogger("streamgauge.serving")

_LOOK_SECONDS = 2.0
_ALWAYS = 2**62


class FileTable:
    """The table in a file or a folder. Its windows count as final; changed files are reread completely.

    Raises `SketchError` if it doesn't contain a table of sketches, `FileNotFoundError` if there is none. If
    that happens later, the table becomes stale and keeps its last answers. With `look` None it is not reread.
    """

    def __init__(self, name: str, path: str | Path, look: float | None = _LOOK_SECONDS) -> None:
        self.name = name
        self._path = path
        self._watchers = Watchers()
        self._seen = self._poll()
        self._view: TableView = self._read()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        if look is not None:
            self._thread = threading.Thread(
                target=self._watch, args=(look,), name=f"look {name}", daemon=True
            )
            self._thread.start()

    def view(self) -> TableView:
        """The table as last read."""
        return self._view

    def describe(self) -> dict[str, Any]:
        """Where it comes from, as plain JSON."""
        return {"source": {"files": str(self._path)}}

    def watch(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call `changed` from any thread after each change; returns a function that ends this."""
        return self._watchers.add(changed)

    def close(self) -> None:
        """Stop checking for changes."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _poll(self) -> list[tuple[StoredFile, tuple[Any, ...]]]:
        return [(file, version_of(file)) for file in files_of(self._path)]

    def _read(self) -> TableView:
        return final_view(self.name, read(self._path))

    def _watch(self, seconds: float) -> None:
        while not self._stop.wait(seconds):
            try:
                seen = self._poll()
                if seen == self._seen and self._view.stale is None:
                    continue
                self._view, self._seen = self._read(), seen
            except (OSError, SketchError, ValueError) as error:
                if self._view.stale is not None:
                    continue
                log.warning("the table %s can't be read now: %s", self.name, error)
                before = self._view
                stale = Stale(time.time(), str(error))
                self._view = TableView(
                    before.name, before.schema, before.windows, new_version(), _ALWAYS, stale=stale
                )
            self._watchers.changed()


def final_view(name: str, table: pa.Table) -> TableView:
    """The windows of a table that is ordered by window, all of them final."""
    return TableView(name, table.schema, tuple(windows_of(0, table)), new_version(), _ALWAYS)
