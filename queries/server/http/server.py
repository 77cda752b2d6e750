"""The server itself: uvicorn on an address, with a token if other machines may ask, and an orderly end."""

from __future__ import annotations

import ipaddress
import logging
import socket
import threading
from collections.abc import Sequence
from contextlib import suppress

import uvicorn
from starlette.routing import BaseRoute

from ....sketches.core.errors import StreamgaugeError
from .app import application
from .connections import InProgress, Patience, patient
from .service import Service

log = logging.getLogger("streamgauge.serving")

_END_SECONDS = 5
_SHORTEST_TOKEN = 16
_MOST_REQUESTS = 1_000


class ServerError(StreamgaugeError, OSError):
    """The server can't be started; the message says why and what to do."""


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def check_token(host: str, token: str | None) -> None:
    """Raise `ServerError` if a token is required but missing, guessable or not sendable."""
    if token is None and not is_loopback(host):
        raise ServerError(
            f"anyone who reaches {host} could query it: give a token, by --token-file or as "
            "STREAMGAUGE_TOKEN in the environment, or leave out --host to answer this machine only"
        )
    if token is not None and (len(token) < _SHORTEST_TOKEN or not token.isascii() or not token.isprintable()):
        raise ServerError(
            f"the token must have at least {_SHORTEST_TOKEN} characters, all of them printable ASCII; "
            "create one with `openssl rand -hex 32`"
        )


class QueryServer:
    """Serves a service's tables at ``http://host:port`` until it is stopped; port 0 selects a free one.

    `routes` and `open_to_all` are as for `application`; `patience` limits clients that send or read slowly.

    Raises `ServerError` if the address is not available, or needs a token and has none.
    """

    def __init__(
        self,
        service: Service,
        host: str = "127.0.0.1",
        port: int = 8055,
        token: str | None = None,
        routes: Sequence[BaseRoute] = (),
        open_to_all: Sequence[str] = (),
        patience: Patience | None = None,
    ) -> None:
        check_token(host, token)
        self.service = service
        self._socket = _bound(host, port)
        self.host, self.port = host, self._socket.getsockname()[1]
        config = uvicorn.Config(
            InProgress(application(service, token, routes, open_to_all), _MOST_REQUESTS),
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="off",
            ws="none",
            http=patient(patience),  # type: ignore[arg-type]
            timeout_graceful_shutdown=_END_SECONDS,
        )
        self._server = _Server(config, service)

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    def run(self) -> None:
        """Serve until SIGINT, SIGTERM or `stop`; then live views end, and answers in progress are sent."""
        try:
            self._server.run([self._socket])
        finally:
            self._socket.close()
            for table in self.service.tables.values():
                table.close()

    def stop(self) -> None:
        """Stop it in an orderly way, from any thread. Returns immediately."""
        self._server.end()

    def start(self) -> threading.Thread:
        """Serve in a separate thread, and return once it answers."""
        thread = threading.Thread(target=self.run, name="query server", daemon=True)
        thread.start()
        self._server.answering.wait(30.0)
        return thread


class _Server(uvicorn.Server):
    """uvicorn's server, which notifies live views when it ends; otherwise it would wait for them."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service
        self.answering = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start answering."""
        await super().startup(sockets)
        self.answering.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End live views, then everything else."""
        self._service.stopping.set()
        await super().shutdown(sockets)

    def end(self) -> None:
        """Stop, as after a signal."""
        self.should_exit = True


def _bound(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise ServerError(f"{host} is not an address of this machine: {error}") from None
    # With its protocol named, asyncio sets TCP_NODELAY; otherwise an answer's body would wait 40 ms after
    # its head for a delayed acknowledgement.
    listener = socket.socket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
        listener.listen(512)
    except OSError as error:
        listener.close()
        raise ServerError(
            f"the port {port} of {host} can't be used ({error.strerror or error}): another program "
            "may use it; choose another with --port, or 0 for a free one"
        ) from None
    return listener
