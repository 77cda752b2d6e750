"""Syslog over the network, by UDP and TCP: RFC 3164 and RFC 5424, with the framing of RFC 6587.

A message is sent unchanged, with its priority and header, which the format `syslog` decodes. Messages that
don't begin with a priority aren't syslog, and become dead letters.
"""

from __future__ import annotations

import re
import selectors
import socket
import socketserver
import sys
import threading
from collections.abc import Sequence
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
"""At a stop, a connection that has been silent for this long counts as read to its end."""
_OVERFLOW = "system's buffer full"
_SO_MEMINFO = 55
"""A Linux socket option: nine numbers about a socket, the last of which counts dropped datagrams."""
_COUNTED = re.compile(rb"([1-9]\d{0,8}) <")
"""The beginning of messages with octet counting."""
_NO_PRIORITY = "not syslog: no priority, as in <34>"


@dataclass(frozen=True, kw_only=True)
class SyslogServer:
    """A server on `host` and `port` (0: a free one), for both protocols unless one is named.

    While `capacity` messages wait, TCP's senders wait, and UDP's messages are dropped and counted, as are
    those for which the system has no room (on Linux, which counts them). A message of more than `max_size`
    bytes is a dead letter.
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
    """A `Source` of received messages, listening on `port`. Raises `IngestError` if it can't."""

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
        """See `Source`; messages that are being received count as not read."""
        receiving = self.draining.is_set() and any(thread.is_alive() for thread in self._receiving())
        return not receiving and self.inbox.empty

    def read(self, seconds: float) -> Batch | None:
        """See `Source`."""
        return self.inbox.read(seconds)

    def drain(self) -> None:
        """See `DrainedSource`: TCP senders see a half-closed connection, and are read to their end."""
        self.draining.set()
        if self._tcp is not None:
            self._tcp.drain()

    def discard(self) -> int:
        """See `DrainedSource`."""
        self.draining.set()
        self._closing.set()
        self.inbox.closed = True
        # The connections' last messages find the inbox closed, and are counted as dropped.
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
        """Return the receiving threads: one for UDP, and one for each connection."""
        return [*self._threads, *(self._tcp.connections if self._tcp is not None else ())]

    @property
    def closing(self) -> bool:
        """Whether nothing more may be received."""
        return self._closing.is_set()

    def _receive(self) -> None:
        assert self._udp is not None
        self._udp.setblocking(False)
        lost = 0
        with selectors.DefaultSelector() as selector:
            selector.register(self._udp, selectors.EVENT_READ)
            while not self._closing.is_set():
                waiting = selector.select(0.0 if self.draining.is_set() else 0.1)
                if (total := _lost_datagrams(self._udp)) > lost:
                    self.inbox.drop(total - lost, _OVERFLOW)
                    lost = total
                if not waiting:
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

    def arrival(self, values: list[bytes], dead: Sequence[DeadLine] = ()) -> Arrival:
        """Make an arrival of messages, with dead letters for those that aren't syslog."""
        good, dead = [], list(dead)
        for value in values:
            value = value.rstrip(b"\r\n\0")
            if len(value) > self.settings.max_size:
                reason = f"{len(value)} bytes, above the limit of {self.settings.max_size}"
                dead.append(DeadLine(reason, value))
            elif _PRIORITY.match(value):
                good.append(value)
            else:
                dead.append(DeadLine(_NO_PRIORITY, value))
        return Arrival(good, dead=dead)


def _lost_datagrams(udp: socket.socket) -> int:
    """Return how many datagrams the system has dropped because the socket's buffer was full."""
    try:
        data = udp.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, 64)
    except OSError:
        return 0  # a system without this option
    return int.from_bytes(data[32:36], sys.byteorder)


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
        """Receive a connection in its own thread."""
        self.connections = [one for one in self.connections if one.is_alive()]
        self.connections.append(_Connection(request, self.source))
        self.connections[-1].start()

    def drain(self) -> None:
        """Accept only connections that are already established."""
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
        """Half-close the connection: the sender sees the end, and what it has sent can still be received."""
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_WR)

    def run(self) -> None:
        """Receive."""
        source, complete = self._source, False
        framing = Framing(source.settings.max_size)
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
                # While there is no room, nothing more is received, and TCP makes the sender wait.
                self._put(*framing.take(data))
        if complete:
            self._put(*framing.take(b"", ended=True))
        elif framing.rest:
            source.inbox.drop(1, STOPPED)

    def _put(self, values: list[bytes], dead: list[DeadLine]) -> None:
        arrival = self._source.arrival(values, dead)
        if arrival.count and not self._source.inbox.put(arrival):
            self._source.inbox.drop(arrival.count, STOPPED)


class Framing:
    r"""Splits a stream into messages: by octet counts, or by lines.

    A message of more than `max_size` bytes becomes a dead letter, and so does one whose stream ends before
    all the bytes that it announces; a line at the end of a stream needs no newline.

    >>> framing = Framing(100)
    >>> framing.take(b"9 <34>a b\nc<13>next\n<1")
    ([b'<34>a b\nc', b'<13>next'], [])
    >>> framing.take(b"4>last", ended=True)
    ([b'<14>last'], [])
    """

    def __init__(self, max_size: int) -> None:
        self._max_size = max_size
        self.rest = b""
        """The beginning of an incomplete message."""
        # How many bytes of an oversized message are still to be skipped; -1 for the rest of a line.
        self._skipped = 0

    def take(self, data: bytes, ended: bool = False) -> tuple[list[bytes], list[DeadLine]]:
        """Add bytes; return the messages that are now complete, and dead letters."""
        values: list[bytes] = []
        dead: list[DeadLine] = []
        data, at, most = self.rest + data, 0, self._max_size
        while at < len(data):
            if self._skipped:
                at = self._skip(data, at)
            elif counted := _COUNTED.match(data, at):
                begin, size = counted.end() - 1, int(counted[1])
                whole = data[begin : begin + min(size, most)]
                if len(whole) < min(size, most):
                    if not ended:
                        break
                    dead.append(DeadLine(f"only {len(whole)} of {size} bytes arrived", whole))
                elif size > most:
                    dead.append(DeadLine(f"{size} bytes, above the limit of {most}", whole))
                    self._skipped = size - most
                else:
                    values.append(whole)
                at = begin + len(whole)
            elif (newline := data.find(b"\n", at, at + most + 1)) >= 0:
                if newline > at:
                    values.append(data[at:newline])
                at = newline + 1
            elif len(data) - at > most:
                dead.append(DeadLine(f"more than {most} bytes", data[at : at + most]))
                at, self._skipped = at + most, -1
            elif ended:
                values.append(data[at:])
                at = len(data)
            else:
                break
        self.rest = data[at:]
        return values, dead

    def _skip(self, data: bytes, at: int) -> int:
        if self._skipped > 0:
            step = min(self._skipped, len(data) - at)
            self._skipped -= step
            return at + step
        newline = data.find(b"\n", at)
        if newline < 0:
            return len(data)
        self._skipped = 0
        return newline + 1
