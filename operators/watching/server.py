"""`/metrics`, `/health` and `/ready` over HTTP, for Prometheus and for orchestrators."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from .address import address_of
from .health import Health

_PATIENCE_SECONDS = 10.0


class MetricsServer:
    """Holds an address from the beginning, and serves a registry and a health there from `start` to `close`.

    Port 0 selects a free one, which `address` has. Raises `OSError` if the address is not available.
    """

    def __init__(self, given: str | int) -> None:
        host, port = address_of(given)

        class Server(ThreadingHTTPServer):
            address_family = socket.AF_INET6 if ":" in host else socket.AF_INET

        try:
            self._server = Server((host, port), _Handler)
        except OSError as error:
            raise OSError(
                error.errno,
                f"metrics can't be served at {given!r}: {error.strerror}; "
                "name another address, or port 0 for a free one",
            ) from None
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="streamgauge-metrics", daemon=True
        )

    def start(self, registry: CollectorRegistry, health: Callable[[], Health]) -> None:
        """Start answering, in separate threads."""

        class Handler(_Handler):
            pages: ClassVar = {
                "/metrics": lambda accepted: _metrics(registry, accepted),
                "/health": lambda _: _health_page(health(), "healthy"),
                "/ready": lambda _: _health_page(health(), "ready"),
            }

        self._server.RequestHandlerClass = Handler
        self._thread.start()

    @property
    def address(self) -> str:
        """The address that it listens on, as ``host:port``."""
        host, port = self._server.server_address[:2]
        return f"[{host!s}]:{port}" if ":" in str(host) else f"{host!s}:{port}"

    def close(self) -> None:
        """Stop listening."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()


_Page = tuple[int, str, bytes]


class _Handler(BaseHTTPRequestHandler):
    """Answers GET requests for a few pages, and nothing else."""

    pages: ClassVar[dict[str, Callable[[str], _Page]]] = {}
    timeout = _PATIENCE_SECONDS
    server_version, sys_version = "streamgauge", ""

    def do_GET(self) -> None:
        page = self.pages.get(self.path.partition("?")[0])
        if page is None:
            return self.send_error(404, f"there are {', '.join(self.pages)}")
        status, kind, body = page(self.headers.get("Accept", ""))
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Log nothing: there is a scrape every few seconds."""


def _metrics(registry: CollectorRegistry, accepted: str) -> _Page:
    encode, kind = choose_encoder(accepted)
    return 200, kind, encode(registry)


def _health_page(health: Health, field: str) -> _Page:
    fields = asdict(health)
    return 200 if fields[field] else 503, "application/json", json.dumps(fields).encode()
