"""A WebSocket server on loopback that sends a recorded feed: by a cursor, or to who subscribes."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from urllib.parse import parse_qs, urlsplit

from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.sync.server import ServerConnection, serve


class FeedServer:
    """Sends `messages` to each connection, those behind its `cursor` (a field `time_us`) if it names one.

    With `subscribed`, it waits for so many texts first. It breaks a connection after `each` messages.
    `requests` are the URLs' paths, `texts` what was sent to it. The first requests get `refusals`, statuses
    with headers. If it is `live`, what it has sent
    once doesn't come again. `times` are those of the requests.
    """

    def __init__(
        self,
        messages: Sequence[bytes],
        each: int = 0,
        subscribed: int = 0,
        refusals: Sequence[tuple[int, dict[str, str]]] = (),
        live: bool = False,
    ) -> None:
        self.messages, self.each, self.subscribed = list(messages), each, subscribed
        self.refusals, self.live, self._sent = list(refusals), live, 0
        self.times: list[float] = []
        self.requests: list[str] = []
        self.texts: list[str | bytes] = []
        self._over = threading.Event()
        self._server = serve(self._send, "127.0.0.1", 0, process_request=self._judge)
        self.port: int = self._server.socket.getsockname()[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/subscribe"

    def close(self) -> None:
        self._over.set()
        self._server.shutdown()

    def _judge(self, connection: ServerConnection, request: Request) -> Response | None:
        self.times.append(time.monotonic())
        if not self.refusals:
            return None
        status, headers = self.refusals.pop(0)
        response = connection.respond(status, "later")
        for name, value in headers.items():
            response.headers[name] = value
        return response

    def _send(self, connection: ServerConnection) -> None:
        assert connection.request is not None
        self.requests.append(connection.request.path)
        cursor = int(parse_qs(urlsplit(connection.request.path).query).get("cursor", ["0"])[0])
        try:
            for _ in range(self.subscribed):
                self.texts.append(connection.recv(30))
            sent = 0
            for message in self.messages[self._sent :] if self.live else self.messages:
                # Inclusive, as Jetstream's is.
                if cursor and json.loads(message)["time_us"] < cursor:
                    continue
                connection.send(message.decode())
                sent, self._sent = sent + 1, self._sent + 1
                if self.each and sent >= self.each:
                    return
            while not self._over.is_set():
                with suppress(TimeoutError):
                    self.texts.append(connection.recv(0.1))
        except ConnectionClosed:
            pass
