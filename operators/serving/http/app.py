"""The server's application: every question of every table, live views, health, and what documents it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from ...definition.durations import microseconds
from ...table.schema import aggregates_of, keys_of
from ...table.windows import windows_told
from ..answers import standing
from ..asked import ASKED
from ..question import KINDS, BadQuestion, question
from ..view import NotReady, ServedTable
from .asking import parameters, wanted_form
from .documented import assets, document, page, starter
from .events import SHORTEST_MS
from .guard import Guard
from .live import LiveView
from .problems import HANDLERS
from .service import Service
from .writing import ARROW, JSON, as_arrow, as_json

Endpoint = Callable[[Request], Awaitable[Any]]


def application(
    service: Service,
    token: str | None = None,
    routes: Sequence[BaseRoute] = (),
    open_to_all: Sequence[str] = (),
) -> Starlette:
    """The ASGI application of a service.

    `routes` are further ones, such as ``/metrics``; one of them may take the place of ``/``. What lies below
    the paths `open_to_all` needs no token, so it must tell nothing of any table.

    >>> from starlette.routing import Route
    >>> app = application(Service({}))
    >>> [route.path for route in app.routes if isinstance(route, Route)][:3]
    ['/', '/health', '/ready']
    """
    bound: dict[str, Any] = {
        "/": _home,
        "/health": partial(_health, service),
        "/ready": partial(_ready, service),
        "/openapi.json": _document,
        "/docs": _page,
        "/docs/start.js": _starter,
        "/tables": partial(_tables, service),
        "/tables/{table}": partial(_table, service),
        "/tables/{table}/live": partial(_live, service),
    }
    found: list[BaseRoute] = [Route(path, endpoint) for path, endpoint in bound.items()]
    found += [
        Route(f"/tables/{{table}}/{kind}", partial(_ask, service, kind), methods=["GET", "POST"])
        for kind in KINDS
    ]
    found = [*routes, *found, assets("/docs/assets")]
    guard = Middleware(Guard, token=token, open_to_all=tuple(open_to_all))
    return Starlette(routes=found, middleware=[guard], exception_handlers=HANDLERS)


async def _home(request: Request) -> Response:
    return RedirectResponse("/docs")


async def _health(service: Service, request: Request) -> Response:
    return JSONResponse({"status": "alive", "tables": len(service.tables), "live": service.views})


async def _ready(service: Service, request: Request) -> Response:
    """Whether every table can be asked: all of its log was read once, and it is followed."""
    waiting = {name: why for name, table in service.tables.items() if (why := _why_not(table))}
    return JSONResponse({"ready": not waiting, "waiting": waiting}, 503 if waiting else 200)


def _why_not(table: ServedTable) -> str:
    try:
        view = table.view()
    except NotReady:
        return "nothing is known of it yet"
    if view.stale is not None:
        return "it is stale"
    return "" if view.ready else "its log is being read"


async def _tables(service: Service, request: Request) -> Response:
    found = await service.in_thread(lambda: [_described(table) for table in service.tables.values()])
    return JSONResponse({"tables": found})


async def _table(service: Service, request: Request) -> Response:
    table = service.table(request.path_params["table"])
    return JSONResponse(await service.in_thread(lambda: _described(table)))


def _described(table: ServedTable) -> dict[str, Any]:
    """What a table is and how far it is, as plain JSON."""
    try:
        view = table.view()
    except NotReady as error:
        return {"table": table.name, "ready": False, "waiting": str(error)}
    windows = windows_told(view.schema)
    columns = [
        {
            "name": name,
            **asked.definition(),
            "questions": ["rows", *(kind for kind, one in ASKED.items() if one.fits(asked))],
        }
        for name, asked in aggregates_of(view.schema).items()
    ]
    keys = [{"name": key, "type": str(view.schema.field(key).type)} for key in keys_of(view.schema)]
    return {
        **{name: value for name, value in standing(view).items() if name != "question"},
        "ready": view.ready,
        "rows": sum(window.table.num_rows for window in view.windows),
        "lasting": None if windows is None else windows.definition(),
        "keys": keys,
        "columns": columns,
        **table.told(),
    }


async def _ask(service: Service, kind: str, request: Request) -> Response:
    table = service.table(request.path_params["table"])
    form = wanted_form(request.headers)
    asked = question(kind, await parameters(request))
    write = as_arrow if form == ARROW else as_json
    body = await service.ask(table, asked, write)
    return Response(body, media_type=form if form == ARROW else JSON, headers={"Cache-Control": "no-store"})


async def _live(service: Service, request: Request) -> Any:
    table = service.table(request.path_params["table"])
    given = await parameters(request)
    kinds, intervals = given.pop("question", ["rows"]), given.pop("interval", ["1s"])
    if len(kinds) > 1 or len(intervals) > 1:
        raise BadQuestion("question= and interval= may each be given once")
    try:
        interval = microseconds(intervals[0]) / 1e6
    except ValueError as error:
        raise BadQuestion(f"interval: {error}") from None
    if interval < SHORTEST_MS / 1000:
        raise BadQuestion(f"interval is {intervals[0]!r}; it may be {SHORTEST_MS}ms at the shortest")
    last = request.headers.get("last-event-id")
    return LiveView(service, table, question(kinds[0], given), interval, last)


async def _document(request: Request) -> Response:
    return JSONResponse(document())


async def _page(request: Request) -> Response:
    return page()


async def _starter(request: Request) -> Response:
    return starter()
