"""A page for runs of apps in the same process, with their windows and alerts in memory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from ...operators.consumer.log.messages import log_group
from ...operators.definition.stream import Stream
from ...operators.rules.late_readings import LateReadings
from ...operators.sketching.account import Account
from ...operators.table.schema import END, START, schema_of
from ...operators.windows.window import EARLIEST
from ...queries.server.http.server import QueryServer
from ...queries.server.http.service import Service
from ...queries.views.live import LiveTable
from ...queries.views.table_follower import TableFollower
from ...queries.views.view import ServedTable, ServedWindow, TableView, new_version, windows_of
from ...queries.views.watchers import Watchers
from ..app import Feed
from ..jobs.job import Job
from .routes import OPEN_TO_ALL, page_routes
from .served_app import ServedApp, log_of

_FOR_EVER_US = 2**61


class WindowsTable:
    """A table of emitted windows; a window that is emitted again replaces the earlier one.

    Open windows always come all together, and replace all earlier open windows.
    """

    def __init__(self, name: str, schema: pa.Schema) -> None:
        self.name = name
        self._schema = schema
        self._lock = threading.Lock()
        self._windows: dict[tuple[int, ...], ServedWindow] = {}
        self._view: TableView | None = None
        self._account: Account | None = None
        self._watchers = Watchers()

    def add(self, table: pa.Table) -> None:
        """Add closed windows, from any thread."""
        self._add(table, filling=False)

    def fill(self, table: pa.Table) -> None:
        """Replace all open windows, from any thread."""
        self._add(table, filling=True)

    def _add(self, table: pa.Table, filling: bool) -> None:
        stripped = table.replace_schema_metadata(self._schema.metadata)
        stripped = stripped.sort_by([(START, "ascending"), (END, "ascending")])
        with self._lock:
            if filling:
                self._windows = {key: one for key, one in self._windows.items() if not one.open}
            for window in windows_of(0, stripped, open=filling):
                self._windows[window.key] = window
            self._view = None
        self._watchers.changed()

    def count(self, account: Account) -> None:
        """Store the outcome of the messages so far."""
        if account != self._account:
            self._account = account
            self._watchers.changed()

    def view(self) -> TableView:
        """See `ServedTable`."""
        with self._lock:
            if self._view is None:
                windows = tuple(sorted(self._windows.values(), key=lambda window: (window.start, window.end)))
                final = max((window.end for window in windows if not window.open), default=EARLIEST)
                self._view = TableView(self.name, self._schema, windows, new_version(), final)
            return self._view

    def describe(self) -> dict[str, Any]:
        """See `ServedTable`."""
        account = None if self._account is None else self._account.to_dict()
        return {"source": {"replay": self.name}, "account": account}

    def watch(self, changed: Callable[[], None]) -> Callable[[], None]:
        """See `ServedTable`."""
        return self._watchers.add(changed)

    def close(self) -> None:
        """See `ServedTable`."""


class ShownRun:
    """The windows and, as an outlet, the alerts of an app's run in this process.

    `take` gets windows when they close, `fill` open ones. With the `feed` of a consumer, in the group named
    like its topic, windows come from the run's table topics, including open ones and the account.
    """

    def __init__(self, job: Job, streams: Mapping[str, Stream], feed: Feed | None = None) -> None:
        self.alerts = log_of(job.app, job.rules)
        names = {part: f"{job.app.name}-{part}" for part in streams}
        self._late: Callable[[], LateReadings] = LateReadings
        self.app = ServedApp(job.app, names, job.rules, self.alerts, lambda: self._late())
        self._tables: dict[str, WindowsTable] = {}
        self._followers: list[TableFollower] = []
        self.tables: dict[str, ServedTable] = {}
        for part, stream in streams.items():
            if feed is None:
                self.tables[part] = self._tables[part] = WindowsTable(names[part], schema_of(stream))
            else:
                self.tables[part] = followed = LiveTable(names[part], _FOR_EVER_US)
                settings = {**feed.config, "bootstrap.servers": feed.bootstrap_servers}
                group = log_group(feed.topic, part)
                self._followers.append(TableFollower(group, settings, followed))

    def take(self, part: str, table: pa.Table) -> None:
        """Add closed windows of a part."""
        if part in self._tables:
            self._tables[part].add(table)

    def fill(self, part: str, table: pa.Table) -> None:
        """Replace all open windows of a part."""
        if part in self._tables:
            self._tables[part].fill(table)

    def count(self, accounts: Mapping[str, Account]) -> None:
        """Store the outcome of the messages so far, by part."""
        for part, account in accounts.items():
            if part in self._tables:
                self._tables[part].count(account)

    def watch_late(self, readings: Callable[[], LateReadings]) -> None:
        """See `RunView`."""
        self._late = readings

    def close(self) -> None:
        """Stop following the run."""
        for follower in self._followers:
            follower.close()


class PageBeside:
    """Serves the page of runs in this process, one for each app.

    Raises `ServerError` if the port is unavailable.
    """

    def __init__(self, runs: Sequence[ShownRun], port: int) -> None:
        self._runs = runs
        service = Service({table.name: table for run in runs for table in run.tables.values()})
        routes = page_routes(service, [run.app for run in runs])
        self._server = QueryServer(service, port=port, routes=routes, open_to_all=OPEN_TO_ALL)
        self._thread = self._server.start()

    @property
    def url(self) -> str:
        """The page's address."""
        return f"{self._server.url}/"

    def wait(self) -> None:
        """Wait until the page is stopped."""
        self._thread.join()

    def stop(self) -> None:
        """End the page cleanly."""
        self._server.stop()
        self._thread.join()
        for run in self._runs:
            run.close()
