"""Fetched record batches as one batch of messages."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa

from ..formats.byte_copy import copy_spans
from ..formats.messages import Messages, binary, headers_type
from .codecs import CorruptRecords
from .raw_fetcher import Fetched
from .record_batches import RecordBatch
from .record_kernel import Columns, columns, split_headers


def messages_of(steps: list[Fetched], begins: list[int], headers: bool) -> Messages:
    """The messages of these batches, each from an offset on, because a batch may begin before it.

    Values stay where they were decompressed. Raises `CorruptRecords` naming the first broken batch.
    """
    batches = [step.batch for step in steps if isinstance(step.batch, RecordBatch)]
    data, rows = columns(batches)
    topics = tuple(dict.fromkeys(step.where[0] for step in steps))
    counts = [batch.count for batch in batches]
    appended = [batch.broker_time >= 0 for batch in batches]
    null, ends = rows.value_length < 0, rows.value + rows.value_length
    if null.any():
        ends[null] = rows.value[null]
    messages = Messages(
        topics,
        np.repeat(np.array([topics.index(step.where[0]) for step in steps], np.int32), counts),
        np.repeat(np.array([step.where[1] for step in steps], np.int32), counts),
        rows.offset,
        rows.timestamp,
        data,
        rows.value,
        ends,
        null,
        _strings(data, rows.key, rows.key_length),
        _headers(data, rows, counts) if headers else None,
        np.repeat(appended, counts) if any(appended) else None,
        stretches=_stretches(steps, counts),
    )
    early = messages.offset < np.repeat(begins, counts)
    return messages.select(~early) if early.any() else messages


def _stretches(steps: list[Fetched], counts: list[int]) -> tuple[tuple[int, int], ...]:
    """The ranges of messages from one partition."""
    ends = [0, *itertools.accumulate(counts)]
    edges = [at for at in range(1, len(steps)) if steps[at].where != steps[at - 1].where]
    return tuple((ends[low], ends[high]) for low, high in itertools.pairwise([0, *edges, len(steps)]))


def _strings(data: np.ndarray, at: np.ndarray, length: np.ndarray) -> pa.LargeBinaryArray:
    """Byte strings in `data`, copied to an array of their own; a length of −1 is null."""
    null = length < 0
    if null.all():
        return pa.nulls(len(at), pa.large_binary())
    lengths = np.maximum(length, 0)
    starts = np.zeros(len(at) + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    own = np.empty(starts[-1], np.uint8)
    copy_spans(data, at, at + lengths, own, starts[:-1])
    return binary(own, starts, null)


def _headers(data: np.ndarray, rows: Columns, counts: list[int]) -> pa.ListArray:
    """Every record's headers; `counts` are the numbers of records in each batch."""
    ends = np.zeros(len(rows.offset) + 1, np.int32)
    np.cumsum(rows.header_count, out=ends[1:])
    spans = np.empty((4, ends[-1]), np.int64)
    broken = split_headers(data, rows.headers, rows.header_count, *spans)
    if broken >= 0:
        at = int(np.searchsorted(np.cumsum(counts), broken, side="right"))
        raise CorruptRecords("its headers are not as long as they say", at)
    names = header_names(_strings(data, spans[0], spans[1]).cast(pa.binary()))
    values = _strings(data, spans[2], spans[3]).cast(pa.binary())
    pairs = pa.StructArray.from_arrays([names, values], ["key", "value"])
    return pa.ListArray.from_arrays(pa.array(ends), pairs).cast(headers_type())


def header_names(names: pa.BinaryArray) -> pa.StringArray:
    """The names of headers as text. Invalid UTF-8 in them, which no client should send, is replaced: a
    single message must not end the stream.
    """
    try:
        return names.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([name.decode(errors="replace") for name in names.to_pylist()], pa.string())
