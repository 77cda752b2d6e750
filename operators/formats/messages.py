"""A batch of Kafka messages as columns, without a Python object for each message."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

from ...sketches.core.lazy import np, pa, pl


@cache
def headers_type() -> pa.ListType:
    """The Arrow type of the headers: in order; keys may repeat, values may be null."""
    return pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


_NEWLINE = 10


@dataclass(frozen=True, slots=True)
class Broken:
    """Offsets `first` … `next` − 1 of a partition, skipped because the broker's bytes for them can't be read.

    `raw` are the bytes received in their place, usually a record batch.
    """

    topic: str
    partition: int
    first: int
    next: int
    reason: str
    raw: bytes


@dataclass(frozen=True, slots=True, eq=False)
class Messages:
    """Messages of one or several partitions; those of a partition are in the order of their offsets.

    `partition` (int32), `offset` (int64) and `timestamp` (int64, ms since 1970, −1 where Kafka has none) are
    NumPy columns; `topic` (int32) points into `topics`. The values are in `lines` (uint8), in any order:
    value ``i`` is ``lines[starts[i] : ends[i]]`` (int64), followed by a newline, which the JSON kernel needs;
    it is empty where `is_null` (a tombstone). `key` is a large binary Arrow array, `headers` an array of
    `headers_type`, or None if they were not requested. `value` and `to_arrow` return everything as Arrow.
    `appended` marks messages whose timestamp is the broker's (``LogAppendTime``); None if there are none.
    Skipped offsets are `broken`, in a batch of their own without messages. `stretches` is the result of
    `runs`, if it is known.

    >>> import streamgauge as sg
    >>> m = sg.formats.Messages.of([b'{"a":1}', None], keys=[b"k", None], first_offset=7)
    >>> m.value.to_pylist(), m.key.to_pylist(), m.offset.tolist()
    ([b'{"a":1}', None], [b'k', None], [7, 8])
    """

    topics: tuple[str, ...]
    topic: np.ndarray
    partition: np.ndarray
    offset: np.ndarray
    timestamp: np.ndarray
    lines: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    is_null: np.ndarray
    key: pa.LargeBinaryArray
    headers: pa.ListArray | None = None
    appended: np.ndarray | None = None
    broken: Broken | None = None
    stretches: tuple[tuple[int, int], ...] | None = None

    def __len__(self) -> int:
        return len(self.offset)

    @property
    def value(self) -> pa.LargeBinaryArray:
        """The values as a large binary Arrow array (a copy; `lines` is what was read)."""
        offsets = np.zeros(len(self) + 1, np.int64)
        np.cumsum(self.ends - self.starts, out=offsets[1:])
        data = np.empty(offsets[-1], np.uint8)
        _copy_spans(self.lines, self.starts, self.ends, data, offsets[:-1])
        return binary(data, offsets, self.is_null)

    @property
    def text(self) -> pl.Series:
        """The values as strings, for decoders of text; null for tombstones and values that aren't UTF-8."""
        return texts(pl.Series(values=pl.from_arrow(self.value)))

    def value_at(self, row: int) -> bytes | None:
        """One value."""
        if self.is_null[row]:
            return None
        return self.lines[self.starts[row] : self.ends[row]].tobytes()

    def topic_partition(self, row: int) -> tuple[str, int]:
        """The topic and the partition of one message."""
        return self.topics[int(self.topic[row])], int(self.partition[row])

    def runs(self) -> list[tuple[int, int]]:
        """The stretches of consecutive messages of one partition, from and to."""
        if self.stretches is not None:
            return list(self.stretches)
        changes = self.partition[1:] != self.partition[:-1]
        if len(self.topics) > 1:
            changes |= self.topic[1:] != self.topic[:-1]
        edges = [0, *(np.flatnonzero(changes) + 1).tolist(), len(self)]
        return list(itertools.pairwise(edges)) if len(self) else []

    def to_arrow(self) -> pa.RecordBatch:
        """All columns: topic, partition, offset, timestamp[ms, UTC], key, value and, if read, headers."""
        time = pa.array(self.timestamp, pa.int64(), mask=self.timestamp < 0).cast(pa.timestamp("ms", "UTC"))
        columns = {
            "topic": pa.DictionaryArray.from_arrays(self.topic, pa.array(self.topics, pa.string())),
            "partition": pa.array(self.partition),
            "offset": pa.array(self.offset),
            "timestamp": time,
            "key": self.key,
            "value": self.value,
        }
        if self.headers is not None:
            columns["headers"] = self.headers
        return pa.RecordBatch.from_pydict(columns)

    def select(self, rows: np.ndarray) -> Messages:
        """The messages of a Boolean mask or of row numbers, in that order."""
        rows = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        starts, ends = self.starts[rows], self.ends[rows]
        edges = line_edges(ends - starts)
        lines = np.empty(edges[-1], np.uint8)
        lines[edges[1:] - 1] = _NEWLINE
        _copy_spans(self.lines, starts, ends, lines, edges[:-1])
        return Messages(
            self.topics,
            self.topic[rows],
            self.partition[rows],
            self.offset[rows],
            self.timestamp[rows],
            lines,
            edges[:-1],
            edges[1:] - 1,
            self.is_null[rows],
            self.key.take(pa.array(rows)),
            None if self.headers is None else self.headers.take(pa.array(rows)),
            None if self.appended is None else self.appended[rows],
        )

    def slice(self, low: int, high: int) -> Messages:
        """The messages from row `low` up to, not including, `high`; nothing is copied."""
        rows = slice(low, high)
        known = None
        if self.stretches is not None:
            cut = ((max(begin, low) - low, min(end, high) - low) for begin, end in self.stretches)
            known = tuple((begin, end) for begin, end in cut if begin < end)
        return Messages(
            self.topics,
            self.topic[rows],
            self.partition[rows],
            self.offset[rows],
            self.timestamp[rows],
            self.lines,
            self.starts[rows],
            self.ends[rows],
            self.is_null[rows],
            self.key[rows],
            None if self.headers is None else self.headers[rows],
            None if self.appended is None else self.appended[rows],
            stretches=known,
        )

    @classmethod
    def skipped(cls, broken: Broken) -> Messages:
        """A batch without messages, for a range of offsets that can't be read."""
        return replace(cls.of([], topic=broken.topic), broken=broken)

    @classmethod
    def of(
        cls,
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None] | None = None,
        *,
        topic: str = "",
        partition: int | Sequence[int] = 0,
        first_offset: int = 0,
        timestamps: Sequence[int] | None = None,
        headers: Sequence[list[tuple[str, bytes | None]]] | None = None,
    ) -> Messages:
        """Messages made of Python values, for tests and for data that doesn't come from Kafka.

        Offsets count up from `first_offset` within each partition.
        """
        n = len(values)
        partitions = np.broadcast_to(np.asarray(partition, np.int32), n).copy()
        offsets = np.empty(n, np.int64)
        for p in np.unique(partitions):
            of_p = partitions == p
            offsets[of_p] = np.arange(first_offset, first_offset + of_p.sum())
        return from_objects(
            (topic,),
            np.zeros(n, np.int32),
            partitions,
            offsets,
            np.full(n, -1, np.int64) if timestamps is None else np.asarray(timestamps, np.int64),
            values,
            [None] * n if keys is None else keys,
            headers,
        )


def from_objects(
    topics: tuple[str, ...],
    topic: np.ndarray,
    partition: np.ndarray,
    offset: np.ndarray,
    timestamp: np.ndarray,
    values: Sequence[bytes | None],
    keys: Sequence[bytes | None],
    headers: Sequence[list[tuple[str, bytes | None]]] | None,
) -> Messages:
    """Columns from Python objects, one for each message."""
    edges = line_edges(np.fromiter((len(v or b"") for v in values), np.int64, len(values)))
    joined = b"\n".join([b"" if v is None else v for v in values]) + (b"\n" if len(values) else b"")
    listed = None
    if headers is not None:
        listed = pa.array([[{"key": k, "value": v} for k, v in of_one] for of_one in headers], headers_type())
    return Messages(
        topics,
        topic,
        partition,
        offset,
        timestamp,
        np.frombuffer(bytearray(joined), np.uint8),  # writable, like columns that were read
        edges[:-1],
        edges[1:] - 1,
        np.fromiter((v is None for v in values), np.bool_, len(values)),
        pa.array(keys, pa.large_binary()),
        listed,
    )


def from_column(messages: Messages, column: pa.LargeBinaryArray) -> Messages:
    """The same messages with one of their binary columns, such as the keys, as the values."""
    offsets = np.frombuffer(column.buffers()[1], np.int64)[column.offset : column.offset + len(column) + 1]
    edges = line_edges(np.diff(offsets))
    lines = np.full(edges[-1], _NEWLINE, np.uint8)
    data = np.frombuffer(column.buffers()[2] or b"", np.uint8)
    _copy_spans(data, offsets[:-1], offsets[1:], lines, edges[:-1])
    is_null = np.asarray(column.is_null())
    return replace(messages, lines=lines, starts=edges[:-1], ends=edges[1:] - 1, is_null=is_null)


def from_texts(texts: pl.Series) -> Messages:
    """Messages whose values are these strings, none of them null."""
    lengths = texts.str.len_bytes().to_numpy().astype(np.int64)
    edges = line_edges(lengths)
    joined = "".join([*texts.str.join("\n"), "\n"]) if len(texts) else ""
    lines = np.frombuffer(bytearray(joined.encode()), np.uint8)
    whole = Messages.of([])
    n = len(texts)
    return replace(
        whole,
        topic=np.zeros(n, np.int32),
        partition=np.zeros(n, np.int32),
        offset=np.arange(n),
        timestamp=np.full(n, -1, np.int64),
        lines=lines,
        starts=edges[:-1],
        ends=edges[1:] - 1,
        is_null=np.zeros(n, bool),
        key=pa.nulls(n, pa.large_binary()),
    )


def line_edges(lengths: np.ndarray) -> np.ndarray:
    """Where lines of these lengths begin, each with a newline, and where the last one ends (n + 1, int64)."""
    edges = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths + 1, out=edges[1:])
    return edges


def binary(data: np.ndarray, ends: np.ndarray, is_null: np.ndarray) -> pa.LargeBinaryArray:
    """A large binary Arrow array over existing buffers."""
    nulls = int(np.count_nonzero(is_null))
    valid = pa.py_buffer(np.packbits(~is_null, bitorder="little")) if nulls else None
    buffers = [valid, pa.py_buffer(ends), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_binary(), len(is_null), buffers, null_count=nulls)


def texts(column: pl.Series) -> pl.Series:
    """Bytes as strings; null where they are not UTF-8.

    >>> texts(pl.Series([b"ann", bytes([255]), None])).to_list()
    ['ann', None, None]
    """
    try:
        return column.cast(pl.String)
    except pl.exceptions.PolarsError:
        return pl.Series(column.name, [_text(value) for value in column], pl.String)


def _text(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


def _copy_spans(*arrays: np.ndarray) -> None:
    # The kernel's module loads the compiler, which describing a stream doesn't need.
    from .byte_copy import copy_spans

    copy_spans(*arrays)
