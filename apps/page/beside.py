"""A page beside runs of apps: the windows and alerts that they give, in this process's memory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from ...operators.definition.stream import Stream
from ...operators.definition.windows import EARLIEST
from ...operators.serving.http.running import QueryServer
from ...operators.serving.http.service import Service
from ...operators.serving.view import ServedWindow, TableView, new_version, windows_of
from ...operators.table.schema import END, START, schema_of
from ..running.asked import Job
from .alert_log import AlertLog
from .routes import OPEN_TO_ALL, page_routes
from .served_app import ServedApp


class WindowsTable:
    """A table of the closed windows that it was given; one that comes again takes the place of the first."""

    def __init__(self, name: str, schema: pa.Schema) -> None:
        self.name = name
        self._schema = schema
        self._lock = threading.Lock()
        self._windows: dict[tuple[int, ...], ServedWindow] = {}
        self._view: TableView | None = None
        self._watchers: list[Callable[[], None]] = []

    def take(self, table: pa.Table) -> None:
        """Take in windows, from any thread."""
        found = table.replace_schema_metadata(self._schema.metadata)
        found = found.sort_by([(START, "ascending"), (END, "ascending")])
        with self._lock:
            for window in windows_of(0, found):
                self._windows[window.key] = window
            self._view = None
        for changed in self._watchers:
            changed()

    def view(self) -> TableView:
        """See `ServedTable`."""
        with self._lock:
            if self._view is None:
                windows = tuple(sorted(self._windows.values(), key=lambda window: (window.start, window.end)))
                final = max((window.end for window in windows), default=EARLIEST)
                self._view = TableView(self.name, self._schema, windows, new_version(), final)
            return self._view

    def told(self) -> dict[str, Any]:
        """See `ServedTable`."""
        return {"source": {"replay": self.name}}

    def watch(self, changed: Callable[[], None]) -> Callable[[], None]:
        """See `ServedTable`."""
        self._watchers = [*self._watchers, changed]

        def end() -> None:
            self._watchers = [other for other in self._watchers if other is not changed]

        return end

    def close(self) -> None:
        """See `ServedTable`."""


class ShownRun:
    """The closed windows and, as an outlet, the alerts of an app's run in this process."""

    def __init__(self, job: Job, streams: Mapping[str, Stream]) -> None:
        self.alerts = AlertLog(job.app.name)
        names = {part: f"{job.app.name}-{part}" for part in streams}
        self.tables = {part: WindowsTable(names[part], schema_of(stream)) for part, stream in streams.items()}
        self.app = ServedApp(job.app, names, job.rules, self.alerts)

    def take(self, part: str, table: pa.Table) -> None:
        """Windows of a part that have closed."""
        self.tables[part].take(table)


class PageBeside:
    """Serves the page of runs in this process, each of another app.

    Raises `ServerError` if the port can't be had.
    """

    def __init__(self, runs: Sequence[ShownRun], port: int) -> None:
        service = Service({table.name: table for run in runs for table in run.tables.values()})
        routes = page_routes(service, [run.app for run in runs])
        self._server = QueryServer(service, port=port, routes=routes, open_to_all=OPEN_TO_ALL)
        self._thread = self._server.start()

    @property
    def url(self) -> str:
        """The page's address."""
        return f"{self._server.url}/"

    def wait(self) -> None:
        """Come back when it was stopped."""
        self._thread.join()

    def stop(self) -> None:
        """End it in order."""
        self._server.stop()
        self._thread.join()
