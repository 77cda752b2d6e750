"""Metrics and health over HTTP, on this machine alone by default."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import httpx
import pytest
from prometheus_client import CollectorRegistry

from streamgauge.operators.watching.figures import Figures
from streamgauge.operators.watching.health import Health
from streamgauge.operators.watching.metrics import watch
from streamgauge.operators.watching.server import MetricsServer


class Reported:
    health = Health(True, False, "the log of deltas is being read")


@pytest.fixture
def served() -> Iterator[tuple[Reported, httpx.Client]]:
    reported, registry = Reported(), CollectorRegistry()
    watch(registry, lambda: (Figures(group="g"), reported.health))
    server = MetricsServer(0)
    server.start(registry, lambda: reported.health)
    with httpx.Client(base_url=f"http://{server.address}", trust_env=False, timeout=120) as client:
        yield reported, client
    server.close()
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"http://{server.address}/health", trust_env=False)


def test_three_pages_are_served_and_nothing_else(served: tuple[Reported, httpx.Client]) -> None:
    reported, client = served
    metrics = client.get("/metrics")
    assert metrics.status_code == 200 and metrics.headers["content-type"].startswith("text/plain")
    assert 'streamgauge_messages_read_total{group="g"} 0.0' in metrics.text
    newer = client.get("/metrics", headers={"accept": "application/openmetrics-text; version=1.0.0"})
    assert newer.text.endswith("# EOF\n") and "openmetrics" in newer.headers["content-type"]
    assert client.get("/health").status_code == 200
    waiting = client.get("/ready")
    assert waiting.status_code == 503 and waiting.json()["why"] == "the log of deltas is being read"
    reported.health = Health(True, True)
    assert client.get("/ready?verbose=1").status_code == 200
    reported.health = Health(False, False, "the run failed: no topic")
    assert client.get("/health").status_code == 503 and client.get("/health").json()["healthy"] is False
    assert client.get("/").status_code == 404 and client.post("/metrics").status_code == 501


def test_only_this_machine_is_served_unless_requested() -> None:
    server = MetricsServer(0)
    assert server.address.startswith("127.0.0.1:")
    server.close()
    every = MetricsServer("0.0.0.0:0")
    assert every.address.startswith("0.0.0.0:")
    every.close()


def test_a_taken_port_is_named() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(OSError, match=rf"metrics can't be served at {port}: .*port 0 for a free one"):
            MetricsServer(port)
