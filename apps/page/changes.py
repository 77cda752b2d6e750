"""One stream of events for all pages of a browser: changed tables, their progress, new alerts.

A page then requests its contents again. So one connection is enough, however many panels and tabs there are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...queries.answers.answers import standing
from ...queries.server.http.events import EventStream
from ...queries.server.http.service import Service
from ...queries.views.view import NotReady, ServedTable
from .served_app import ServedApp

_INTERVAL = 1.0


class PageChanges(EventStream):
    """The current state of apps' tables and alerts, and again after each change, at most once per second."""

    def __init__(self, service: Service, apps: Sequence[ServedApp], last: str | None) -> None:
        super().__init__(service, _INTERVAL, last)
        self._apps = apps

    @property
    def about(self) -> str:
        """The apps' names."""
        return ", ".join(served.app.name for served in self._apps)

    def watch(self, changed: Callable[[], None]) -> Callable[[], None]:
        """See `EventStream`."""
        ends = []
        for served in self._apps:
            ends += [table.watch(changed) for table in served_tables(self._service, served).values()]
            if served.alerts is not None:
                ends.append(served.alerts.watch(changed))

        def end() -> None:
            for one in ends:
                one()

        return end

    async def current_event(self) -> tuple[str, Mapping[str, Any], tuple[str, ...]]:
        """Return the current state."""
        return "state", {"apps": {one.app.name: state_of(self._service, one) for one in self._apps}}, ()


def served_tables(service: Service, served: ServedApp) -> dict[str, ServedTable]:
    """Return the tables of an app's parts, by the part's name."""
    return {part: service.tables[table] for part, table in served.tables.items() if table in service.tables}


def state_of(service: Service, served: ServedApp) -> dict[str, Any]:
    """Return the progress of each part's table, the outcome of its messages, the number of alerts, and the
    sentences about late readings.
    """
    log = served.alerts
    return {
        "parts": {part: _standing(table) for part, table in served_tables(service, served).items()},
        "late": served.late().sentences(),
        "alerts": None if log is None else {"number": log.number, "stale": log.stale},
    }


_SHOWN = ("from", "to", "windows", "open", "watermark", "stale", "lag", "missing")


def _standing(table: ServedTable) -> dict[str, Any]:
    state = table.describe()
    try:
        view = table.view()
    except NotReady as error:
        return {"ready": False, "waiting": str(error)}
    about = standing(view)
    return {
        "ready": view.ready,
        "version": view.version,
        "account": state.get("account"),
        **{name: about[name] for name in _SHOWN},
    }
