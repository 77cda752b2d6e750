"""Time and connection limits for slow or malicious clients.

uvicorn waits for the rest of a request without a limit, and counts each connection against a single limit,
including health checks. Here a connection that has not sent a complete request costs other clients nothing:
it has a limited number of seconds, and if too many wait, the longest waiting one is closed.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from .errors import Problem

ALWAYS_ANSWERED = ("/health", "/ready")


@dataclass(frozen=True)
class Patience:
    """What a server grants to clients.

    A request's head must be complete `head_seconds` after its first byte, or after the connection was opened,
    and its body `body_seconds` after its head; a client must read some of its answer every `write_seconds`.
    Between two requests uvicorn closes a connection after 5 seconds. At most `waiting` connections without a
    complete request are kept, and `waiting_by_address` from one address.
    """

    head_seconds: float = 10.0
    body_seconds: float = 30.0
    write_seconds: float = 30.0
    waiting: int = 384
    waiting_by_address: int = 128


class Waiting:
    """A server's connections that have not sent a complete request, the longest waiting first."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._connections: dict[PatientProtocol, str] = {}
        self._by_address: Counter[str] = Counter()

    def add(self, connection: PatientProtocol, address: str) -> None:
        """Add a connection; if there are too many, close the longest waiting one of the busiest address."""
        if connection in self._connections:
            return
        self._connections[connection] = address
        self._by_address[address] += 1
        if self._by_address[address] > self._patience.waiting_by_address:
            self._close_one(address)
        elif len(self._connections) > self._patience.waiting:
            self._close_one(self._by_address.most_common(1)[0][0])

    def remove(self, connection: PatientProtocol) -> None:
        """Stop counting a connection."""
        address = self._connections.pop(connection, None)
        if address is not None:
            self._by_address[address] -= 1
            if not self._by_address[address]:
                del self._by_address[address]

    def _close_one(self, address: str) -> None:
        longest = next(one for one, its in self._connections.items() if its == address)
        self.remove(longest)
        longest.transport.abort()


class PatientProtocol(H11Protocol):
    """uvicorn's protocol, with time limits for sending and reading."""

    def __init__(self, *given: Any, patience: Patience, waiting: Waiting, **named: Any) -> None:
        super().__init__(*given, **named)
        self._patience, self._waiting = patience, waiting
        self._timer: asyncio.TimerHandle | None = None
        self._timed: str | None = None
        self._writing: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start waiting for the head of the first request."""
        super().connection_made(transport)
        self._time("head")

    def data_received(self, data: bytes) -> None:
        """Process data, and wait for the missing part of the request."""
        super().data_received(data)
        self._await_client()

    def on_response_complete(self) -> None:
        """After an answer, wait for the rest of its request, or for the next one."""
        super().on_response_complete()
        self._await_client()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._time(None)
        self._waiting.remove(self)
        if self._writing is not None:
            self._writing.cancel()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """The client reads more slowly than the server sends."""
        super().pause_writing()
        self._check_writing(None)

    def resume_writing(self) -> None:
        """The client has read what was sent."""
        super().resume_writing()
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None

    def _await_client(self) -> None:
        """Start the timer for what the client must send next: a head, a body or nothing."""
        if self.transport.is_closing():
            self._time(None)
        elif self.conn.their_state is h11.SEND_BODY:
            self._time("body")
        elif self.conn.their_state is not h11.IDLE:
            self._time(None)
            self._waiting.remove(self)
        elif self.timeout_keep_alive_task is not None:
            # Between two requests uvicorn uses its own timer, until the first byte of the next.
            self._time(None)
            self._waiting.add(self, self._address)
        else:
            self._time("head")

    @property
    def _address(self) -> str:
        return self.client[0] if self.client else ""

    def _time(self, part: str | None) -> None:
        """Start the timer of a part of the request, unless it is running."""
        if part == self._timed:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._timed = part
        if part is not None:
            self._waiting.add(self, self._address)
            seconds = self._patience.head_seconds if part == "head" else self._patience.body_seconds
            self._timer = self.loop.call_later(seconds, self._too_slow, part, seconds)

    def _too_slow(self, part: str, seconds: float) -> None:
        """Answer an incomplete request with 408, unless an answer was sent, and close the connection."""
        if not self.transport.is_closing() and self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            problem = Problem(
                408,
                "The request is not complete",
                f"its {part} must be complete within {seconds:g} seconds; send it again",
            )
            answer = problem.response()
            self.transport.write(
                b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\n"
                + b"".join(b"%s: %s\r\n" % pair for pair in answer.raw_headers)
                + b"\r\n"
                + bytes(answer.body)
            )
        self.transport.close()

    def _check_writing(self, before: int | None) -> None:
        """Close a connection whose client has read nothing since the last check."""
        left = self.transport.get_write_buffer_size()
        if before is not None and left >= before:
            self.transport.abort()
            return
        self._writing = self.loop.call_later(self._patience.write_seconds, self._check_writing, left)


def patient(patience: Patience | None = None) -> Callable[..., PatientProtocol]:
    """The class for uvicorn's `http=`, for one server."""
    patience = patience or Patience()
    return partial(PatientProtocol, patience=patience, waiting=Waiting(patience))


class InProgress:
    """Answers 503 if `most` requests are in progress; health and readiness are always answered."""

    def __init__(self, app: Any, most: int) -> None:
        self._app, self._most, self._now = app, most, 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request, or report that there are too many."""
        if scope["type"] != "http" or scope["path"] in ALWAYS_ANSWERED:
            await self._app(scope, receive, send)
            return
        if self._now >= self._most:
            busy = Problem(
                503, "Too many requests at once", f"{self._most:,} are being answered; ask again later", 1
            )
            await busy.response()(scope, receive, send)
            return
        self._now += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._now -= 1
