"""kafka-python's client, with more than 4 KB at a time from a socket.

Where an answer has megabytes, 4 KB at a time are hundreds of system calls, and as many objects to be joined.
Of the package's inside one method is overridden here, and one of the object that this makes; a test names
both (`tests/operators/kafka/test_raw_fetcher.py`).
"""

from __future__ import annotations

from typing import Any

from kafka.errors import KafkaConnectionError
from kafka.net.compat import KafkaNetClient
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.net.transport import KafkaTCPTransport

_AT_ONCE = 1 << 20


class RawClient(KafkaNetClient):
    """What `KafkaConsumer` takes as its ``kafka_client``."""

    def __init__(self, **configs: Any) -> None:
        net = NetworkSelector(**configs)
        super().__init__(net, _Connections(net, **configs), **configs)


class _Connections(KafkaConnectionManager):
    async def _build_transport(self, *args: Any, **kwargs: Any) -> Any:
        transport = await super()._build_transport(*args, **kwargs)
        if type(transport) is KafkaTCPTransport:  # of TLS no more than 16 KB are ever there at once
            transport._sock_recv = lambda: _received(transport._sock)
        return transport


def _received(sock: Any) -> tuple[memoryview, Exception | None]:
    """What a socket has now, and what is wrong with it."""
    try:
        data = sock.recv(_AT_ONCE)
    except (BlockingIOError, InterruptedError):
        return memoryview(b""), None
    except OSError as error:
        return memoryview(b""), KafkaConnectionError(error)
    # The parser cuts it up: of a view that copies nothing.
    return memoryview(data), None if data else KafkaConnectionError("socket disconnected")
