"""What a connection is given of a socket: all that is there, nothing yet, and that it has ended."""

from __future__ import annotations

import socket

import pytest
from kafka.errors import KafkaConnectionError

from streamgauge.apps.kafka.broker import EmbeddedKafka
from streamgauge.operators.kafka.raw_client import _received
from streamgauge.operators.kafka.reader import Reader


def test_what_a_socket_has_comes_at_once() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        assert _received(ours) == (b"", None)
        theirs.send(b"x" * 50_000)
        data, error = _received(ours)
        assert (bytes(data), error) == (b"x" * 50_000, None)
        theirs.close()
        data, error = _received(ours)
        assert data == b"" and isinstance(error, KafkaConnectionError)
    assert isinstance(_received(ours)[1], KafkaConnectionError)  # closed on this side


@pytest.mark.kafka
def test_a_reader_reads_so(kafka: EmbeddedKafka) -> None:
    kafka.create_topic("at-once")
    with Reader({"bootstrap.servers": kafka.bootstrap_servers}, {("at-once", 0): 0}, source="raw") as reader:
        assert reader.end_offsets() == {("at-once", 0): 0}
        consumer = reader._source._consumer  # type: ignore[attr-defined]
        (connection, *_) = consumer._manager._conns.values()
        assert connection.transport._sock_recv.__module__ == "streamgauge.operators.kafka.raw_client"
