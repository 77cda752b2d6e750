"""What is used of kafka-python's inside, by name, and what is made of the answers that it hands over."""

from __future__ import annotations

import inspect
import struct
from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest
from kafka import KafkaConsumer, TopicPartition
from kafka.cluster import ClusterMetadata
from kafka.consumer.fetcher import CompletedFetch, Fetcher
from kafka.consumer.subscription_state import SubscriptionState, TopicPartitionState
from kafka.errors import CorruptRecordError, KafkaError
from kafka.net.compat import KafkaNetClient
from kafka.net.connection import KafkaConnection
from kafka.net.manager import KafkaConnectionManager
from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport
from kafka.protocol.consumer import FetchResponse, IsolationLevel
from kafka.protocol.frame import KafkaBytes
from kafka.protocol.parser import KafkaProtocol
from kafka.record import MemoryRecords

from streamgauge.operators.kafka.raw_fetcher import RawFetcher, RawRecords
from streamgauge.operators.kafka.record_batches import BrokenBatch

from .made_batches import RECORDS, Aborted, Answer, Record, batch_of, marker

PLACE = TopicPartition("t", 0)
ONE: list[Record] = [(0, 0, None, b"v", [])]
METHODS: dict[Any, dict[str, list[str]]] = {
    Fetcher: {
        "__init__": ["self", "client", "subscriptions"],
        "fetched_records": ["self", "max_records"],
        "_parse_fetched_data": ["self", "completed_fetch"],
        "_handle_fetch_response": ["self", "node_id", "fetch_offsets", "send_time", "response"],
        "_handle_fetch_error": ["self", "node_id", "exception"],
        "_handle_offset_for_leader_epoch_response": ["self", "response", "requested_positions"],
    },
    Fetcher.PartitionRecords: {"take": ["self", "n"], "drain": ["self"], "__bool__": ["self"]},
    ClusterMetadata: {
        "leader_for_partition": ["self", "partition"],
        "refresh_metadata": ["self"],
        "add_topic": ["self", "topic"],
        "brokers": ["self"],
        "bootstrap_brokers": ["self"],
    },
    SubscriptionState: {"is_assigned": ["self", "partition"]},
    TopicPartitionState: {"seek": ["self", "offset"]},
    KafkaConnectionManager: {
        "run": ["self", "coro"],
        "wait_for": ["self", "future", "timeout_ms"],
        "send": ["self", "request"],
        "_build_transport": ["self", "node"],
        "least_loaded_node": ["self"],
        "connection_delay": ["self", "node_id"],
    },
    KafkaNetClient: {"__init__": ["self", "net", "manager"]},
    KafkaTCPTransport: {"_sock_recv": ["self"]},
    KafkaSSLTransport: {"_sock_recv": ["self"]},
    KafkaProtocol: {
        "receive_bytes": ["self", "data"],
        "_process_response": ["self", "read_buffer"],
        "_validate_frame_size": ["self", "nbytes"],
    },
    KafkaBytes: {"__init__": ["self", "size"], "read": ["self", "nbytes"], "seek": ["self", "idx"]},
}
"""Every method that is called or overridden, and the arguments that are counted on."""


@pytest.mark.parametrize("owner", METHODS, ids=lambda owner: owner.__qualname__)
def test_the_methods_that_are_used_are_there(owner: Any) -> None:
    for name, wanted in METHODS[owner].items():
        result = list(inspect.signature(getattr(owner, name)).parameters)
        assert result[: len(wanted)] == wanted, f"{owner.__qualname__}.{name}{result}"


def test_the_attributes_that_are_used_are_there() -> None:
    source = inspect.getsource(KafkaConsumer)
    for name in ("_client", "_subscription", "_fetcher", "_manager"):
        assert f"self.{name} = " in source, name
    manager = inspect.getsource(KafkaConnectionManager)
    assert "self._backoff = " in manager and "self._conns = " in manager
    inside = inspect.getsource(Fetcher)
    for used in (
        "self.PartitionRecords(",
        "self._parse_fetched_data(",
        "self._isolation_level",
        "self.config['fetch_max_bytes']",
        "self.config['max_partition_fetch_bytes']",
        "on_drain=self._on_partition_records_drain",
    ):
        assert used in inside, used
    reading = inspect.getsource(KafkaTCPTransport)
    assert "recvd_data, err = self._sock_recv()" in reading and "data = self._sock.recv(" in reading
    # An answer's bytes are used by the time the next one comes: what it keeps of them it copies.
    assert "self.parser.receive_bytes(data)" in inspect.getsource(KafkaConnection.data_received)
    assert "self._protocol = protocol" in inspect.getsource(KafkaTCPTransport.set_protocol)
    # What it needs of the object that it makes of an answer.
    made = RawRecords(7, PLACE, MemoryRecords(b""))
    for name in ("topic_partition", "next_fetch_offset", "leader_epoch", "bytes_read"):
        assert f".{name}" in inside and hasattr(made, name), name
    assert MemoryRecords(b"abc")._buffer == b"abc"
    data = FetchResponse.FetchableTopicResponse.PartitionData
    for name in ("error_code", "high_watermark", "last_stable_offset", "aborted_transactions", "records"):
        assert hasattr(data(), name), name
    assert CorruptRecordError.errno == 2 and issubclass(CorruptRecordError, KafkaError)


def fetched(data: bytes, level: Any = IsolationLevel.READ_UNCOMMITTED, **aborted: Any) -> tuple[Any, Any]:
    records = RawRecords(0, PLACE, Answer(data), level, **aborted)  # type: ignore[arg-type]
    assert records
    result = records.take()
    assert not records
    return records, result


def test_aborted_transactions_and_markers_are_left_out_where_only_committed_messages_are_wanted() -> None:
    data = (
        batch_of(ONE, 0, attributes=0x10, producer=7)  # aborted
        + batch_of(ONE, 1, attributes=0x10, producer=8)  # committed
        + batch_of(ONE, 2)  # of no transaction
        + marker(3, 7, commit=False)
        + batch_of(ONE, 4, attributes=0x10, producer=7)  # the same producer's next one, committed
        + marker(5, 8, commit=True)
        + marker(6, 7, commit=True)
    )

    def offsets(level: Any) -> list[int]:
        records, result = fetched(data, level, aborted_transactions=[Aborted(0, 7)])
        assert result[-1].next == 7 == records.next_fetch_offset
        return [step.next - 1 for step in result if step.batch is not None]

    assert offsets(IsolationLevel.READ_COMMITTED) == [1, 2, 4]
    assert offsets(IsolationLevel.READ_UNCOMMITTED) == [0, 1, 2, 4]


def test_a_broken_batch_stands_between_those_before_and_behind_it() -> None:
    data = batch_of(RECORDS[:2], 0) + batch_of(RECORDS[:2], 10)[:-1] + b"?" + batch_of(RECORDS[:2], 20)
    records, result = fetched(data)
    assert [step.next for step in result] == [0, 2, 20, 22]
    assert [type(step.batch) is BrokenBatch for step in result] == [False, False, True, False]
    assert result[2].batch.offset == 2 and records.edge == 22


class Subscriptions:
    """A partition that is read from offset 20 on."""

    def __init__(self) -> None:
        state = SimpleNamespace(position=SimpleNamespace(offset=20, leader_epoch=4), highwater=None)
        state.update_preferred_read_replica = lambda *_: False
        self.assignment = {PLACE: state}

    def is_fetchable(self, _: Any) -> bool:
        return True

    def move_partition_to_end(self, _: Any) -> None:
        pass


def fetcher() -> RawFetcher:
    client = SimpleNamespace(_manager=SimpleNamespace(_net=None))
    return RawFetcher(client, Subscriptions(), isolation_level="read_committed")


def answer(data: bytes, error: int = 0, end: int = 60) -> Any:
    partition = FetchResponse.FetchableTopicResponse.PartitionData(
        partition_index=0,
        error_code=error,
        high_watermark=end,
        last_stable_offset=end,
        aborted_transactions=[],
        preferred_read_replica=-1,
        records=data,
    )
    return CompletedFetch(PLACE, 20, 12, partition, None)


@pytest.mark.parametrize(
    ("data", "error", "why"),
    [
        (b"", 2, "the broker itself says so"),
        (batch_of(RECORDS[:2], 20)[:8] + struct.pack(">i", 1 << 30) + bytes(100), 0, "longer than the whole"),
    ],
)
def test_an_answer_without_a_batch_is_broken_and_nothing_is_read_past_it(
    data: bytes, error: int, why: str
) -> None:
    (step,) = fetcher()._parse_fetched_data(answer(data, error)).take()
    assert isinstance(step.batch, BrokenBatch) and why in step.batch.why
    assert step.next == step.batch.offset == step.batch.next_offset == 20


def test_an_answer_says_where_its_partition_ends_and_where_its_batches_may_begin() -> None:
    made = fetcher()
    first = made._parse_fetched_data(answer(batch_of(RECORDS[:2], 19)))
    assert made.ends == {("t", 0): 60} and (first.end, first.inside) == (60, True)
    first.take()
    first.edge = 20  # as if the last batch had ended where the next fetch began
    assert not made._parse_fetched_data(answer(batch_of(RECORDS[:2], 20))).inside


def test_what_goes_wrong_in_its_own_thread_is_remembered() -> None:
    made = fetcher()
    made._handle_fetch_error(1, KafkaError("gone"))
    assert isinstance(made.faults, deque) and made.faults[0].text.endswith("gone")
    made._handle_fetch_error(1, OSError(9, "closed"))
    assert made.faults[1].code == 9
