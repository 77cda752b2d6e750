"""Headers that all messages get."""

from __future__ import annotations

import socket
import time

import pytest

from streamgauge.agents.ingest.batch import Batch
from streamgauge.agents.ingest.settings import FieldError, build


def applied(given: dict[str, object], batch: Batch) -> Batch:
    return build("interceptors", given).open(None).apply(batch)


def test_timestamp_host_and_static() -> None:
    batch = Batch.of([b"a", b"b"], headers=[("first", b"1")])
    before = int(time.time() * 1000)
    for given in (
        {"type": "timestamp"},
        {"type": "host", "header": "machine"},
        {"type": "static", "headers": {"x": "é"}},
    ):
        batch = applied(given, batch)
    (first, stamp, host, static) = batch.headers
    assert first == ("first", b"1") and stamp[0] == "timestamp"
    assert before <= int(stamp[1]) <= int(time.time() * 1000)
    assert host == ("machine", socket.gethostname().encode()) and static == ("x", "é".encode())
    assert batch.values() == [b"a", b"b"]


def test_static_needs_headers() -> None:
    with pytest.raises(FieldError, match="headers must name at least one"):
        build("interceptors", {"type": "static"})
