"""The librdkafka inside the confluent-kafka package, by its public C interface.

Only what bulk reading needs (``rdkafka.h``); no callback is ever set, so none crosses into Python.
"""

from __future__ import annotations

import ctypes as c
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

NEEDED = 0x020D02FF
"""2.13.2: since then a batch moves the positions as single messages do."""

CONSUMER = 1
NO_CONSUMER_CLOSE = 0x8
EVENT_LOG, EVENT_ERROR = 0x4, 0x8


class Message(c.Structure):
    """``rd_kafka_message_t``."""

    _fields_ = (
        ("err", c.c_int),
        ("rkt", c.c_void_p),
        ("partition", c.c_int32),
        ("payload", c.c_void_p),
        ("len", c.c_size_t),
        ("key", c.c_void_p),
        ("key_len", c.c_size_t),
        ("offset", c.c_int64),
        ("_private", c.c_void_p),
    )


class TopicPartition(c.Structure):
    """``rd_kafka_topic_partition_t``."""

    _fields_ = (
        ("topic", c.c_char_p),
        ("partition", c.c_int32),
        ("offset", c.c_int64),
        ("metadata", c.c_void_p),
        ("metadata_size", c.c_size_t),
        ("opaque", c.c_void_p),
        ("err", c.c_int),
        ("_private", c.c_void_p),
    )


class TopicPartitions(c.Structure):
    """``rd_kafka_topic_partition_list_t``."""

    _fields_ = (("cnt", c.c_int), ("size", c.c_int), ("elems", c.POINTER(TopicPartition)))


class MetadataPartition(c.Structure):
    """``rd_kafka_metadata_partition_t``."""

    _fields_ = (
        ("id", c.c_int32),
        ("err", c.c_int),
        ("leader", c.c_int32),
        ("replica_cnt", c.c_int),
        ("replicas", c.c_void_p),
        ("isr_cnt", c.c_int),
        ("isrs", c.c_void_p),
    )


class MetadataTopic(c.Structure):
    """``rd_kafka_metadata_topic_t``."""

    _fields_ = (
        ("topic", c.c_char_p),
        ("partition_cnt", c.c_int),
        ("partitions", c.POINTER(MetadataPartition)),
        ("err", c.c_int),
    )


class Metadata(c.Structure):
    """``rd_kafka_metadata_t``."""

    _fields_ = (
        ("broker_cnt", c.c_int),
        ("brokers", c.c_void_p),
        ("topic_cnt", c.c_int),
        ("topics", c.POINTER(MetadataTopic)),
        ("orig_broker_id", c.c_int32),
        ("orig_broker_name", c.c_char_p),
    )


_pointer, _text, _int, _size, _int64 = c.c_void_p, c.c_char_p, c.c_int, c.c_size_t, c.c_int64
_list = c.POINTER(TopicPartitions)

# name → (result, arguments)
_FUNCTIONS: dict[str, tuple[object, list[object]]] = {
    "rd_kafka_version": (_int, []),
    "rd_kafka_err2str": (_text, [_int]),
    "rd_kafka_conf_new": (_pointer, []),
    "rd_kafka_conf_destroy": (None, [_pointer]),
    "rd_kafka_conf_set": (_int, [_pointer, _text, _text, _text, _size]),
    "rd_kafka_conf_set_events": (None, [_pointer, _int]),
    "rd_kafka_new": (_pointer, [_int, _pointer, _text, _size]),
    "rd_kafka_destroy_flags": (None, [_pointer, _int]),
    "rd_kafka_set_log_queue": (_int, [_pointer, _pointer]),
    "rd_kafka_queue_get_main": (_pointer, [_pointer]),
    "rd_kafka_queue_get_consumer": (_pointer, [_pointer]),
    "rd_kafka_queue_destroy": (None, [_pointer]),
    "rd_kafka_queue_poll": (_pointer, [_pointer, _int]),
    "rd_kafka_event_type": (_int, [_pointer]),
    "rd_kafka_event_error": (_int, [_pointer]),
    "rd_kafka_event_error_string": (_text, [_pointer]),
    "rd_kafka_event_error_is_fatal": (_int, [_pointer]),
    "rd_kafka_event_log": (_int, [_pointer, c.POINTER(_text), c.POINTER(_text), c.POINTER(_int)]),
    "rd_kafka_event_destroy": (None, [_pointer]),
    "rd_kafka_assign": (_int, [_pointer, _list]),
    "rd_kafka_position": (_int, [_pointer, _list]),
    "rd_kafka_pause_partitions": (_int, [_pointer, _list]),
    "rd_kafka_resume_partitions": (_int, [_pointer, _list]),
    "rd_kafka_topic_partition_list_new": (_list, [_int]),
    "rd_kafka_topic_partition_list_add": (c.POINTER(TopicPartition), [_list, _text, c.c_int32]),
    "rd_kafka_topic_partition_list_destroy": (None, [_list]),
    "rd_kafka_query_watermark_offsets": (
        _int,
        [_pointer, _text, c.c_int32, c.POINTER(_int64), c.POINTER(_int64), _int],
    ),
    "rd_kafka_topic_new": (_pointer, [_pointer, _text, _pointer]),
    "rd_kafka_topic_destroy": (None, [_pointer]),
    "rd_kafka_topic_name": (_text, [_pointer]),
    "rd_kafka_metadata": (_int, [_pointer, _int, _pointer, c.POINTER(c.POINTER(Metadata)), _int]),
    "rd_kafka_metadata_destroy": (None, [c.POINTER(Metadata)]),
    "rd_kafka_consume_batch_queue": (c.c_ssize_t, [_pointer, _int, _pointer, _size]),
    "rd_kafka_message_destroy": (None, [_pointer]),
    "rd_kafka_message_timestamp": (_int64, [_pointer, _pointer]),
    "rd_kafka_message_headers": (_int, [_pointer, _pointer]),
    "rd_kafka_header_cnt": (_size, [_pointer]),
    "rd_kafka_header_get_all": (_int, [_pointer, _size, _pointer, _pointer, _pointer]),
}


@cache
def library() -> c.CDLL | None:
    """The library that confluent-kafka itself uses, or None where it can't be had or is too old."""
    import confluent_kafka

    version = confluent_kafka.libversion()[1]
    if version < NEEDED or c.sizeof(_pointer) != 8:
        return None
    for path in _candidates():
        try:
            found = c.CDLL(str(path))
            for name, (result, arguments) in _FUNCTIONS.items():
                function = getattr(found, name)
                function.restype, function.argtypes = result, arguments
        except (OSError, AttributeError):
            continue
        # Another librdkafka, such as the system's, might have another layout.
        if found.rd_kafka_version() == version:
            return found
    return None


def address(function: object) -> int:
    """Where a function of the library lies, for kernels."""
    return c.cast(function, _pointer).value or 0  # type: ignore[arg-type]


def _candidates() -> Iterator[Path]:
    """The library as wheels bundle it (Linux, macOS, Windows), as it is loaded, or linked into the module."""
    import confluent_kafka
    from confluent_kafka import cimpl

    package = Path(confluent_kafka.__file__).parent
    for folder in (package.with_name("confluent_kafka.libs"), package / ".dylibs"):
        yield from sorted(folder.glob("librdkafka*"))
    if sys.platform == "linux":
        maps = Path("/proc/self/maps").read_text(errors="replace").splitlines()
        yield from {Path(line.split(maxsplit=5)[5]): None for line in maps if "/librdkafka" in line}
    yield Path(cimpl.__file__)
