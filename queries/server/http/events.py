"""Server-sent events for anything that changes: the current state, and again after each change.

An event's id is a digest of its content. A client that returns with the last id it has seen gets the next
event with different content, whichever server it returns to. An event contains the whole answer, so a client
that was away, or reads slowly, misses nothing by getting only the latest.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import anyio

from ...response_format import json_bytes
from .errors import Problem
from .service import Service

log = logging.getLogger("streamgauge.serving")

SHORTEST_MS = 50
LONGEST_SECONDS = 3_600
_ALIVE_SECONDS = 15.0
_SLOW_SECONDS = 30.0


class EventStream(ABC):
    """An ASGI response: one client's live view, until it or the server ends.

    A client that doesn't accept an event for half a minute is disconnected. At most one event is sent per
    `interval` seconds; `last` is the id of the event that the client has.
    """

    def __init__(self, service: Service, interval: float, last: str | None) -> None:
        self._service = service
        self._interval = interval
        self._last = last

    @property
    @abstractmethod
    def about(self) -> str:
        """Its subject, for the log."""

    async def refusal(self) -> Problem | None:
        """Why nothing can be sent at all; None if events can be sent."""
        return None

    @abstractmethod
    def watch(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call `changed` from any thread after each change; returns a function that ends this."""

    @abstractmethod
    async def current_event(self) -> tuple[str, Mapping[str, Any], tuple[str, ...]]:
        """The current event's name and content, and the parts whose changes alone don't cause an event."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Send events until the client leaves, the server stops, or no more can follow."""
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
            if (problem := await self.refusal()) is not None:
                await problem.response()(scope, receive, send)
            else:
                await self._events(receive, send)
        except TimeoutError:
            log.warning("a live view of %s was closed: its client reads nothing", self.about)
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

        end = self.watch(wake)
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
        """The current event; empty if the client has it."""
        name, content, passing = await self.current_event()
        lasting = {key: value for key, value in content.items() if key not in passing}
        digest = hashlib.blake2b(json_bytes(lasting), digest_size=8).hexdigest()
        if digest == self._last:
            return b""
        self._last = digest
        return f"event: {name}\nid: {digest}\ndata: ".encode() + json_bytes(content) + b"\n\n"

    async def _send(self, send: Any, data: bytes) -> None:
        if data:
            with anyio.fail_after(_SLOW_SECONDS):
                await send({"type": "http.response.body", "body": data, "more_body": True})


async def _gone(receive: Any) -> None:
    """Return when the client has left."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _first(seconds: float, *waited: asyncio.Future[Any]) -> bool:
    """Wait for any of these; False after `seconds`."""
    done, _ = await asyncio.wait(waited, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    return bool(done)
