"""kafka-python's client with less copying, because a stream reads responses of megabytes.

By itself it reads 4 KB at a time from a socket, joins these, and copies each response three times before it
parses it, into memory that the system must clear first. Here a socket's bytes are received where they are
parsed, with one buffer per connection. Brokers that return at other addresses are found as well (KIP-899).
Two internal methods of the package are overridden, and one each of two objects that it creates; a test names
them (`tests/operators/kafka/test_raw_fetcher.py`).
"""

from __future__ import annotations

import random
import struct
from typing import Any

import numpy as np
from kafka.errors import KafkaConnectionError
from kafka.net.compat import KafkaNetClient
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.net.transport import KafkaTCPTransport
from kafka.protocol.frame import KafkaBytes

_SIZE = struct.Struct(">i")
_LARGE = 64 << 10
"""Larger responses are parsed where they were received: those to fetches, and those about many partitions.
The response that kafka-python needs as bytes, a broker's versions, is never this long."""


class RawClient(KafkaNetClient):
    """The ``kafka_client`` to pass to `KafkaConsumer`."""

    def __init__(self, **configs: Any) -> None:
        net = NetworkSelector(**configs)
        super().__init__(net, _Connections(net, **configs), **configs)


class _Connections(KafkaConnectionManager):
    def least_loaded_node(self) -> Any:
        """The broker to ask for metadata; once all known ones have failed, one of ``bootstrap.servers``.

        By default the client only retries brokers that it knows, which may have returned at other addresses.
        """
        known = [broker.node_id for broker in self.cluster.brokers()]
        if all(node in self._backoff and node not in self._conns for node in known):
            named = [broker.node_id for broker in self.cluster.bootstrap_brokers()]
            ready = [node for node in named if not self.connection_delay(node)]
            if ready:
                return random.choice(ready)
        return super().least_loaded_node()

    async def _build_transport(self, *args: Any, **kwargs: Any) -> Any:
        transport = await super()._build_transport(*args, **kwargs)
        transport._sock_recv = Answers(transport).receive
        return transport


class Large:
    """A large response, as kafka-python reads it: small parts as bytes, the rest in place."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._at = 0

    def read(self, n: int | None = None) -> bytes | memoryview:
        """The next `n` bytes, or all that are left; valid until the next response arrives."""
        begin = self._at
        self._at = len(self._data) if n is None else min(begin + n, len(self._data))
        return self._data[begin:] if n is None else bytes(self._data[begin : self._at])

    def seek(self, at: int) -> None:
        """Continue reading at `at`."""
        self._at = at


class Answers:
    """The receiving side of a connection: responses, each preceded by its length in four bytes."""

    def __init__(self, transport: Any) -> None:
        self._transport = transport
        self._taken = transport._sock_recv
        self._plain = type(transport) is KafkaTCPTransport
        self._parser: Any = None
        self._beside = memoryview(bytearray(_LARGE))
        self._room = memoryview(bytearray(_LARGE))
        self._length = b""
        self._open: memoryview | None = None
        self._filled = 0

    def receive(self) -> tuple[bytes | memoryview, Exception | None]:
        """Receive what the socket has now; also returns an error, if any."""
        if self._parser is None:
            self._parser = self._transport._protocol.parser
            self._parser.receive_bytes = self.split
        if not self._plain:  # TLS never has more than 16 KB available
            return self._taken()
        into = self._beside if self._open is None else self._open[self._filled :]
        try:
            n = self._transport._sock.recv_into(into)
        except (BlockingIOError, InterruptedError):
            return b"", None
        except OSError as error:
            return b"", KafkaConnectionError(error)
        return into[:n], None if n else KafkaConnectionError("socket disconnected")

    def split(self, data: bytes | memoryview) -> list[Any]:
        """The responses that these bytes complete. Raises what kafka-python raises for a broken one."""
        data = memoryview(data)
        answers = []
        while len(data):
            if self._open is None:
                data = self._begin(data)
            if self._open is None:
                break
            n = min(len(data), len(self._open) - self._filled)
            if data.obj is not self._open.obj:
                self._open[self._filled : self._filled + n] = data[:n]
            self._filled += n
            data = data[n:]
            if self._filled == len(self._open):
                whole, self._open = self._open, None
                answers.append(self._parser._process_response(self._readable(whole)))
        return answers

    def _begin(self, data: memoryview) -> memoryview:
        """Read the next response's length from these bytes, as far as present; returns the rest."""
        missing = _SIZE.size - len(self._length)
        self._length += data[:missing]
        if len(self._length) == _SIZE.size:
            (size,) = _SIZE.unpack(self._length)
            self._parser._validate_frame_size(size)
            if size > len(self._room):
                # NumPy requests large pages from the system, and doesn't fill them.
                self._room = np.empty(size + size // 8, np.uint8).data
            self._length, self._open, self._filled = b"", self._room[:size], 0
        return data[missing:]

    @staticmethod
    def _readable(whole: memoryview) -> Large | KafkaBytes:
        if len(whole) > _LARGE:
            return Large(whole)
        small = KafkaBytes(len(whole))
        small[:] = whole
        return small
