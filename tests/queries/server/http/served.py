"""Servers of a fed table: in this process without a port, and on a port that is free."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import httpx

from streamgauge.operators.kafka.outgoing_message import Outgoing
from streamgauge.queries.server.http.app import application
from streamgauge.queries.server.http.server import QueryServer
from streamgauge.queries.server.http.service import Service

from ...logs import Fed, deltas, messages, rows

TOKEN = "0123456789abcdef0123456789abcdef"


@cache
def sent() -> list[Outgoing]:
    """What a group has written of six minutes."""
    return messages(deltas(rows(seed=7, minutes=6)))


def fed(count: int | None = None) -> Fed:
    return Fed().feed(sent()[:count])


def responses(*paths: str, token: str | None = None, service: Service | None = None, **more: Any) -> Any:
    """The responses of a server without a port; one alone for one path."""
    service = service or Service({"posts": fed().table})

    async def ask() -> list[httpx.Response]:
        transport = httpx.ASGITransport(application(service, token))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost:8055") as client:
            return [await client.request(more.pop("method", "GET"), path, **more) for path in paths]

    result = asyncio.run(ask())
    return result[0] if len(result) == 1 else result


@contextmanager
def serving(service: Service, **options: Any) -> Iterator[QueryServer]:
    """A server on a free port of this machine."""
    server = QueryServer(service, port=0, **options)
    thread = server.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join(120)
        assert not thread.is_alive()
