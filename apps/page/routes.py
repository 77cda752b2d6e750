"""The page's routes on a query server: the page, its files, and its data about each app.

| path | what |
|---|---|
| `/`, `/app/NAME`, `/page/sql` | the page |
| `/page/VERSION/…` | its files: they never change under their names, and may be kept |
| `/apps`, `/apps/NAME` | the apps, and tables of none; one with its panels and rules |
| `/apps/NAME/alerts` | what fired, the latest first: of a `rule` or `key`, with a `text`; or one, by `id` |
| `/apps/NAME/objects/OBJECT.html` | an object of its `ObjectPanel` as a page by itself, to send to others |
| `/changes?app=NAME&app=…` | server-sent events: how far these apps' tables are, and that something fired |

All numbers come from the server's own query routes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from ...queries.question.question import question
from ...queries.server.http.errors import Problem
from ...queries.server.http.responses import JSONAnswer
from ...queries.server.http.service import Service
from ..panels import ObjectPanel
from .changes import PageChanges
from .object_page import STYLE_HASH, ShownObject, object_page
from .of_table import of_table
from .served_app import ServedApp

OPEN_TO_ALL = ("/app/", "/page/")
"""The page itself contains no data: it prompts for the token, and then requests everything else."""

_FILES = Path(__file__).parent / "files"
_ONLY_OURS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
_OBJECT_POLICY = (
    f"default-src 'none'; img-src data:; style-src '{STYLE_HASH}'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
_MOST_EVENTS = 5_000
_MOST_LOOKS = 10_000


def page_routes(service: Service, apps: Sequence[ServedApp]) -> list[BaseRoute]:
    """Return the page's routes for these apps, whose tables are the service's, and for its other tables."""
    shown = _Shown(service, {one.app.name: one for one in apps})
    bound: dict[str, Any] = {
        "/": _page,
        "/app/{app}": _page,
        "/page/sql": _page,
        "/apps": partial(_apps, shown),
        "/apps/{app}": partial(_app, shown),
        "/apps/{app}/alerts": partial(_alerts, shown),
        "/apps/{app}/objects/{object:path}.html": partial(_object, shown),
        "/changes": partial(_changes, shown),
    }
    files = Mount(f"/page/{version()}", _Files(directory=str(_FILES)))
    return [*(Route(path, endpoint) for path, endpoint in bound.items()), files]


@cache
def version() -> str:
    """Return a digest of the page's files."""
    digest = hashlib.blake2b(digest_size=6)
    for path in sorted(_FILES.rglob("*")):
        if path.is_file():
            digest.update(f"{path.relative_to(_FILES)} {path.stat().st_size} ".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


class _Files(StaticFiles):
    """Files that may be cached forever, because their path contains a digest."""

    def file_response(self, *given: Any, **more: Any) -> Response:
        response = super().file_response(*given, **more)
        response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        for name, value in _ONLY_OURS.items():
            response.headers[name] = value
        return response


@dataclass(frozen=True)
class _Shown:
    """The apps and tables that have a page."""

    service: Service
    apps: Mapping[str, ServedApp]

    def names(self) -> dict[str, str]:
        """Return the apps and the tables without an app, with their titles."""
        shown = {table for one in self.apps.values() for table in one.tables.values()}
        tables = [name for name in self.service.tables if name not in shown and name not in self.apps]
        titles = {name: one.app.title for name, one in self.apps.items()}
        return {**titles, **{name: f"The table {name}" for name in tables}}

    def named(self, request: Request) -> ServedApp:
        """Return the app of a request. Raises `Problem`, and `NotReady` for a table that hasn't been read."""
        return self.app(request.path_params["app"])

    def app(self, name: str) -> ServedApp:
        """Return the app, or the table without an app, of that name. Raises what `named` raises."""
        known = self.names()
        if name in self.apps:
            return self.apps[name]
        if name not in known:
            there = ", ".join(known) or "none"
            raise Problem(404, "No such app", f"there is no app {name!r} here; there are {there}")
        return of_table(self.service.tables[name])


async def _page(request: Request) -> Response:
    html = (_FILES / "page.html").read_text().replace("VERSION", version())
    return HTMLResponse(html, headers={**_ONLY_OURS, "Cache-Control": "no-cache"})


async def _apps(shown: _Shown, request: Request) -> Response:
    return _fresh({"apps": [{"name": name, "title": title} for name, title in shown.names().items()]})


async def _app(shown: _Shown, request: Request) -> Response:
    return _fresh(shown.named(request).described())


async def _alerts(shown: _Shown, request: Request) -> Response:
    log = shown.named(request).alerts
    last = request.query_params.get("last", "200")
    if not (last.isascii() and last.isdigit() and len(last) < 10 and 1 <= int(last) <= _MOST_EVENTS):
        raise Problem(
            400, "Not so many alerts", f"last is {last[:80]!r}; write a whole number from 1 to {_MOST_EVENTS}"
        )
    if log is None:
        raise Problem(404, "No alerts here", "start the server with --alerts-topic, to follow them")
    if (alert_id := request.query_params.get("id")) is not None:
        if (event := log.event(alert_id)) is None:
            raise Problem(
                404,
                "No such alert",
                f"no alert {alert_id[:80]!r} is kept here; it was withdrawn, or newer ones came in its place",
            )
        return _fresh({"events": [event]})
    if (key := request.query_params.get("key")) is not None:
        return _fresh({"events": log.events_of(key, int(last))})
    rule, text = request.query_params.get("rule"), request.query_params.get("text", "")
    return _fresh(log.describe(int(last), rule, text))


async def _object(shown: _Shown, request: Request) -> Response:
    served, name = shown.named(request), request.path_params["object"]
    panel = next((panel for panel in served.app.panels if isinstance(panel, ObjectPanel)), None)
    if panel is None or panel.part not in served.tables:
        raise Problem(404, "No objects here", f"{served.app.name} has no panel of single objects here")
    at = next(part.at for part in served.app.parts if part.name == panel.part)
    assert at is not None
    table = shown.service.table(served.tables[panel.part])
    rows_of = question("rows", {f"key.{panel.each}": [name], "limit": [_MOST_LOOKS], "order": [f"-{at}"]})
    rows = await shown.service.ask(table, rows_of, lambda answer: answer.rows.to_dicts())
    events = served.alerts.events_of(name, _MOST_EVENTS) if served.alerts is not None else []
    one = ShownObject.of(panel, at, rows, name, events)
    if one is None:
        raise Problem(404, "No such object", f"{served.app.name} has no {panel.each} {name[:200]!r} here")
    headers = {**_ONLY_OURS, "Content-Security-Policy": _OBJECT_POLICY, "Cache-Control": "no-store"}
    return HTMLResponse(object_page(one, served.app.title), headers=headers)


async def _changes(shown: _Shown, request: Request) -> Any:
    names = list(dict.fromkeys(request.query_params.getlist("app")))
    if not names:
        raise Problem(400, "Changes of what?", "app must name an app, once or more often, got none")
    apps = [shown.app(name) for name in names]
    return PageChanges(shown.service, apps, request.headers.get("last-event-id"))


def _fresh(content: Any) -> Response:
    return JSONAnswer(content, headers={"Cache-Control": "no-store"})
