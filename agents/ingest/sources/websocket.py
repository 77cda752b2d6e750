"""A feed over a WebSocket: each text or binary message is a message; connected again, from the feed's cursor
on.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from websockets.exceptions import (
    ConnectionClosed,
    ConnectionClosedOK,
    InvalidHandshake,
    InvalidURI,
    WebSocketException,
)
from websockets.sync.client import ClientConnection, connect

from ..batch import Batch, IngestError, Positions
from ..component import STOPPED, Place
from ..inbox import CAPACITY, Arrival, Inbox

log = logging.getLogger("streamgauge.ingest")

_PART = "cursor"
_AGAIN = "seen before"
_FIRST_SECONDS, _LONGEST_SECONDS = 0.5, 30.0
_LARGEST = 16 * 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class Websocket:
    """The feed at `url`; the texts `subscribe` are sent to it after each connection.

    With `cursor`, the name of a field that grows from message to message (``time_us``), the connection after
    a break or a restart asks for what came since: by the parameter `cursor_parameter` of the URL. What the
    feed then sends again is left out. Without one, what was sent in between is lost, and a warning says for
    how long. `key` names the field that is a message's key. The text `heartbeat` is sent every
    `heartbeat_seconds`, to feeds that close a connection over which they hear nothing. With `sequence`, the
    name of a field that is one higher in each message, a warning says how many messages are missing; with
    `sequence_by` it counts up for each value of that field. ``data.t`` is the field ``t`` of ``data``.
    """

    url: str
    subscribe: Sequence[str] = ()
    cursor: str = ""
    cursor_parameter: str = "cursor"
    key: str = ""
    heartbeat: str = ""
    heartbeat_seconds: float = 20.0
    sequence: str = ""
    sequence_by: str = ""
    capacity: int = CAPACITY

    def __post_init__(self) -> None:
        if not self.heartbeat_seconds > 0:
            raise ValueError(f"heartbeat_seconds must be above 0, got {self.heartbeat_seconds}")
        if urlsplit(self.url).scheme not in ("ws", "wss"):
            raise ValueError(f"url must begin with ws:// or wss://, got {self.url!r}")

    def open(self, place: Place, positions: Positions) -> WebsocketSource:
        """See `SourceSettings`."""
        return WebsocketSource(self, (positions.get(_PART) or {}).get("cursor"))


class WebsocketSource:
    """A `Source` of a feed's messages, behind `cursor`. Raises `IngestError` for a URL that leads nowhere."""

    waited_for = finite = False

    def __init__(self, settings: Websocket, cursor: int | None) -> None:
        self._settings, self._cursor = settings, cursor
        self.volatile = not settings.cursor
        self._sequences: dict[str, int] = {}
        self.inbox = Inbox(settings.capacity)
        self._closing = threading.Event()
        self._connection: ClientConnection | None = None
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._follow, name="ingest websocket", daemon=True)
        self._thread.start()

    @property
    def ended(self) -> bool:
        """See `Source`: as far as anybody can say of a feed."""
        return self.inbox.empty and not (self._closing.is_set() and self._thread.is_alive())

    def read(self, seconds: float) -> Batch | None:
        """See `Source`."""
        batch = self.inbox.read(seconds, "feed", _PART)
        if batch is None and self._error is not None:
            raise IngestError(f"{self._shown} can't be followed: {self._error}")
        return batch

    def drain(self) -> None:
        """See `DrainedSource`."""
        self._closing.set()
        if (connection := self._connection) is not None:
            connection.close()

    def discard(self) -> int:
        """See `DrainedSource`."""
        self.inbox.closed = True
        self.drain()
        self._thread.join(5)
        return self.inbox.discard()

    def close(self) -> None:
        """See `Source`."""
        self._closing.set()
        self.inbox.close()
        self.drain()
        self._thread.join(5)

    @property
    def _shown(self) -> str:
        """The URL without what may be secret in it."""
        parts = urlsplit(self._settings.url)
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))

    def _follow(self) -> None:
        pause, left = _FIRST_SECONDS, None
        while not self._closing.is_set():
            try:
                with connect(self._url(), max_size=_LARGEST, open_timeout=15) as connection:
                    self._connection = connection
                    for text in self._settings.subscribe:
                        connection.send(text)
                    if left is not None:
                        self._report_gap(time.monotonic() - left)
                    for message in self._messages(connection):
                        pause, left = _FIRST_SECONDS, time.monotonic()
                        if not self._take(message):
                            return
            except (InvalidURI, InvalidHandshake) as error:
                if left is None and not _may_pass(error):
                    self._error = error
                    return
                why: Exception = error
            except (ConnectionClosed, WebSocketException, OSError, TimeoutError) as error:
                why = error
            else:
                why = ConnectionError("it was closed")
            if self._closing.is_set():
                return
            left = left or time.monotonic()
            log.warning("%s: %s; reconnecting in %.1f s", self._shown, why, pause)
            self._closing.wait(pause)
            pause = min(2 * pause, _LONGEST_SECONDS)

    def _messages(self, connection: ClientConnection) -> Iterator[str | bytes]:
        """What comes over a connection until it is closed in order, with heartbeats in between."""
        due = time.monotonic() + self._settings.heartbeat_seconds
        while True:
            now = time.monotonic()
            if self._settings.heartbeat and now >= due:
                connection.send(self._settings.heartbeat)
                due = now + self._settings.heartbeat_seconds
            with suppress(TimeoutError):
                try:
                    yield connection.recv(timeout=due - now if self._settings.heartbeat else None)
                except ConnectionClosedOK:
                    return

    def _check_sequence(self, fields: dict[str, Any]) -> None:
        """Warn if messages are missing before this one. A number that is not higher begins nothing new."""
        number = _at(fields, self._settings.sequence)
        if type(number) is not int:
            return
        by = str(_at(fields, self._settings.sequence_by)) if self._settings.sequence_by else ""
        before = self._sequences.get(by, number - 1)
        if number > before + 1:
            log.warning(
                "%s: %d messages%s are missing (%s %d to %d)",
                self._shown,
                number - before - 1,
                by and f" of {by}",
                self._settings.sequence,
                before + 1,
                number - 1,
            )
        self._sequences[by] = max(before, number)

    def _report_gap(self, seconds: float) -> None:
        if not self._settings.cursor:
            log.warning(
                "%s was unreachable for %.1f s; its messages of that time are lost", self._shown, seconds
            )

    def _url(self) -> str:
        if not self._settings.cursor or self._cursor is None:
            return self._settings.url
        parts = urlsplit(self._settings.url)
        name = self._settings.cursor_parameter
        query = [(key, value) for key, value in parse_qsl(parts.query, True) if key != name]
        return urlunsplit(parts._replace(query=urlencode([*query, (name, self._cursor)])))

    def _take(self, message: str | bytes) -> bool:
        value = message.encode() if isinstance(message, str) else message
        position = None
        wanted = self._settings.cursor or self._settings.key or self._settings.sequence
        fields = _fields(value) if wanted else {}
        if self._settings.sequence:
            self._check_sequence(fields)
        if self._settings.cursor:
            cursor = fields.get(self._settings.cursor)
            if isinstance(cursor, int):
                if self._cursor is not None and cursor <= self._cursor:
                    self.inbox.drop(1, _AGAIN)
                    return True
                self._cursor, position = cursor, {"cursor": cursor}
        key = fields.get(self._settings.key) if self._settings.key else None
        keys = None if not self._settings.key else [None if key is None else str(key).encode()]
        if self.inbox.put(Arrival([value], keys, position=position)):
            return True
        self.inbox.drop(1, STOPPED)
        return False


def _at(fields: Any, path: str) -> Any:
    """The field at a path such as ``data.t``, or None."""
    for name in path.split(".") if path else ():
        fields = fields.get(name) if isinstance(fields, dict) else None
    return fields


def _fields(value: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(value)
    except ValueError:
        return {}
    return fields if isinstance(fields, dict) else {}


def _may_pass(error: Exception) -> bool:
    """Whether a server that answered with an error may answer otherwise later."""
    response = getattr(error, "response", None)
    return response is not None and response.status_code in (429, 500, 502, 503, 504)
