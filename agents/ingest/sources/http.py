"""Messages sent by POST: the response comes after their delivery, or is 503 while there is no room.

    curl --data-binary @lines.txt localhost:8090
    curl -H 'Content-Type: application/json' -d '[{"user": 1}, {"user": 2}]' localhost:8090

A client that gets no response, or 503, must send again: so a message may arrive twice, and none is lost.
"""

from __future__ import annotations

import asyncio
import codecs
import hmac
import json
import threading
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec
import numpy as np
import pyarrow as pa
import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ....queries.server.http.connections import Patience, patient
from ..batch import Batch, IngestError, Positions
from ..component import Place
from ..inbox import CAPACITY, Arrival, Inbox
from .lines import split_lines

ENCODINGS = ("identity", "gzip", "deflate", "zstd")
"""The supported compressions of bodies."""

_START_SECONDS = 10.0
_PATIENCE = Patience(body_seconds=300.0)  # 64 MiB over a line of 2 Mbit/s
_HERE = ("127.0.0.1", "localhost", "::1")
_AGAIN = {"Retry-After": "1"}


@dataclass(frozen=True, kw_only=True)
class Http:
    """A server on `host` and `port` (0: a free one) that accepts bodies of lines, JSON, or Flume events.

    With ``format="auto"``, a body with the Content-Type of JSON is one message, or one for each element of an
    array, byte for byte as sent; any other body is lines. Flume's format is an array of objects with
    `headers` and a `body`, which is the message. Bodies compressed by gzip, deflate or zstd are decompressed,
    up to `max_body` bytes. An address other than this machine's own needs a `token`, which clients send as
    ``Authorization: Bearer TOKEN``; without one, a browser's requests for pages of other hosts are refused.
    At most `capacity` messages wait; a client waits at most `seconds`.
    """

    port: int = 8090
    host: str = "127.0.0.1"
    format: Literal["auto", "json", "lines", "flume"] = "auto"
    token: str = ""
    capacity: int = CAPACITY
    max_body: int = 64 * 1024 * 1024
    seconds: float = 30.0

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65_535:
            raise ValueError(f"port must be a number from 0 to 65535, got {self.port}")
        if self.host not in _HERE and not self.token:
            raise ValueError(
                f"token is missing: host {self.host!r} lets other machines send messages; set a token"
            )

    def open(self, place: Place, positions: Positions) -> HttpSource:
        """See `SourceSettings`."""
        return HttpSource(self)


class HttpSource:
    """A `Source` of posted messages, listening on `port`. Raises `IngestError` if it can't."""

    waited_for, finite = True, False

    def __init__(self, settings: Http) -> None:
        self._settings = settings
        self.inbox = Inbox(settings.capacity)
        app = Starlette(
            routes=[
                Route("/health", lambda _: JSONResponse({"healthy": True})),
                Route("/{path:path}", self._post, methods=["POST"]),
            ]
        )
        config = uvicorn.Config(
            app,
            host=settings.host,
            port=settings.port,
            log_level="critical",
            access_log=False,
            ws="none",
            http=patient(_PATIENCE),  # type: ignore[arg-type]
            timeout_graceful_shutdown=2,
        )
        self._server = uvicorn.Server(config)
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._serve, name="ingest http", daemon=True)
        self._thread.start()
        deadline = time.monotonic() + _START_SECONDS
        while not self._server.started and self._thread.is_alive() and time.monotonic() < deadline:
            time.sleep(0.01)
        if not self._server.started:
            raise IngestError(
                f"can't listen on {settings.host}:{settings.port}: another program may use the port"
            )
        self.port: int = self._server.servers[0].sockets[0].getsockname()[1]

    @property
    def ended(self) -> bool:
        """See `Source`."""
        return self.inbox.empty

    def read(self, seconds: float) -> Batch | None:
        """See `Source`."""
        return self.inbox.read(seconds)

    def close(self) -> None:
        """See `Source`."""
        self.inbox.close()
        self._server.should_exit = True
        self._thread.join(_START_SECONDS)

    def _serve(self) -> None:
        try:
            asyncio.run(self._server.serve())
        except (SystemExit, OSError) as error:  # uvicorn's way to report that the port is in use
            self._failure = error

    async def _post(self, request: Request) -> Response:
        if (refusal := self._refusal(request)) is not None:
            return refusal
        encoding = request.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ENCODINGS:
            known = ", ".join(ENCODINGS)
            return _problem(
                415, f"Content-Encoding must be one of {known}, got {encoding!r}", {"Accept-Encoding": known}
            )
        try:
            body = await self._body(request)
        except ClientDisconnect:
            return Response(status_code=400)
        if body is None:
            return _problem(
                413,
                f"a body may have at most {self._settings.max_body} bytes; split it into several requests",
            )
        try:
            unpacked = unpack(body, encoding, self._settings.max_body)
            if unpacked is None:
                return _problem(
                    413,
                    f"a body may have at most {self._settings.max_body} bytes uncompressed; split it "
                    "into several requests",
                )
            values = messages_of(unpacked, self._kind(request))
        except ValueError as error:
            return _problem(400, str(error))
        return await self._deliver(values) if values else JSONResponse({"messages": 0})

    def _refusal(self, request: Request) -> Response | None:
        """Return why a request is refused: no token, or a browser sent it for another host's page."""
        if self._settings.token:
            if _authorized(request, self._settings.token):
                return None
            return _problem(401, "the token is missing or wrong; send Authorization: Bearer TOKEN")
        origin = request.headers.get("origin")
        named = [request.headers.get("host", ""), *([] if origin is None else [urlsplit(origin).netloc])]
        if all(urlsplit(f"//{host}").hostname in _HERE for host in named):
            return None
        return _problem(
            421, f"without a token, only requests to {', '.join(_HERE)} are accepted, got {', '.join(named)}"
        )

    async def _body(self, request: Request) -> bytes | None:
        parts, size = [], 0
        async for part in request.stream():
            size += len(part)
            if size > self._settings.max_body:
                return None
            parts.append(part)
        return b"".join(parts)

    def _kind(self, request: Request) -> str:
        if self._settings.format != "auto":
            return self._settings.format
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        return "json" if kind == "application/json" or kind.endswith("+json") else "lines"

    async def _deliver(self, values: Sequence[bytes]) -> Response:
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[str | None] = loop.create_future()

        def report(reason: str | None) -> None:
            def conclude() -> None:
                if not outcome.done():
                    outcome.set_result(reason)

            if not loop.is_closed():
                loop.call_soon_threadsafe(conclude)

        arrival = Arrival(values, acknowledged=lambda: report(None), refused=report)
        if not self.inbox.offer(arrival):
            return _problem(503, "too many messages are waiting; send it again later", _AGAIN)
        try:
            reason = await asyncio.wait_for(outcome, self._settings.seconds)
        except TimeoutError:
            reason = f"not delivered within {self._settings.seconds:g} s; it may still be delivered later"
        if reason is not None:
            return _problem(503, reason, _AGAIN)
        return JSONResponse({"messages": len(values)})


def messages_of(body: bytes, kind: str) -> list[bytes]:
    r"""Return the messages of a body. Raises `ValueError` if it isn't of its kind.

    >>> messages_of(b"one\r\ntwo", "lines"), messages_of(b'[{"a": 1e400}, "b"]', "json")
    ([b'one', b'two'], [b'{"a": 1e400}', b'"b"'])
    >>> messages_of(b'[{"headers": {}, "body": "text"}]', "flume")
    [b'text']
    """
    if kind == "lines":
        block = np.frombuffer(body if body.endswith(b"\n") or not body else body + b"\n", np.uint8)
        starts, lengths = split_lines(block)
        return Batch(block, starts, lengths).values()
    try:
        # Python's parser would also accept UTF-16, from which elements can't be sliced.
        text = body.removeprefix(codecs.BOM_UTF8).strip(b" \t\r\n")
        if text[:1] == b"[" and kind == "json":
            return _elements(text)
        given = _JSON.decode(text.decode())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the body must be JSON: {error}") from None
    if kind != "flume":
        return [text]
    events = given if isinstance(given, list) else [None]
    bodies = [event.get("body") if isinstance(event, dict) else None for event in events]
    if not all(isinstance(one, str) for one in bodies):
        raise ValueError(
            'the body must be an array of events whose body is a string: [{"headers": {}, "body": "…"}]'
        )
    return [str(one).encode(errors="surrogatepass") for one in bodies]


def _elements(body: bytes) -> list[bytes]:
    """Return the elements of an array, each as it was sent."""
    try:
        return [bytes(element) for element in msgspec.json.decode(body, type=list[msgspec.Raw])]
    except msgspec.DecodeError:
        # JSON allows unpaired surrogates, which msgspec doesn't: Python's parser decides.
        _JSON.decode(body.decode())
    text, decoder, elements = body.decode(), _JSON, list[bytes]()
    at = _next_element(text, text.index("[") + 1)
    while text[at] != "]":
        _, end = decoder.raw_decode(text, at)
        elements.append(text[at:end].encode())
        at = _next_element(text, end)
    return elements


def _next_element(text: str, at: int) -> int:
    while text[at] in ", \t\r\n":
        at += 1
    return at


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


_JSON = json.JSONDecoder(parse_constant=_refuse, parse_int=float)
"""Validates JSON; integers may have any number of digits."""


def unpack(body: bytes, encoding: str, most: int) -> bytes | None:
    """Decompress a body; None if it has more than `most` bytes.

    Raises `ValueError` for bytes that aren't of this encoding.

    >>> import gzip
    >>> unpack(gzip.compress(b"one"), "gzip", 10), unpack(gzip.compress(bytes(99)), "gzip", 10)
    (b'one', None)
    """
    if encoding == "identity":
        return body
    try:
        if encoding == "deflate":
            # The standard requires zlib's frame, but some clients send raw deflate.
            window = zlib.MAX_WBITS if body[:1] and body[0] & 0x0F == 8 else -zlib.MAX_WBITS
            stream = zlib.decompressobj(window)
            whole = stream.decompress(body, most + 1)
            if len(whole) <= most and not stream.eof:
                raise ValueError("it is truncated")
            if stream.unused_data:
                raise ValueError(f"{len(stream.unused_data)} bytes follow its end")
        else:
            with pa.CompressedInputStream(
                pa.BufferReader(body), "zstd" if encoding == "zstd" else "gzip"
            ) as file:
                whole = file.read(most + 1)
    except (ValueError, OSError, zlib.error) as error:
        raise ValueError(f"the body isn't {encoding}: {error}") from None
    return whole if len(whole) <= most else None


def _authorized(request: Request, token: str) -> bool:
    kind, _, given = request.headers.get("authorization", "").partition(" ")
    return kind.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), token.encode())


def _problem(status: int, text: str, headers: dict[str, Any] | None = None) -> Response:
    return JSONResponse({"error": text}, status, headers)
