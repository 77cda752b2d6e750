"""A transactional producer that sends a block of messages in one call, through librdkafka's C interface.

confluent-kafka's `produce` costs a Python call per message, more than all of librdkafka's own work; here a
block costs one. No message's callback enters Python: within transactions `commit` fails if a message failed.
"""

from __future__ import annotations

import ctypes as c
import time
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
from confluent_kafka import KafkaError, KafkaException

from ...sketches.core.errors import StreamgaugeError
from .client_config import as_text
from .librdkafka import ERROR_CALLBACK, library
from .produce import CONNECT_SECONDS

Headers = Sequence[tuple[str, bytes | None]]

_PRODUCER = 0
_COPY = 2
"""The library copies payloads before a call returns, so that it never reads Python's memory later."""
_PURGE = 1 | 2 | 4  # queued messages, messages in flight, without waiting
_QUEUE_FULL = int(KafkaError._QUEUE_FULL)
_TIMED_OUT = int(KafkaError._TIMED_OUT)
_ALL_DOWN = int(KafkaError._ALL_BROKERS_DOWN)
_SLICE_SECONDS = 0.5

# rd_kafka_message_t
_MESSAGE = np.dtype(
    {
        "names": ["err", "topic", "partition", "payload", "len", "key", "key_len", "offset", "opaque"],
        "formats": ["<i4", "<u8", "<i4", "<u8", "<u8", "<u8", "<u8", "<i8", "<u8"],
        "offsets": [0, 8, 16, 24, 32, 40, 48, 56, 64],
        "itemsize": 72,
    }
)

# rd_kafka_vu_t: a kind, then a union of 64 bytes
_FIELD = np.dtype([("kind", "<i4"), ("", "<i4"), ("a", "<u8"), ("b", "<u8"), ("c", "<u8"), ("", "V40")])
_TOPIC, _PARTITION, _VALUE, _KEY, _FLAGS, _TIMESTAMP, _HEADER = 2, 3, 4, 5, 7, 8, 9


class NoLibrary(StreamgaugeError, RuntimeError):
    """librdkafka can't be loaded on its own; the message says what to install."""


class BatchProducer:
    """Sends blocks of messages within transactions; `config` has librdkafka's settings.

    On creation it ends a transaction that an earlier producer with the same ``transactional.id`` left open,
    and fences that producer. After an error, `needs_abort` tells whether `abort` can recover; otherwise
    `close` it and create another. Not thread-safe. All methods raise `KafkaException`, and `NoLibrary` if the
    library can't be loaded.
    """

    def __init__(self, config: Mapping[str, Any], seconds: float) -> None:
        rd = library()
        if rd is None:
            raise NoLibrary(
                "librdkafka can't be loaded from the package confluent-kafka; install its wheel: "
                "pip install --force-reinstall --only-binary :all: confluent-kafka"
            )
        self._rd = rd
        self._topics: dict[str, int] = {}
        self.cut_off = False
        """Whether all brokers failed at once: they may return at addresses that it will not try."""
        self._on_error = ERROR_CALLBACK(self._note_fault)
        self._handle: int | None = self._new(config)
        self.needs_abort = False
        time.sleep(CONNECT_SECONDS)
        try:
            self._check(rd.rd_kafka_init_transactions(self._handle, _ms(seconds)))
        except BaseException:
            self.close()
            raise

    def _new(self, config: Mapping[str, Any]) -> int:
        rd, words = self._rd, c.create_string_buffer(512)
        conf = rd.rd_kafka_conf_new()
        for name, value in config.items():
            if rd.rd_kafka_conf_set(conf, name.encode(), as_text(value).encode(), words, len(words)) != 0:
                rd.rd_kafka_conf_destroy(conf)
                raise KafkaException(
                    KafkaError(KafkaError._INVALID_ARG, words.value.decode(errors="replace"))
                )
        rd.rd_kafka_conf_set_log_cb(conf, None)
        rd.rd_kafka_conf_set_error_cb(conf, self._on_error)
        handle = rd.rd_kafka_new(_PRODUCER, conf, words, len(words))
        if not handle:
            rd.rd_kafka_conf_destroy(conf)
            raise KafkaException(KafkaError(KafkaError._INVALID_ARG, words.value.decode(errors="replace")))
        return int(handle)

    def begin(self) -> None:
        """Begin a transaction."""
        self._check(self._rd.rd_kafka_begin_transaction(self._handle))

    def send(
        self, topic: str, partition: int, lines: np.ndarray, starts: np.ndarray, lengths: np.ndarray
    ) -> int:
        """Queue the messages ``lines[start : start + length]``; returns how many the queue had room for.

        `lines` are uint8 and contiguous, `starts` and `lengths` int64. Send the others again.
        """
        messages = np.zeros(len(starts), _MESSAGE)
        # An empty payload must not be a null pointer, which would be a tombstone.
        messages["payload"] = (lines.ctypes.data if len(lines) else _EMPTY.ctypes.data) + starts
        messages["len"] = lengths
        sent = int(
            self._rd.rd_kafka_produce_batch(
                self._topic(topic), partition, _COPY, messages.ctypes.data, len(messages)
            )
        )
        if sent < len(messages):
            codes = messages["err"]
            if (others := codes[(codes != 0) & (codes != _QUEUE_FULL)]).size:
                self._fail(int(others[0]), None)
        return sent

    def send_fully(
        self,
        topic: str,
        partition: int,
        lines: np.ndarray,
        starts: np.ndarray,
        lengths: np.ndarray,
        *,
        keys: Sequence[bytes | None] | None = None,
        headers: Headers = (),
        own_headers: Sequence[Headers] | None = None,
        timestamp_ms: int | np.ndarray = 0,
        nulls: np.ndarray | None = None,
    ) -> int:
        """Like `send`, with keys, headers and timestamps; it calls the library for each message.

        `headers` apply to all messages, `own_headers` are further headers of each. A timestamp of 0 is the
        time of sending; messages that are `nulls` are tombstones.
        """
        count = len(starts)
        most = max(map(len, own_headers), default=0) if own_headers else 0
        fields = np.zeros((count, 6 + len(headers) + most), _FIELD)
        used = np.full(count, 6 + len(headers))
        base = lines.ctypes.data if len(lines) else _EMPTY.ctypes.data
        for at, kind in enumerate((_TOPIC, _PARTITION, _FLAGS, _VALUE, _KEY, _TIMESTAMP)):
            fields["kind"][:, at] = kind
        fields["a"][:, 0] = self._topic(topic)
        fields["a"][:, 1] = partition & 0xFFFFFFFF
        fields["a"][:, 2] = _COPY
        fields["a"][:, 3], fields["b"][:, 3] = base + starts, lengths
        if nulls is not None:
            fields["a"][nulls, 3] = 0
        fields["a"][:, 5] = timestamp_ms
        # The objects that addresses point to must live until the library has copied them.
        names = [[name.encode() for name, _ in own] for own in (headers, *(own_headers or ()))]
        for at, (name, (_, value)) in enumerate(zip(names[0], headers), 6):
            _fill(fields[:, at], name, value)
        for row, own in enumerate(own_headers or ()):
            for at, (name, (_, value)) in enumerate(zip(names[row + 1], own), 6 + len(headers)):
                _fill(fields[row : row + 1, at], name, value)
            used[row] += len(own)
        for row, key in enumerate(keys or ()):
            if key is not None:
                fields["a"][row, 4], fields["b"][row, 4] = _address(key), len(key)
        call, handle = self._rd.rd_kafka_produceva, self._handle
        first, stride = fields.ctypes.data, fields.strides[0]
        for row, number in enumerate(used.tolist()):
            if error := call(handle, first + row * stride, number):
                if self._rd.rd_kafka_error_code(error) == _QUEUE_FULL:
                    self._rd.rd_kafka_error_destroy(error)
                    return row
                self._check(error)
        return count

    def wait(self, seconds: float) -> None:
        """Wait, so that the library can send."""
        self._rd.rd_kafka_poll(self._handle, _ms(seconds))

    def commit(self, seconds: float) -> None:
        """Wait until all messages are delivered, and commit; after an error the outcome may be unknown.

        It ends early, with an error, once it is `cut_off`.
        """
        until = time.monotonic() + seconds
        while True:
            left = until - time.monotonic()
            error = self._rd.rd_kafka_commit_transaction(self._handle, _ms(min(left, _SLICE_SECONDS)))
            if error and self.cut_off:
                self._rd.rd_kafka_error_destroy(error)
                raise KafkaException(KafkaError(_ALL_DOWN))
            if not error or left <= _SLICE_SECONDS or self._rd.rd_kafka_error_code(error) != _TIMED_OUT:
                break
            self._rd.rd_kafka_error_destroy(error)  # it continues when it is called again
        self._check(error)

    def abort(self, seconds: float) -> None:
        """Abort the transaction; then another can begin."""
        self._check(self._rd.rd_kafka_abort_transaction(self._handle, _ms(seconds)))
        self.needs_abort = False

    def close(self) -> None:
        """Close the producer; a successor, or a timeout, aborts a transaction that it left open."""
        handle, self._handle = self._handle, None
        if handle is not None:
            self._rd.rd_kafka_purge(handle, _PURGE)
            for topic in self._topics.values():
                self._rd.rd_kafka_topic_destroy(topic)
            self._rd.rd_kafka_destroy(handle)

    def _note_fault(self, _handle: int, code: int, _reason: bytes, _opaque: int) -> None:
        self.cut_off |= code == _ALL_DOWN

    def _topic(self, name: str) -> int:
        if name not in self._topics:
            topic = self._rd.rd_kafka_topic_new(self._handle, name.encode(), None)
            if not topic:
                raise KafkaException(KafkaError(KafkaError._INVALID_ARG, f"{name!r} is not a topic's name"))
            self._topics[name] = topic
        return self._topics[name]

    def _check(self, error: int | None) -> None:
        """Raise an error of the library, and record whether it requires an abort."""
        if not error:
            return
        rd = self._rd
        code, text = rd.rd_kafka_error_code(error), rd.rd_kafka_error_string(error).decode(errors="replace")
        fatal, retriable = rd.rd_kafka_error_is_fatal(error), rd.rd_kafka_error_is_retriable(error)
        self.needs_abort = bool(rd.rd_kafka_error_txn_requires_abort(error))
        rd.rd_kafka_error_destroy(error)
        self._fail(code, text, bool(fatal), bool(retriable))

    def _fail(self, code: int, text: str | None, fatal: bool = False, retriable: bool = False) -> NoReturn:
        """Raise an error; after a fatal error, which later calls don't repeat in full, raise that one."""
        if code == KafkaError._FATAL:
            words = c.create_string_buffer(512)
            code = self._rd.rd_kafka_fatal_error(self._handle, words, len(words)) or code
            text, fatal = words.value.decode(errors="replace") or text, True
        raise KafkaException(KafkaError(code, text, fatal, retriable, self.needs_abort))


_EMPTY = np.zeros(1, np.uint8)


def _fill(column: np.ndarray, name: bytes, value: bytes | None) -> None:
    """Write a header into fields."""
    column["kind"] = _HEADER
    column["a"] = _address(name)
    column["b"] = 0 if value is None else _address(value)
    column["c"] = 0 if value is None else len(value)


def _address(data: bytes) -> int:
    return c.cast(c.c_char_p(data), c.c_void_p).value or 0


def _ms(seconds: float) -> int:
    return max(int(seconds * 1000), 0)
