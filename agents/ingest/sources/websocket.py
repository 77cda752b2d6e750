"""A feed over a WebSocket: each text or binary message is a message. Reconnects resume at the feed's
cursor."""

from __future__ import annotations

import json
import logging
import random
import re
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from websockets.exceptions import InvalidHandshake, InvalidMessage, InvalidURI, WebSocketException
from websockets.sync.client import ClientConnection, connect

from ..batch import Batch, IngestError, Positions
from ..component import STOPPED, Place
from ..inbox import CAPACITY, Arrival, Inbox

log = logging.getLogger("streamgauge.ingest")

_PART = "cursor"
_AGAIN = "seen before"
_FIRST_SECONDS, _LONGEST_SECONDS = 0.5, 30.0
_STEADY_SECONDS = 10.0
"""A feed that closes connections sooner than this may limit them: the next attempt waits twice as long."""
_MOST_RETRY_SECONDS = 600.0
_PING_SECONDS = 20.0
"""The interval of pings, and the timeout for an answer."""
_SHOWN = 300
"""The number of characters of a feed's error in a warning."""
_LARGEST = 16 * 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class Websocket:
    """The feed at `url`; the texts `subscribe` are sent to it after each connection.

    With `cursor`, the name of a field that increases from message to message (``time_us``), a connection
    after a break or a restart requests messages since then, by the URL parameter `cursor_parameter`. Messages
    that the feed repeats are left out. Without a cursor, messages in between are lost, and a warning says for
    how long. `key` names the field that is a message's key. The text `heartbeat` is sent every
    `heartbeat_seconds`, for feeds that close silent connections. With `sequence`, the name of a field that is
    one higher in each message, a warning says how many messages are missing; with `sequence_by` it is counted
    for each value of that field. ``data.t`` is the field ``t`` of ``data``, or of each of its elements if it
    is a list. A message that matches the regular expression `errors` is also quoted in a warning. After a
    feed has limited connections, the next attempt waits for its ``Retry-After``.
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
    errors: str = ""
    capacity: int = CAPACITY

    def __post_init__(self) -> None:
        if not self.heartbeat_seconds > 0:
            raise ValueError(f"heartbeat_seconds must be above 0, got {self.heartbeat_seconds}")
        if urlsplit(self.url).scheme not in ("ws", "wss"):
            raise ValueError(f"url must begin with ws:// or wss://, got {self.url!r}")
        try:
            re.compile(self.errors)
        except re.error as error:
            raise ValueError(f"errors must be a regular expression, got {self.errors!r}: {error}") from None

    def open(self, place: Place, positions: Positions) -> WebsocketSource:
        """See `SourceSettings`."""
        return WebsocketSource(self, (positions.get(_PART) or {}).get("cursor"))


class WebsocketSource:
    """A `Source` of a feed's messages after `cursor`. Raises `IngestError` for a URL that leads nowhere."""

    waited_for = finite = False

    def __init__(self, settings: Websocket, cursor: int | None) -> None:
        self._settings, self._cursor = settings, cursor
        # A connection repeats earlier messages up to this cursor.
        self._given_again: int | None = None
        self._warned = False
        self._errors = re.compile(settings.errors) if settings.errors else None
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
        """See `Source`; for a feed, this is only an estimate."""
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
        """The URL without possible secrets."""
        parts = urlsplit(self._settings.url)
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))

    def _follow(self) -> None:
        try:
            self._follow_until_closed()
        except Exception as error:
            self._error = error

    def _follow_until_closed(self) -> None:
        pause, left = _FIRST_SECONDS, None
        while not self._closing.is_set():
            connected = retry_after = None
            try:
                with self._connect() as connection:
                    self._connection, connected = connection, time.monotonic()
                    for text in self._settings.subscribe:
                        connection.send(text)
                    if left is not None:
                        self._report_gap(connected - left)
                    for message in self._messages(connection):
                        left = time.monotonic()
                        if not self._take(message):
                            return
            except (InvalidURI, InvalidHandshake) as error:
                if left is None and not _may_pass(error):
                    raise
                why: Exception = error
                retry_after = _retry_after(error)
            except (WebSocketException, OSError, TimeoutError) as error:
                why = error
            if self._closing.is_set():
                return
            left = left or time.monotonic()
            if connected is not None and time.monotonic() - connected >= _STEADY_SECONDS:
                pause = _FIRST_SECONDS
            seconds = max(pause * random.uniform(1.0, 1.2), retry_after or 0.0)
            log.warning("%s: %s; reconnecting in %.1f s", self._shown, why, seconds)
            self._closing.wait(seconds)
            pause = min(2 * pause, _LONGEST_SECONDS)

    def _connect(self) -> ClientConnection:
        """Connect from the feed's cursor on."""
        self._given_again = self._cursor
        return connect(
            self._url(),
            max_size=_LARGEST,
            open_timeout=15,
            close_timeout=2,
            ping_interval=_PING_SECONDS,
            ping_timeout=_PING_SECONDS,
        )

    def _messages(self, connection: ClientConnection) -> Iterator[str | bytes]:
        """Yield a connection's messages until it is closed, with heartbeats in between."""
        due = time.monotonic() + self._settings.heartbeat_seconds
        while True:
            now = time.monotonic()
            if self._settings.heartbeat and now >= due:
                connection.send(self._settings.heartbeat)
                due = now + self._settings.heartbeat_seconds
            with suppress(TimeoutError):
                yield connection.recv(timeout=due - now if self._settings.heartbeat else None)

    def _check_sequence(self, fields: dict[str, Any]) -> None:
        """Warn if messages are missing before this one. A number that is not higher changes nothing."""
        numbers = _all_at(fields, self._settings.sequence)
        names = _all_at(fields, self._settings.sequence_by) if self._settings.sequence_by else [""]
        for number, name in zip(numbers, names * len(numbers) if len(names) == 1 else names):
            if type(number) is not int:
                continue
            by = str(name)
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
                "%s was unreachable for %.1f s; messages sent in that time are lost", self._shown, seconds
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
        if self._errors is not None and self._errors.search(text := value.decode(errors="replace")):
            log.warning("%s reports: %s", self._shown, text[:_SHOWN])
        wanted = self._settings.cursor or self._settings.key or self._settings.sequence
        fields = _fields(value) if wanted else {}
        if self._settings.sequence:
            self._check_sequence(fields)
        if self._settings.cursor:
            cursor = fields.get(self._settings.cursor)
            if type(cursor) is int:
                if self._given_again is not None and cursor <= self._given_again:
                    self.inbox.drop(1, _AGAIN)
                    return True
                self._cursor = cursor if self._cursor is None else max(cursor, self._cursor)
                position = {"cursor": self._cursor}
            elif not self._warned:
                self._warned = True
                log.warning(
                    "%s sent a message whose %s is not an integer; a reconnect may lose or repeat such "
                    "messages",
                    self._shown,
                    self._settings.cursor,
                )
        key = fields.get(self._settings.key) if self._settings.key else None
        keys = None if not self._settings.key else [None if key is None else str(key).encode()]
        if self.inbox.put(Arrival([value], keys, position=position)):
            return True
        self.inbox.drop(1, STOPPED)
        return False


def _all_at(fields: Any, path: str) -> list[Any]:
    """Return the fields at a path such as ``data.t``, one for each element of a list on the way.

    >>> _all_at({"data": [{"t": 1}, {"t": 2}, {}]}, "data.t")
    [1, 2, None]
    """
    parts = [fields]
    for name in path.split("."):
        parts = [part for one in parts for part in (one if isinstance(one, list) else [one])]
        parts = [one.get(name) if isinstance(one, dict) else None for one in parts]
    return parts


def _fields(value: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(value)
    except ValueError:
        return {}
    return fields if isinstance(fields, dict) else {}


def _may_pass(error: Exception) -> bool:
    """Whether a server's error may be transient."""
    response = getattr(error, "response", None)
    limited = response is not None and response.status_code in (429, 500, 502, 503, 504)
    return limited or isinstance(error, InvalidMessage)


def _retry_after(error: Exception) -> float | None:
    """Return the seconds of a server's Retry-After, if any."""
    response = getattr(error, "response", None)
    given = None if response is None else response.headers.get("Retry-After")
    if given is None:
        return None
    try:
        seconds = float(given)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(given) - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError):
            return None
    return min(max(seconds, 0.0), _MOST_RETRY_SECONDS)
