"""The server as a process meets it: its connections."""

from __future__ import annotations

import gc
import socket
from contextlib import suppress

from streamgauge.queries.server.http.service import Service

from .served import fed, serving


def test_no_answer_waits_for_an_acknowledgement() -> None:
    with (
        serving(Service({"posts": fed().table})) as server,
        socket.create_connection((server.host, server.port)) as client,
    ):
        client.sendall(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n")
        assert client.recv(15) == b"HTTP/1.1 200 OK"
        (accepted,) = _sockets_to(client.getsockname())
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def _sockets_to(address: tuple[str, int]) -> list[socket.socket]:
    """Those of this process whose other end is there."""
    collected = []
    for one in gc.get_objects():
        with suppress(OSError, ReferenceError):  # proxies of what is gone
            if isinstance(one, socket.socket) and one.getpeername() == address:
                collected.append(one)
    return collected
