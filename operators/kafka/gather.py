"""Kernels over librdkafka's messages and over values in a buffer.

A batch from librdkafka is an array of addresses of ``rd_kafka_message_t``, whose layout its ABI fixes
(``rdkafka.h``, unchanged since 0.8)::

    byte  0  int32   err        0, or why this is no message
          8  pointer rkt        the topic's handle
         16  int32   partition
         24  pointer payload    null: a tombstone
         32  size_t  len
         40  pointer key        null: no key
         48  size_t  key_len
         56  int64   offset

Functions of the library are called by their address, which is an argument, so that kernels stay cacheable.
"""

from __future__ import annotations

import numpy as np

from ...sketches.jit import kernel
from .memory import call1, call2, call5, copy, load8, load32, load64

NO_BYTES = np.int64(-1)
"""The length of a null value or key."""


@kernel
def scan(  # type: ignore[no-untyped-def]
    messages, timestamp_of, handle, partition, offset, timestamp, payload, length, key, key_length
):
    """Read the fields of the messages that are no errors; returns how many there are.

    The columns are filled from row 0 without gaps. `length` and `key_length` are −1 for null.
    """
    n = 0
    for i in range(len(messages)):
        at = messages[i]
        if load32(at) != 0:
            continue
        handle[n] = load64(at + 8)
        partition[n] = load32(at + 16)
        payload[n] = load64(at + 24)
        length[n] = load64(at + 32) if payload[n] != 0 else NO_BYTES
        key[n] = load64(at + 40)
        key_length[n] = load64(at + 48) if key[n] != 0 else NO_BYTES
        offset[n] = load64(at + 56)
        timestamp[n] = call2(timestamp_of, at, 0)
        n += 1
    return n


@kernel
def lay_out(length, gap, starts):  # type: ignore[no-untyped-def]
    """Where each of these byte strings begins with `gap` bytes after each; returns the bytes in all."""
    at = np.int64(0)
    for i in range(len(length)):
        starts[i] = at
        at += max(length[i], 0) + gap
    starts[len(length)] = at
    return at


@kernel
def copy_out(address, length, starts, newline, data):  # type: ignore[no-untyped-def]
    """Copy byte strings from their addresses to their starts, a newline after each if asked to."""
    to = data.ctypes.data
    for i in range(len(length)):
        if length[i] > 0:
            copy(to + starts[i], address[i], length[i])
        if newline:
            data[starts[i + 1] - 1] = np.uint8(10)


@kernel
def destroy(messages, function):  # type: ignore[no-untyped-def]
    """Give messages back to the library."""
    for i in range(len(messages)):
        call1(function, messages[i])


@kernel
def copy_spans(lines, starts, ends, into, to):  # type: ignore[no-untyped-def]
    """Copy values from where they lie to where they shall begin."""
    base = into.ctypes.data
    origin = lines.ctypes.data
    for i in range(len(starts)):
        copy(base + to[i], origin + starts[i], ends[i] - starts[i])


@kernel
def count_headers(messages, headers_of, count_of, handle, ends):  # type: ignore[no-untyped-def]
    """Each message's headers: their handle (0 for none), and the running count `ends` (n + 1, int32)."""
    found = np.zeros(1, np.int64)
    n = 0
    total = 0
    ends[0] = 0
    for i in range(len(messages)):
        if load32(messages[i]) != 0:
            continue
        handle[n] = 0
        if call2(headers_of, messages[i], np.int64(found.ctypes.data)) & 0xFFFFFFFF == 0:
            handle[n] = found[0]
            total += call1(count_of, found[0])
        n += 1
        ends[n] = total
    return total


@kernel
def scan_headers(handle, ends, get, name, name_length, value, value_length):  # type: ignore[no-untyped-def]
    """Addresses and lengths of all headers' names and values, in order; length −1 for a null value."""
    found = np.zeros(3, np.int64)
    at = np.int64(found.ctypes.data)
    for i in range(len(handle)):
        for j in range(ends[i + 1] - ends[i]):
            call5(get, handle[i], np.int64(j), at, at + 8, at + 16)
            to = ends[i] + j
            name[to] = found[0]
            length = 0
            while load8(found[0] + length) != 0:
                length += 1
            name_length[to] = length
            value[to] = found[1]
            value_length[to] = found[2] if found[1] != 0 else NO_BYTES
