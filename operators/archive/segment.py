"""One file of an archive: the messages of a range of a partition's offsets, and the range in its footer."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ...sketches.core.errors import StreamgaugeError
from ...sketches.core.lazy import pl
from ..formats.decode import Decoder
from ..formats.messages import Messages, headers_type
from ..formats.tombstones import decode_value

FOOTER = b"streamgauge.archive"
"""The key in a file's footer for its `Segment`, as JSON."""
VERSION = 3
"""The format version of files. Version 1 has no checksums, version 2 no hash of the previous file; both can
be read as well.
"""

CREATED, APPENDED, NO_TIME = 0, 1, -1
"""Kafka's types of timestamps: the producer's, the broker's, none; numbered as in Spark's Kafka source."""

SCHEMA = pa.schema(
    [
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.timestamp("ms", "UTC")),
        pa.field("timestamp_type", pa.int32(), nullable=False),
        pa.field("key", pa.large_binary()),
        pa.field("value", pa.large_binary()),
        pa.field("headers", headers_type()),
    ]
)
"""The columns of a file; a value is null if the message was a tombstone."""


class ArchiveError(StreamgaugeError, ValueError):
    """Files that are not an archive, or an incomplete one; the message names the file and the problem."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A file's range of offsets, `first_offset` to `next_offset` − 1, and its content.

    Offsets in the range without a row had no message for readers: transaction markers, aborted messages, or
    messages removed by compaction. `lost` are ranges (first, next) that the topic no longer had, or that
    could not be read, when they were to be archived. Timestamps are in ms since 1970; None if no row has one.
    `before` is the SHA-256 of the previous file, empty for the first one and if it isn't known.
    """

    topic: str
    partition: int
    first_offset: int
    next_offset: int
    rows: int
    topic_id: str = ""
    earliest_ms: int | None = None
    latest_ms: int | None = None
    lost: tuple[tuple[int, int], ...] = ()
    before: str = ""

    @property
    def path(self) -> str:
        """Its path within an archive.

        >>> Segment("posts", 3, 4_200, 4_300, 99).path
        'topic=posts/partition=3/00000000000000004200.parquet'
        """
        return f"{folder(self.topic, self.partition)}/{file_name(self.first_offset)}"

    @property
    def range_text(self) -> str:
        """Its range for people.

        >>> Segment("posts", 3, 4_200, 4_300, 99).range_text
        'posts[3] 4200 to 4299'
        """
        return f"{self.topic}[{self.partition}] {self.first_offset} to {self.next_offset - 1}"

    def to_json(self) -> str:
        """The JSON for the footer."""
        fields = {"version": VERSION, **asdict(self)}
        return json.dumps({**fields, "crc32": zlib.crc32(json.dumps(fields).encode())})


def folder(topic: str, partition: int) -> str:
    """The folder of a partition within an archive; engines that know Hive's layout read columns from it."""
    return f"topic={topic}/partition={partition}"


def file_name(first_offset: int) -> str:
    """A file's name: its first offset, so that names sort as offsets do."""
    return f"{first_offset:020d}.parquet"


def first_offset_of(name: str) -> int | None:
    """The first offset in a file's name; None for a name that isn't a segment's.

    >>> first_offset_of("00000000000000004200.parquet"), first_offset_of("part-0.parquet")
    (4200, None)
    """
    stem, _, suffix = name.partition(".")
    return (
        int(stem) if len(stem) == 20 and stem.isascii() and stem.isdigit() and suffix == "parquet" else None
    )


def segment_of(metadata: Mapping[bytes, bytes] | None, path: str) -> Segment:
    """The segment that a file's footer describes. Raises `ArchiveError` for a file of anything else."""
    text = (metadata or {}).get(FOOTER)
    if text is None:
        raise ArchiveError(
            f"{path} is Parquet, but not of an archive: its footer has no {FOOTER.decode()!r}; "
            "take it out of the archive's folder"
        )
    try:
        fields: dict[str, Any] = json.loads(text)
        checksum = fields.pop("crc32", None)
        version = fields["version"]
        if version not in range(1, VERSION + 1):
            raise ArchiveError(
                f"{path} has archive format version {version}, and this version of streamgauge reads 1 to "
                f"{VERSION}; install a newer one"
            )
        if version > 1 and zlib.crc32(json.dumps(fields).encode()) != checksum:
            raise ArchiveError(
                f"{path} is damaged: the checksum of the archive's part of the footer is wrong"
            )
        del fields["version"]
        lost = tuple((int(first), int(following)) for first, following in fields.pop("lost"))
        return Segment(lost=lost, **fields)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        if isinstance(error, ArchiveError):
            raise
        raise ArchiveError(f"{path}: the archive's part of the footer is damaged ({error})") from None


def check_chain(segments: Iterable[Segment]) -> None:
    """Raise `ArchiveError` unless each segment begins where the one before it ends."""
    before: Segment | None = None
    for segment in segments:
        if segment.next_offset <= segment.first_offset:
            raise ArchiveError(
                f"{segment.path}: its range of offsets is empty: it begins and ends at {segment.first_offset}"
            )
        if before is not None and segment.first_offset != before.next_offset:
            what = "are missing" if segment.first_offset > before.next_offset else "are there twice"
            low, high = sorted((before.next_offset, segment.first_offset))
            raise ArchiveError(
                f"{segment.path}: {before.path} ends before offset {before.next_offset}, so "
                f"{low} to {high - 1} {what}; "
                "restore the missing file, or move the later ones to another archive"
            )
        before = segment


class SegmentWriter:
    """Messages of a partition, compressed into a Parquet file in memory as they arrive.

    With a `decoder` there are two more columns than in `SCHEMA`: `decoded`, a struct of the decoder's
    columns, and `refused`, why a message can't be decoded, in which case `decoded` is null. `size` is the
    bytes of the values so far, before compression.
    """

    def __init__(
        self,
        topic: str,
        partition: int,
        first_offset: int,
        topic_id: str = "",
        decoder: Decoder | None = None,
    ) -> None:
        self.topic, self.partition, self.first_offset = topic, partition, first_offset
        self.next_offset = first_offset
        self.rows = self.size = 0
        self.lost: list[tuple[int, int]] = []
        self._topic_id = topic_id
        self._times: tuple[int, int] | None = None
        self._decoder = decoder
        self._schema = SCHEMA if decoder is None else decoded_schema(decoder)
        self._sink = pa.BufferOutputStream()
        # Statistics of keys and values don't help to find messages, and cost as much as compressing them.
        self._file = pq.ParquetWriter(
            self._sink,
            self._schema,
            compression="zstd",
            compression_level=1,
            use_dictionary=["timestamp_type"],
            write_statistics=["offset", "timestamp"],
            store_schema=True,
            write_page_checksum=True,
        )

    def add(self, messages: Messages) -> None:
        """Add the next batch of the partition's messages."""
        if not len(messages):
            return
        columns = messages_to_columns(messages)
        if self._decoder is not None:
            decoded = decoded_columns(self._decoder, messages, self._schema.field("decoded").type)
            columns = pa.RecordBatch.from_arrays([*columns.columns, *decoded], schema=self._schema)
        self._file.write_batch(columns)
        self.rows += len(messages)
        self.size += int((messages.ends - messages.starts).sum())
        self.next_offset = int(messages.offset[-1]) + 1
        stamped = messages.timestamp[messages.timestamp >= 0]
        if len(stamped):
            low, high = int(stamped.min()), int(stamped.max())
            before = self._times or (low, high)
            self._times = min(low, before[0]), max(high, before[1])

    def skip(self, first: int, following: int) -> None:
        """Record that offsets `first` to `following` − 1 are lost."""
        self.lost.append((first, following))
        self.next_offset = max(self.next_offset, following)

    @property
    def is_empty(self) -> bool:
        """Whether a file would contain nothing."""
        return not self.rows and not self.lost

    @property
    def held_bytes(self) -> int:
        """The bytes that it takes in memory, compressed."""
        return self._sink.tell()

    def finish(self, next_offset: int | None = None, before: str = "") -> tuple[Segment, pa.Buffer]:
        """The file, to which no more can be added; its range extends to `next_offset` if no message does.

        `before` is the SHA-256 of the previous file.
        """
        earliest, latest = self._times or (None, None)
        segment = Segment(
            self.topic,
            self.partition,
            self.first_offset,
            max(self.next_offset, next_offset or 0),
            self.rows,
            self._topic_id,
            earliest,
            latest,
            tuple(self.lost),
            before,
        )
        self._file.add_key_value_metadata({FOOTER.decode(): segment.to_json()})
        self._file.close()
        return segment, self._sink.getvalue()


def decoded_schema(decoder: Decoder) -> pa.Schema:
    """The columns of a file with decoded values."""
    oldest = pl.CompatLevel.oldest()
    fields = pl.Schema(decoder.schema).to_frame().to_arrow(compat_level=oldest).schema
    return SCHEMA.append(pa.field("decoded", pa.struct(list(fields)))).append(
        pa.field("refused", pa.string())
    )


def decoded_columns(decoder: Decoder, messages: Messages, kind: pa.StructType) -> tuple[pa.Array, pa.Array]:
    """Messages' decoded values, null if that fails, and the reasons. Raises what the decoder raises."""
    n, decoded = len(messages), decode_value(decoder, messages, "refuse")
    table = decoded.frame.to_arrow(compat_level=pl.CompatLevel.oldest())
    columns = [table.column(field.name).combine_chunks().cast(field.type) for field in kind]
    rows = pa.StructArray.from_arrays(columns, fields=list(kind))
    at = np.full(n, -1)
    at[slice(None) if decoded.rows is None else decoded.rows] = np.arange(decoded.frame.height)
    reasons: list[str | None] = [None] * n
    for number, reason in zip(decoded.refused.tolist(), decoded.reasons):
        reasons[number] = reason
    return rows.take(pa.array(at, mask=at < 0)), pa.array(reasons, pa.string())


def messages_to_columns(messages: Messages) -> pa.RecordBatch:
    """Messages of one partition as the columns of `SCHEMA`."""
    n = len(messages)
    absent = messages.timestamp < 0
    appended = np.zeros(n, bool) if messages.appended is None else messages.appended
    types = np.where(absent, NO_TIME, np.where(appended, APPENDED, CREATED)).astype(np.int32)
    headers = messages.headers
    return pa.RecordBatch.from_arrays(
        [
            pa.array(messages.offset),
            pa.array(messages.timestamp, mask=absent).cast(pa.timestamp("ms", "UTC")),
            pa.array(types),
            messages.key,
            messages.value,
            pa.nulls(n, headers_type()) if headers is None else headers,
        ],
        schema=SCHEMA,
    )
