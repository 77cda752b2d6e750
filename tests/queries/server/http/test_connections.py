"""Clients that are slow or rude: half requests, slow bodies, pipelines, answers that nobody takes."""

from __future__ import annotations

import errno
import json
import re
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from streamgauge.queries.server.http.connections import Patience
from streamgauge.queries.server.http.server import QueryServer
from streamgauge.queries.server.http.service import Service

from .served import TOKEN, fed, serving

SHORT = Patience(head_seconds=0.5, body_seconds=0.5, write_seconds=0.5)
FEW = Patience(head_seconds=600, waiting=24, waiting_by_address=8)
HEAD = b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n"
POST = b"POST /sql HTTP/1.1\r\nhost: localhost\r\ncontent-length: 40\r\n\r\n"


@pytest.fixture(params=[SHORT])
def server(request: pytest.FixtureRequest) -> Iterator[QueryServer]:
    with serving(Service({"posts": fed().table}), patience=request.param) as running:
        yield running


crowded = pytest.mark.parametrize("server", [FEW], indirect=True, ids=["few"])


@pytest.fixture
def connect(server: QueryServer) -> Iterator[Any]:
    with ExitStack() as stack:

        def connection(*sent: bytes, source: str = "127.0.0.1") -> socket.socket:
            try:
                client = socket.create_connection((server.host, server.port), 60, source_address=(source, 0))
            except OSError as error:
                if error.errno != errno.EADDRNOTAVAIL:
                    raise
                pytest.skip(f"this system has no address {source}")
            stack.enter_context(client)
            for part in sent:
                client.sendall(part)
            return client

        yield connection


def rest(client: socket.socket) -> bytes:
    """All that comes until the server ends the connection."""
    collected = b""
    try:
        while data := client.recv(65_536):
            collected += data
    except ConnectionError:
        pass
    return collected


def healthy(server: QueryServer) -> bool:
    return httpx.get(server.url + "/health", timeout=60).status_code == 200


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sent", "status", "part"),
    [
        ([], b"408", "head"),
        ([HEAD[:20]], b"408", "head"),
        ([POST], b"408", "body"),
        ([POST, b"{"], b"408", "body"),
        ([POST.replace(b"/sql", b"/nowhere"), b"{"], b"404", ""),
    ],
)
def test_a_request_that_does_not_end_is_ended(
    connect: Any, server: QueryServer, sent: list[bytes], status: bytes, part: str
) -> None:
    answered = rest(connect(*sent))
    assert answered.startswith(b"HTTP/1.1 " + status)
    assert (b" 408 " in answered) == bool(part)
    if part:
        problem = json.loads(answered.rpartition(b"\r\n\r\n")[2])
        assert problem["detail"].startswith(f"its {part} must be complete within 0.5 seconds")
    assert healthy(server)


def test_the_head_of_a_next_request_has_its_time_too(connect: Any) -> None:
    client = connect(HEAD)
    assert client.recv(15) == b"HTTP/1.1 200 OK"
    client.sendall(HEAD[:20])
    assert b"HTTP/1.1 408 Request Timeout" in rest(client)


def test_a_byte_now_and_then_does_not_win_time(connect: Any) -> None:
    for head in (HEAD[:30], POST):
        client = connect()
        with pytest.raises(ConnectionError):
            for byte in head + b"x" * 10_000:
                client.sendall(bytes([byte]))
                time.sleep(0.05)


@crowded
def test_half_requests_do_not_shut_others_out(connect: Any, server: QueryServer) -> None:
    rude = [connect(HEAD[:30]) for _ in range(200)]
    assert healthy(server)
    assert httpx.get(server.url + "/tables", timeout=60).status_code == 200
    # Of one address the longest waiting were closed for the others, those of another address were not.
    other = connect(HEAD[:30], source="127.0.0.2")
    rude += [connect(HEAD[:30]) for _ in range(50)]
    other.sendall(HEAD[30:])
    assert other.recv(15) == b"HTTP/1.1 200 OK"
    assert all(rest(client) == b"" for client in rude[:-8])


@crowded
def test_many_addresses_share_what_may_wait(connect: Any, server: QueryServer) -> None:
    for n in range(2, 40):
        connect(HEAD[:30], HEAD[30:], source=f"127.0.0.{n}")  # idle after its answer
        connect(HEAD[:30], source=f"127.0.0.{n}")
    assert healthy(server)


@crowded
def test_idle_connections_give_way(connect: Any, server: QueryServer) -> None:
    idle = [connect(HEAD) for _ in range(30)]
    for client in idle[-8:]:
        assert client.recv(15) == b"HTTP/1.1 200 OK"
    assert b"408" not in rest(idle[0])
    assert healthy(server)


def test_pipelined_requests_are_answered_in_order(connect: Any, server: QueryServer) -> None:
    paths = ["/health", "/nowhere", "/ready", "/tables"] * 10
    sent = b"".join(f"GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode() for path in paths)
    client = connect(sent + b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
    answered = rest(client)
    assert re.findall(rb"HTTP/1.1 (\d+)", answered) == [b"200", b"404", b"200", b"200"] * 10 + [b"200"]


def test_a_body_without_end_is_refused_or_ended(connect: Any, server: QueryServer) -> None:
    huge = b"POST /sql HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99999999999\r\n\r\n"
    client = connect(huge)
    with pytest.raises(ConnectionError):
        while True:
            client.sendall(b"x" * 65_536)
    assert healthy(server)


def test_without_the_token_nothing_of_a_body_is_kept() -> None:
    with (
        serving(Service({"posts": fed().table}), patience=SHORT, token=TOKEN) as server,
        socket.create_connection((server.host, server.port), 60) as client,
    ):
        client.sendall(POST)
        assert client.recv(12) == b"HTTP/1.1 401"
        assert b"408" not in rest(client)


def test_an_answer_that_nobody_takes_is_ended(server: QueryServer, connect: Any) -> None:
    ask = b"GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n"
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    with client:
        client.connect((server.host, server.port))
        client.settimeout(60)
        with pytest.raises(ConnectionError):
            while True:
                client.sendall(ask * 100)
    assert healthy(server)


def test_too_many_requests_at_once_leave_health_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamgauge.queries.server.http.server._MOST_REQUESTS", 0)
    with serving(Service({"posts": fed().table})) as server:
        busy = httpx.get(server.url + "/tables")
        assert (busy.status_code, busy.json()["title"]) == (503, "Too many requests at once")
        assert busy.headers["retry-after"] == "1"
        assert healthy(server)
        assert httpx.get(server.url + "/ready").status_code == 200
