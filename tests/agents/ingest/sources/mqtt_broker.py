"""A small MQTT broker on loopback, for tests: 3.1.1 and 5, sessions, and QoS 0 and 1 to its clients.

Source: OASIS, MQTT Version 3.1.1 and MQTT Version 5.0, section 3.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

CONNECT, CONNACK, PUBLISH, PUBACK, SUBSCRIBE, SUBACK, PINGREQ, PINGRESP, DISCONNECT = (
    1,
    2,
    3,
    4,
    8,
    9,
    12,
    13,
    14,
)


@dataclass
class Session:
    """What a broker keeps of a client: what it subscribed to, and what it has not acknowledged."""

    topics: list[str] = field(default_factory=list)
    waiting: dict[int, tuple[str, bytes]] = field(default_factory=dict)
    connection: socket.socket | None = None
    version: int = 4
    granted: list[int] = field(default_factory=list)
    next_id: int = 1


class MqttBroker:
    """Listens on `port`; `publish` is what another client would send, `refuse` with whom it talks.

    `published` is what clients have sent at QoS 1, which is acknowledged unless the broker is `mute`. Who
    subscribes gets what is `retained`, unless it asks for that with new subscriptions alone.
    """

    def __init__(self) -> None:
        self.published: list[tuple[str, bytes]] = []
        self.mute = False
        self.sessions: dict[str, Session] = {}
        self.retained: dict[str, bytes] = {}
        self.refuse = False
        self._lock = threading.RLock()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self.drop()

    def drop(self) -> None:
        """Break all connections."""
        with self._lock:
            for session in self.sessions.values():
                if session.connection is not None:
                    with suppress(OSError):
                        session.connection.shutdown(socket.SHUT_RDWR)
                    session.connection = None

    def publish(self, topic: str, payload: bytes, qos: int = 1) -> None:
        with self._lock:
            for session in self.sessions.values():
                if any(fnmatchcase(topic, one.replace("#", "*").replace("+", "*")) for one in session.topics):
                    number = 0
                    if qos:
                        number, session.next_id = session.next_id, session.next_id + 1
                        session.waiting[number] = topic, payload
                    self._send(session, topic, payload, number, again=False)

    def unacknowledged(self) -> int:
        with self._lock:
            return sum(len(session.waiting) for session in self.sessions.values())

    def _send(self, session: Session, topic: str, payload: bytes, number: int, again: bool) -> None:
        if session.connection is None:
            return
        body = _text(topic) + (struct.pack(">H", number) if number else b"")
        body += b"\0" if session.version == 5 else b""
        head = PUBLISH << 4 | again << 3 | bool(number) << 1
        with suppress(OSError):
            session.connection.sendall(bytes([head]) + _length(len(body) + len(payload)) + body + payload)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        session: Session | None = None
        with suppress(OSError, EOFError), connection:
            for kind, body in _packets(connection):
                with self._lock:
                    if kind == CONNECT:
                        session = self._connect(connection, body)
                    elif session is not None and kind == SUBSCRIBE:
                        self._subscribe(session, body)
                    elif session is not None and kind == PUBACK:
                        session.waiting.pop(struct.unpack(">H", body[:2])[0], None)
                    elif session is not None and kind == PUBLISH:
                        self._take(session, connection, body)
                    elif kind == PINGREQ:
                        connection.sendall(bytes([PINGRESP << 4, 0]))
                    elif kind == DISCONNECT:
                        break
        if session is not None and session.connection is connection:
            session.connection = None

    def _connect(self, connection: socket.socket, body: bytes) -> Session | None:
        version, flags = body[6], body[7]
        at = 10
        if version == 5:
            at += 1 + body[at]
        size = struct.unpack_from(">H", body, at)[0]
        name = body[at + 2 : at + 2 + size].decode()
        end = b"\0" if version == 5 else b""
        if self.refuse:
            code = 0x87 if version == 5 else 5
            connection.sendall(bytes([CONNACK << 4, 2 + len(end), 0, code]) + end)
            return None
        if flags & 2 or name not in self.sessions:
            self.sessions[name] = Session()
            present = 0
        else:
            present = 1
        session = self.sessions[name]
        session.connection, session.version = connection, version
        connection.sendall(bytes([CONNACK << 4, 2 + len(end), present, 0]) + end)
        for number, (topic, payload) in list(session.waiting.items()):
            self._send(session, topic, payload, number, again=True)
        return session

    def _take(self, session: Session, connection: socket.socket, body: bytes) -> None:
        size = struct.unpack_from(">H", body)[0]
        number = body[2 + size : 4 + size]
        at = 4 + size + (1 + body[4 + size] if session.version == 5 else 0)
        if not self.mute:
            self.published.append((body[2 : 2 + size].decode(), body[at:]))
            connection.sendall(bytes([PUBACK << 4, 2]) + number)

    def _subscribe(self, session: Session, body: bytes) -> None:
        at = 2 + (1 + body[2] if session.version == 5 else 0)
        topics, before = [], session.topics
        session.granted, retained = [], []
        while at < len(body):
            size = struct.unpack_from(">H", body, at)[0]
            topics.append(body[at + 2 : at + 2 + size].decode())
            options = body[at + 2 + size]
            session.granted.append(options & 3)
            if not (options >> 4 & 3 == 1 and topics[-1] in before):
                retained.append(topics[-1])
            at += 3 + size
        session.topics = topics
        answer = body[:2] + (b"\0" if session.version == 5 else b"") + bytes([1] * len(topics))
        assert session.connection is not None
        session.connection.sendall(bytes([SUBACK << 4]) + _length(len(answer)) + answer)
        for topic, payload in self.retained.items():
            if any(fnmatchcase(topic, one.replace("#", "*").replace("+", "*")) for one in retained):
                self._send(session, topic, payload, 0, again=False)

    def take_over(self) -> None:
        """Say to all clients, by MQTT 5, that another one of their name has come."""
        with self._lock:
            for session in self.sessions.values():
                if session.connection is not None:
                    session.connection.sendall(bytes([DISCONNECT << 4, 2, 0x8E, 0]))
        self.drop()


def _packets(connection: socket.socket) -> Iterator[tuple[int, bytes]]:
    def exactly(size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = connection.recv(size - len(data))
            if not part:
                raise EOFError
            data += part
        return data

    while True:
        kind = exactly(1)[0] >> 4
        size = shift = 0
        while True:
            byte = exactly(1)[0]
            size |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        yield kind, exactly(size)


def _length(size: int) -> bytes:
    data = bytearray()
    while True:
        size, byte = size >> 7, size & 127
        data.append(byte | (128 if size else 0))
        if not size:
            return bytes(data)


def _text(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode()
