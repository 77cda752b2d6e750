"""The server's application: every question about every table, live views, health, and documentation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from ....operators.table.schema import aggregates_of, keys_of
from ....operators.table.windows import declared_windows
from ....operators.windows.durations import microseconds
from ...answers.answers import standing
from ...question.question import KINDS, BadQuestion, question
from ...question.question_kinds import QUESTION_KINDS
from ...response_format import ARROW, JSON, as_arrow, as_json, sql_json
from ...views.view import NotReady, ServedTable
from .auth import Guard
from .errors import HANDLERS
from .events import LONGEST_SECONDS, SHORTEST_MS
from .live import LiveView
from .openapi import assets, document, page, starter
from .request_params import parameters, statement, wanted_form
from .responses import JSONAnswer
from .service import Service

Endpoint = Callable[[Request], Awaitable[Any]]


def application(
    service: Service,
    token: str | None = None,
    routes: Sequence[BaseRoute] = (),
    open_to_all: Sequence[str] = (),
) -> Starlette:
    """The ASGI application of a service.

    `routes` are additional routes, such as ``/metrics``; one of them may replace ``/``. Paths below
    `open_to_all` need no token, so they must not reveal anything about any table.

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
    all_routes: list[BaseRoute] = [Route(path, endpoint) for path, endpoint in bound.items()]
    all_routes += [
        Route(f"/tables/{{table}}/{kind}", partial(_ask, service, kind), methods=["GET", "POST"])
        for kind in KINDS
    ]
    all_routes.append(Route("/sql", partial(_sql, service), methods=["POST"]))
    all_routes = [*routes, *all_routes, *assets("/docs/assets")]
    guard = Middleware(Guard, token=token, open_to_all=tuple(open_to_all))
    return Starlette(routes=all_routes, middleware=[guard], exception_handlers=HANDLERS)


async def _home(request: Request) -> Response:
    return RedirectResponse("/docs")


async def _health(service: Service, request: Request) -> Response:
    return JSONAnswer({"status": "alive", "tables": len(service.tables), "live": service.views})


async def _ready(service: Service, request: Request) -> Response:
    """Whether every table can answer: its log was read completely once, and is being followed."""
    waiting = {name: why for name, table in service.tables.items() if (why := _why_not(table))}
    return JSONAnswer({"ready": not waiting, "waiting": waiting}, 503 if waiting else 200)


def _why_not(table: ServedTable) -> str:
    try:
        view = table.view()
    except NotReady:
        return "it has not been read yet"
    if view.stale is not None:
        return "it is stale"
    return "" if view.ready else "its log is being read"


async def _tables(service: Service, request: Request) -> Response:
    tables = await service.in_thread(lambda: [_described(table) for table in service.tables.values()])
    return JSONAnswer({"tables": tables})


async def _table(service: Service, request: Request) -> Response:
    table = service.table(request.path_params["table"])
    return JSONAnswer(await service.in_thread(lambda: _described(table)))


def _described(table: ServedTable) -> dict[str, Any]:
    """A table's description and progress, as plain JSON."""
    try:
        view = table.view()
    except NotReady as error:
        return {"table": table.name, "ready": False, "waiting": str(error)}
    windows = declared_windows(view.schema)
    columns = [
        {
            "name": name,
            **aggregate.definition(),
            "questions": ["rows", *(kind for kind, one in QUESTION_KINDS.items() if one.fits(aggregate))],
        }
        for name, aggregate in aggregates_of(view.schema).items()
    ]
    keys = [{"name": key, "type": str(view.schema.field(key).type)} for key in keys_of(view.schema)]
    return {
        **{name: value for name, value in standing(view).items() if name != "question"},
        "ready": view.ready,
        "rows": sum(window.rows for window in view.windows),
        "window": None if windows is None else windows.definition(),
        "keys": keys,
        "columns": columns,
        **table.describe(),
    }


async def _ask(service: Service, kind: str, request: Request) -> Response:
    table = service.table(request.path_params["table"])
    form = wanted_form(request.headers)
    query = question(kind, await parameters(request))
    write = as_arrow if form == ARROW else as_json
    body = await service.ask(table, query, write)
    return Response(body, media_type=form if form == ARROW else JSON, headers={"Cache-Control": "no-store"})


async def _sql(service: Service, request: Request) -> Response:
    form = wanted_form(request.headers)
    text = await statement(request)
    body = await service.sql(text, as_arrow if form == ARROW else sql_json)
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
    if not SHORTEST_MS / 1000 <= interval <= LONGEST_SECONDS:
        raise BadQuestion(f"interval must be from {SHORTEST_MS}ms to 1h, got {intervals[0][:80]!r}")
    last = request.headers.get("last-event-id")
    return LiveView(service, table, question(kinds[0], given), interval, last)


async def _document(request: Request) -> Response:
    return JSONAnswer(document())


async def _page(request: Request) -> Response:
    return page()


async def _starter(request: Request) -> Response:
    return starter()
