"""A batch of librdkafka's messages as columns."""

from __future__ import annotations

import ctypes as c

import numpy as np
import pyarrow as pa

from . import gather
from .librdkafka import address
from .messages import HEADERS, Messages, binary


def columns(rd: c.CDLL, batch: np.ndarray, headers: bool) -> Messages | None:
    """The messages at these addresses (int64) that are no errors; None if there are none.

    All bytes are copied: the batch can be given back afterwards.
    """
    size = len(batch)
    partition = np.empty(size, np.int32)
    handle, offset, timestamp, payload, length, key, key_length = np.empty((7, size), np.int64)
    good = gather.scan(
        batch,
        address(rd.rd_kafka_message_timestamp),
        *(handle, partition, offset, timestamp, payload, length, key, key_length),
    )
    if not good:
        return None
    topics, topic = _topics(rd, handle[:good])
    lines, starts = gather_bytes(payload[:good], length[:good], newline=True)
    key_is_null = key_length[:good] < 0
    if key_is_null.all():
        keys = pa.nulls(good, pa.large_binary())
    else:
        keys = binary(*gather_bytes(key[:good], key_length[:good], newline=False), key_is_null)
    listed = read_headers(rd, batch, good) if headers else None
    # Copies of two, so that the block they share with the addresses isn't kept.
    return Messages(
        topics,
        topic,
        partition[:good],
        offset[:good].copy(),
        timestamp[:good].copy(),
        lines,
        starts[:-1],
        starts[1:] - 1,
        length[:good] < 0,
        keys,
        listed,
    )


def _topics(rd: c.CDLL, handle: np.ndarray) -> tuple[tuple[str, ...], np.ndarray]:
    if (handle == handle[0]).all():
        handles, codes = handle[:1], np.zeros(len(handle), np.int32)
    else:
        handles, wide = np.unique(handle, return_inverse=True)
        codes = wide.astype(np.int32)
    return tuple(rd.rd_kafka_topic_name(int(h)).decode() for h in handles), codes


def read_headers(rd: c.CDLL, batch: np.ndarray, good: int) -> pa.ListArray:
    """The headers of the `good` messages of a batch."""
    handle, ends = np.empty(good, np.int64), np.empty(good + 1, np.int32)
    count_of, headers_of = address(rd.rd_kafka_header_cnt), address(rd.rd_kafka_message_headers)
    total = gather.count_headers(batch, headers_of, count_of, handle, ends)
    name, name_length, value, value_length = np.empty((4, total), np.int64)
    get = address(rd.rd_kafka_header_get_all)
    gather.scan_headers(handle, ends, get, name, name_length, value, value_length)
    names = binary(*gather_bytes(name, name_length, newline=False), np.zeros(total, np.bool_))
    values = binary(*gather_bytes(value, value_length, newline=False), value_length < 0)
    keys = header_names(names.cast(pa.binary()))
    pairs = pa.StructArray.from_arrays([keys, values.cast(pa.binary())], ["key", "value"])
    return pa.ListArray.from_arrays(pa.array(ends), pairs).cast(HEADERS)


def header_names(names: pa.BinaryArray) -> pa.StringArray:
    """Headers' names as text. What is not UTF-8 in them, which no client should send, is replaced: one
    message must not end the stream.
    """
    try:
        return names.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([name.decode(errors="replace") for name in names.to_pylist()], pa.string())


def gather_bytes(at: np.ndarray, length: np.ndarray, newline: bool) -> tuple[np.ndarray, np.ndarray]:
    """Byte strings at their addresses as one buffer and its n + 1 starts."""
    starts = np.empty(len(at) + 1, np.int64)
    data = np.empty(gather.lay_out(length, int(newline), starts), np.uint8)
    gather.copy_out(at, length, starts, newline, data)
    return data, starts
