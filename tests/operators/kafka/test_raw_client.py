"""What a connection receives: all that a socket has, answers cut anywhere, and that it has ended."""

from __future__ import annotations

import random
import socket
import struct
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.errors import CorrelationIdError, InvalidReceiveError, KafkaConnectionError
from kafka.net.transport import KafkaTCPTransport
from kafka.protocol.consumer import FetchRequest, FetchResponse
from kafka.protocol.metadata import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    MetadataRequest,
    MetadataResponse,
)
from kafka.protocol.parser import KafkaProtocol

from streamgauge.apps.dev.kafka.broker import EmbeddedKafka
from streamgauge.operators.kafka.raw_client import Answers
from streamgauge.operators.kafka.reader import Reader

_FETCH = 12
_SIZES = (0, 1, 200_000, 70_000, 3, 1_000_000, 65_000, 1 << 16)
_RECORDS = [(number, bytes([number]) * size) for number, size in enumerate(_SIZES)]


def answer(number: int, held: bytes) -> bytes:
    """The answer to fetch `number`, with these records."""
    topics = FetchResponse.FetchableTopicResponse
    partition = topics.PartitionData(
        partition_index=0, records=held, aborted_transactions=None, preferred_read_replica=-1
    )
    response = FetchResponse[_FETCH](
        throttle_time_ms=0,
        error_code=0,
        session_id=0,
        responses=[topics(topic="t", partitions=[partition])],
    )
    body = struct.pack(">iB", number, 0) + bytes(response.encode())
    return struct.pack(">i", len(body)) + body


def parser(answers: int) -> KafkaProtocol:
    """kafka-python's own, after as many fetches were sent."""
    made = KafkaProtocol(client_id="c")
    for number in range(answers):
        request = FetchRequest[_FETCH](topics=[], forgotten_topics_data=[])
        made.send_request(request, correlation_id=number)
    return made


def plain(sock: Any, protocol: KafkaProtocol) -> Any:
    """A connection of bytes as they are."""
    transport = KafkaTCPTransport(SimpleNamespace(), sock)
    transport._protocol = SimpleNamespace(parser=protocol)  # type: ignore[assignment]
    return transport


def records(answers: list[Any]) -> list[tuple[int, bytes]]:
    return [(number, got.responses[0].partitions[0].records) for number, got in answers]


def test_answers_come_whole_however_they_are_cut() -> None:
    stream = b"".join(answer(*held) for held in _RECORDS)
    assert records(parser(len(_SIZES)).receive_bytes(stream)) == _RECORDS
    for seed in range(20):
        rng = random.Random(seed)
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.setblocking(False)
            own = parser(len(_SIZES))
            received, got, at = Answers(plain(ours, own)), [], 0
            while at < len(stream) or len(got) < len(_SIZES):
                at += theirs.send(stream[at : at + rng.choice((1, 2, 5, 100, 5_000, 80_000))])
                data, error = received.receive()
                assert error is None
                got += own.receive_bytes(data)  # type: ignore[arg-type]
            assert records(got) == _RECORDS, seed


def test_answers_that_others_took_from_the_socket_come_whole_too() -> None:
    stream = b"".join(answer(*held) for held in _RECORDS)
    rng, at = random.Random(1), 0

    def take() -> tuple[bytes, None]:
        nonlocal at
        data = stream[at : at + rng.choice((1, 3, 700, 16_384))]
        at += len(data)
        return data, None

    own = parser(len(_SIZES))
    protocol = SimpleNamespace(parser=own)
    received = Answers(SimpleNamespace(_sock_recv=take, _protocol=protocol))
    got: list[Any] = []
    while at < len(stream):
        data, _ = received.receive()
        got += own.receive_bytes(data)  # type: ignore[arg-type]
    assert records(got) == _RECORDS


def test_an_answer_that_kafka_python_reads_as_bytes_is_read() -> None:
    own = KafkaProtocol(client_id="c")
    own.send_request(ApiVersionsRequest[3](client_software_name="s", client_software_version="1"), 5)
    body = struct.pack(">i", 5) + bytes(ApiVersionsResponse[3](error_code=0, api_keys=[]).encode())
    ours, theirs = socket.socketpair()
    with ours, theirs:
        received = Answers(plain(ours, own))
        theirs.sendall(struct.pack(">i", len(body)) + body)
        data, _ = received.receive()
        ((number, response),) = own.receive_bytes(data)  # type: ignore[arg-type]
    assert (number, response.error_code) == (5, 0)


def test_a_large_answer_about_partitions_is_read_as_kafka_python_reads_it() -> None:
    of = MetadataResponse.MetadataResponseTopic
    fixed: dict[str, Any] = {"error_code": 0, "leader_epoch": 0, "isr_nodes": [0], "offline_replicas": []}
    partitions = [
        of.MetadataResponsePartition(partition_index=p, leader_id=p % 3, replica_nodes=[p % 3], **fixed)
        for p in range(5_000)
    ]
    topic = of(error_code=0, name="t", is_internal=False, partitions=partitions)
    response = MetadataResponse[7](
        throttle_time_ms=0, brokers=[], cluster_id="c", controller_id=0, topics=[topic]
    )
    body = struct.pack(">i", 1) + bytes(response.encode())
    assert len(body) > 1 << 17
    theirs, own = KafkaProtocol(client_id="c"), KafkaProtocol(client_id="c")
    for either in (theirs, own):
        either.send_request(MetadataRequest[7](topics=[], allow_auto_topic_creation=False), 1)
    taken_over = SimpleNamespace(_sock_recv=lambda: (b"", None), _protocol=SimpleNamespace(parser=own))
    Answers(taken_over).receive()
    whole = struct.pack(">i", len(body)) + body
    ((number, got),) = own.receive_bytes(whole)
    assert [(number, got)] == theirs.receive_bytes(whole) and len(got.topics[0].partitions) == 5_000


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (struct.pack(">i", -1), InvalidReceiveError),
        (struct.pack(">i", 2_000_000_000), InvalidReceiveError),
        (struct.pack(">iiB", 5, 7, 0), CorrelationIdError),
    ],
)
def test_what_is_no_answer_is_refused_as_kafka_python_does(data: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        parser(1).receive_bytes(data)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        own = parser(1)
        received = Answers(plain(ours, own))
        theirs.sendall(data)
        came, _ = received.receive()
        with pytest.raises(error):
            own.receive_bytes(came)  # type: ignore[arg-type]


def test_a_socket_that_has_nothing_or_has_ended_says_so() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        received = Answers(plain(ours, parser(0)))
        assert received.receive() == (b"", None)
        theirs.close()
        data, error = received.receive()
        assert len(data) == 0 and isinstance(error, KafkaConnectionError)
    assert isinstance(received.receive()[1], KafkaConnectionError)  # closed on this side


@pytest.mark.kafka
def test_a_reader_reads_so(kafka: EmbeddedKafka) -> None:
    kafka.create_topic("at-once")
    with Reader({"bootstrap.servers": kafka.bootstrap_servers}, {("at-once", 0): 0}, source="raw") as reader:
        assert reader.end_offsets() == {("at-once", 0): 0}
        consumer = reader._source._consumer  # type: ignore[attr-defined]
        (connection, *_) = consumer._manager._conns.values()
        assert isinstance(connection.transport._sock_recv.__self__, Answers)
        assert connection.parser.receive_bytes.__self__ is connection.transport._sock_recv.__self__
