"""Syslog over the network, by UDP and TCP: RFC 3164 and RFC 5424, framed as RFC 6587 has it.

A message is sent as it came, with its priority and header, which the format `syslog` decodes. What begins
with no priority is no syslog, and a dead letter.
"""

from __future__ import annotations

import re
import selectors
import socket
import socketserver
import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from ..batch import Batch, DeadLine, IngestError, Positions
from ..component import STOPPED, Place
from ..inbox import CAPACITY, FULL, Arrival, Inbox

_PRIORITY = re.compile(rb"<(?:\d|[1-9]\d|1[0-8]\d|19[01])>")
_DATAGRAM = 65_535
_RECEIVE_BUFFER = 8 * 1024 * 1024
_BLOCK = 65_536
_QUIET_SECONDS = 0.2
"""At a stop, a connection over which nothing has come for so long is read to its end."""
_NO_PRIORITY = "not syslog: no priority, as in <34>"


@dataclass(frozen=True, kw_only=True)
class SyslogServer:
    """A server on `host` and `port` (0: a free one), for both protocols unless one is named.

    While `capacity` messages wait, TCP's senders wait, and UDP's messages are dropped and counted. A message
    of more than `max_size` bytes is a dead letter.
    """

    port: int = 5514
    host: str = "127.0.0.1"
    protocol: Literal["both", "tcp", "udp"] = "both"
    capacity: int = CAPACITY
    max_size: int = 1024 * 1024

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65_535:
            raise ValueError(f"port must be a number from 0 to 65535, got {self.port}")

    def open(self, place: Place, positions: Positions) -> SyslogSource:
        """See `SourceSettings`."""
        return SyslogSource(self)


class SyslogSource:
    """A `Source` of what is sent; `port` is where it listens. Raises `IngestError` if it can't."""

    waited_for = finite = False
    volatile = True

    def __init__(self, settings: SyslogServer) -> None:
        self.settings = settings
        self.inbox = Inbox(settings.capacity)
        self.draining = threading.Event()
        self._closing = threading.Event()
        self._threads: list[threading.Thread] = []
        self._udp: socket.socket | None = None
        self._tcp: _TcpServer | None = None
        self.port = settings.port
        family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
        try:
            if settings.protocol != "udp":
                self._tcp = _TcpServer((settings.host, self.port), self, family)
                self.port = self._tcp.server_address[1]
            if settings.protocol != "tcp":
                self._udp = socket.socket(family, socket.SOCK_DGRAM)
                self._udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
                self._udp.bind((settings.host, self.port))
                self.port = self._udp.getsockname()[1]
        except OSError as error:
            self.close()
            raise IngestError(
                f"can't listen on {settings.host}:{settings.port}: {error.strerror or error}"
            ) from None
        if self._tcp is not None:
            self._tcp.start()
        if self._udp is not None:
            self._threads.append(threading.Thread(target=self._receive, name="ingest syslog", daemon=True))
            self._threads[0].start()

    @property
    def ended(self) -> bool:
        """See `Source`; what is being received counts as not read."""
        receiving = self.draining.is_set() and any(thread.is_alive() for thread in self._receiving())
        return not receiving and self.inbox.empty

    def read(self, seconds: float) -> Batch | None:
        """See `Source`."""
        return self.inbox.read(seconds)

    def drain(self) -> None:
        """See `DrainedSource`: TCP's senders are told by a half-closed connection, and read to their end."""
        self.draining.set()
        if self._tcp is not None:
            self._tcp.drain()

    def discard(self) -> int:
        """See `DrainedSource`."""
        self.draining.set()
        self._closing.set()
        self.inbox.closed = True
        # Their last messages find the inbox closed, and are counted as dropped.
        for thread in self._receiving():
            thread.join(2)
        return self.inbox.discard()

    def close(self) -> None:
        """See `Source`."""
        self.discard()
        if self._tcp is not None:
            self._tcp.drain()
            self._tcp.server_close()
        if self._udp is not None:
            self._udp.close()

    def _receiving(self) -> list[threading.Thread]:
        """The threads that receive: one for UDP, and one for each connection."""
        return [*self._threads, *(self._tcp.connections if self._tcp is not None else ())]

    @property
    def closing(self) -> bool:
        """Whether nothing may be received any more."""
        return self._closing.is_set()

    def _receive(self) -> None:
        assert self._udp is not None
        self._udp.setblocking(False)
        with selectors.DefaultSelector() as selector:
            selector.register(self._udp, selectors.EVENT_READ)
            while not self._closing.is_set():
                if not selector.select(0.0 if self.draining.is_set() else 0.1):
                    if self.draining.is_set():
                        return
                    continue
                values: list[bytes] = []
                while len(values) < 1_000:
                    try:
                        values.append(self._udp.recv(_DATAGRAM))
                    except BlockingIOError:
                        break
                if values and not self.inbox.offer(self.arrival(values)):
                    self.inbox.drop(len(values), FULL)

    def arrival(self, values: list[bytes]) -> Arrival:
        """Messages, and what is none of syslog."""
        good, dead = [], []
        for value in values:
            value = value.rstrip(b"\r\n\0")
            if len(value) > self.settings.max_size:
                reason = f"{len(value)} bytes, and at most {self.settings.max_size} are taken"
                dead.append(DeadLine(reason, value))
            elif _PRIORITY.match(value):
                good.append(value)
            else:
                dead.append(DeadLine(_NO_PRIORITY, value))
        return Arrival(good, dead=dead)


class _TcpServer(socketserver.TCPServer):
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], source: SyslogSource, family: int) -> None:
        self.address_family, self.source = family, source
        self.connections: list[_Connection] = []
        self._accepting = False
        super().__init__(address, socketserver.BaseRequestHandler)
        self.timeout = 0.0

    def start(self) -> None:
        """Accept connections in a thread."""
        self._accepting = True
        threading.Thread(target=self.serve_forever, args=(0.1,), name="ingest syslog", daemon=True).start()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Receive in a thread of its own."""
        self.connections = [one for one in self.connections if one.is_alive()]
        self.connections.append(_Connection(request, self.source))
        self.connections[-1].start()

    def drain(self) -> None:
        """Accept nothing more but connections that were made already."""
        if self._accepting:
            self._accepting = False
            self.shutdown()
            before = -1
            while before != len(self.connections):
                before = len(self.connections)
                self.handle_request()
            for connection in self.connections:
                connection.say_end()


class _Connection(threading.Thread):
    """Receives from one sender until it closes the connection, or the agent stops."""

    def __init__(self, connection: socket.socket, source: SyslogSource) -> None:
        super().__init__(name="ingest syslog connection", daemon=True)
        self._connection, self._source = connection, source
        connection.settimeout(_QUIET_SECONDS)

    def say_end(self) -> None:
        """Tell the sender that nobody listens any more; what it has sent can still be received."""
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_WR)

    def run(self) -> None:
        """Receive."""
        source, rest, complete = self._source, b"", False
        with self._connection:
            while not source.closing:
                try:
                    data = self._connection.recv(_BLOCK)
                except TimeoutError:
                    if source.draining.is_set():
                        break
                    continue
                except OSError:
                    break
                if not data:
                    complete = True
                    break
                values, rest = split_frames(rest + data, source.settings.max_size)
                # While there is no room nothing more is received, and TCP lets the sender wait.
                if values:
                    self._put(values)
        if complete and rest:
            self._put(split_frames(rest, 0, ended=True)[0])
        elif rest:
            source.inbox.drop(1, STOPPED)

    def _put(self, values: list[bytes]) -> None:
        if not self._source.inbox.put(self._source.arrival(values)):
            self._source.inbox.drop(len(values), STOPPED)


def split_frames(data: bytes, max_size: int, ended: bool = False) -> tuple[list[bytes], bytes]:
    r"""The messages of a stream, and the rest: by their number of bytes, or each a line.

    A message that is longer than `max_size` is given in pieces. The one at the end of a stream needs no
    newline.

    >>> split_frames(b"9 <34>a b\nc<13>next\n<1", 100)
    ([b'<34>a b\nc', b'<13>next'], b'<1')
    """
    values: list[bytes] = []
    at = 0
    while at < len(data):
        # Who counts bytes begins with a digit, which a priority doesn't.
        if counted := re.compile(rb"([1-9]\d{0,8}) ").match(data, at):
            end = counted.end() + int(counted[1])
            if end > len(data) and not ended:
                if max_size and len(data) - at > max_size:
                    return [*values, data[at:]], b""
                break
            values.append(data[counted.end() : end])
            at = end
            continue
        newline = data.find(b"\n", at)
        if newline < 0:
            if ended or (max_size and len(data) - at > max_size):
                values.append(data[at:])
                at = len(data)
            break
        if newline > at:
            values.append(data[at:newline])
        at = newline + 1
    return values, data[at:]
