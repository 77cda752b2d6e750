"""The mock cluster inside librdkafka, configured by its C interface to answer requests with errors.

It speaks Kafka's protocol on loopback ports, without Java. It knows no aborted messages, and deletes nothing.
"""

from __future__ import annotations

import ctypes as c
from typing import Any, Self

from streamgauge.operators.kafka.librdkafka import library

from ...faulty_proxy import Request

_PRODUCER = 0
_pointer, _text, _int, _size = c.c_void_p, c.c_char_p, c.c_int, c.c_size_t

# name → (result, arguments)
_FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "rd_kafka_new": (_pointer, [_int, _pointer, _text, _size]),
    "rd_kafka_destroy": (None, [_pointer]),
    "rd_kafka_mock_cluster_new": (_pointer, [_pointer, _int]),
    "rd_kafka_mock_cluster_destroy": (None, [_pointer]),
    "rd_kafka_mock_cluster_bootstraps": (_text, [_pointer]),
    "rd_kafka_mock_group_initial_rebalance_delay_ms": (None, [_pointer, c.c_int32]),
    "rd_kafka_mock_topic_create": (_int, [_pointer, _text, _int, _int]),
    "rd_kafka_mock_broker_set_rtt": (_int, [_pointer, c.c_int32, _int]),
    "rd_kafka_mock_push_request_errors_array": (None, [_pointer, c.c_int16, _size, c.POINTER(_int)]),
    "rd_kafka_mock_clear_request_errors": (None, [_pointer, c.c_int16]),
}


class MockCluster:
    """Brokers that answer as configured; `bootstrap_servers` is their address."""

    def __init__(self, brokers: int = 1) -> None:
        results = library()
        assert results is not None, "librdkafka is not where confluent-kafka has it"
        self._rd = results
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(self._rd, name)
            function.restype, function.argtypes = result, arguments
        self._brokers = brokers

    def __enter__(self) -> Self:
        said = c.create_string_buffer(512)
        conf = self._rd.rd_kafka_conf_new()
        self._rd.rd_kafka_conf_set(conf, b"log_level", b"0", said, len(said))
        self._client = self._rd.rd_kafka_new(_PRODUCER, conf, said, len(said))
        assert self._client, said.value
        self._cluster = self._rd.rd_kafka_mock_cluster_new(self._client, self._brokers)
        # As on the embedded broker: the first member of a group waits for no other.
        self._rd.rd_kafka_mock_group_initial_rebalance_delay_ms(self._cluster, 0)
        self.bootstrap_servers = self._rd.rd_kafka_mock_cluster_bootstraps(self._cluster).decode()
        return self

    def __exit__(self, *_: object) -> None:
        self._rd.rd_kafka_mock_cluster_destroy(self._cluster)
        self._rd.rd_kafka_destroy(self._client)

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """Make a topic."""
        assert self._rd.rd_kafka_mock_topic_create(self._cluster, name.encode(), partitions, 1) == 0

    def fail(self, kind: Request, *codes: int) -> None:
        """Answer the next requests of a kind with these errors, one each, from any client."""
        errors = (_int * len(codes))(*codes)
        self._rd.rd_kafka_mock_push_request_errors_array(self._cluster, int(kind), len(codes), errors)

    def delay(self, seconds: float) -> None:
        """Answer every request so much later."""
        for broker in range(1, self._brokers + 1):
            self._rd.rd_kafka_mock_broker_set_rtt(self._cluster, broker, int(seconds * 1000))
