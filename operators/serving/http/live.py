"""Live answers as server-sent events: the present answer, and again after each change.

An event's id is a digest of what it says. Who comes back with the last one it has seen gets the next answer
that says something else, whichever server it comes back to. An answer tells all there is, so whoever was
away, or reads slowly, misses nothing by getting only the latest.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from typing import Any

import anyio

from ..answers import TooMuch
from ..question import BadQuestion, Question
from ..rollups import OutOfTime
from ..view import NotReady, ServedTable
from .problems import Problem, problem_of
from .service import Service
from .writing import told

log = logging.getLogger("streamgauge.serving")

SHORTEST_MS = 50
_ALIVE_SECONDS = 15.0
_SLOW_SECONDS = 30.0
_PASSING = ("lag", "watermark")


class LiveView:
    """An ASGI response: one client's view of one question, until it or the server ends.

    A client that doesn't take an event for half a minute is let go.
    """

    def __init__(
        self, service: Service, table: ServedTable, question: Question, interval: float, last: str | None
    ) -> None:
        self._service, self._table, self._question = service, table, question
        self._interval = interval
        self._last = last

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Send events until the client leaves, the server stops, or nothing can come any more."""
        if self._service.views >= self._service.live:
            busy = Problem(
                503,
                "Too many live views",
                f"there are {self._service.views}; close one, or ask without live",
                5,
            )
            await busy.response()(scope, receive, send)
            return
        self._service.views += 1
        try:
            await self._service.ask(self._table, self._question, lambda answer: None)
        except (BadQuestion, TooMuch) as error:
            problem = problem_of(error)
            assert problem is not None
            await problem.response()(scope, receive, send)
            self._service.views -= 1
            return
        except (NotReady, OutOfTime, Problem):
            pass  # which an event tells: it passes
        try:
            await self._events(receive, send)
        except TimeoutError:
            log.warning("a live view of %s is ended: its client takes nothing", self._table.name)
        finally:
            self._service.views -= 1

    async def _events(self, receive: Any, send: Any) -> None:
        headers = [
            (b"content-type", b"text/event-stream; charset=utf-8"),
            (b"cache-control", b"no-store"),
            (b"x-accel-buffering", b"no"),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        changed = asyncio.Event()
        loop = asyncio.get_running_loop()

        def wake() -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(changed.set)

        end = self._table.watch(wake)
        gone = asyncio.ensure_future(_gone(receive))
        stopping = asyncio.ensure_future(self._service.stopping.wait())
        try:
            while not gone.done() and not stopping.done():
                changed.clear()
                await self._send(send, await self._event())
                await _first(self._interval, gone, stopping)
                waiting = asyncio.ensure_future(changed.wait())
                while not waiting.done() and not gone.done() and not stopping.done():
                    if not await _first(_ALIVE_SECONDS, gone, stopping, waiting):
                        await self._send(send, b": still here\n\n")
                waiting.cancel()
            if stopping.done() and not gone.done():
                with anyio.move_on_after(1.0):
                    await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            end()
            gone.cancel()
            stopping.cancel()

    async def _event(self) -> bytes:
        """The present answer as an event; nothing if the client has it."""
        try:
            found = await self._service.ask(self._table, self._question, told)
            name = "answer"
        except Exception as error:
            problem = problem_of(error)
            if problem is None:
                raise
            found, name = problem.told(), "problem"
        lasting = {key: value for key, value in found.items() if key not in _PASSING}
        text = json.dumps(lasting, ensure_ascii=False)
        digest = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
        if digest == self._last:
            return b""
        self._last = digest
        return f"event: {name}\nid: {digest}\ndata: {json.dumps(found, ensure_ascii=False)}\n\n".encode()

    async def _send(self, send: Any, data: bytes) -> None:
        if data:
            with anyio.fail_after(_SLOW_SECONDS):
                await send({"type": "http.response.body", "body": data, "more_body": True})


async def _gone(receive: Any) -> None:
    """Comes back when the client has left."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _first(seconds: float, *waited: asyncio.Future[Any]) -> bool:
    """Wait for any of these; False after so many seconds."""
    done, _ = await asyncio.wait(waited, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    return bool(done)
