"""The files of a partition in an archive, in the order of their offsets."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from .segment import SCHEMA, ArchiveError, Segment, check_chain, first_offset_of, folder, segment_of
from .store import Store


def topics_of(store: Store) -> dict[str, list[int]]:
    """The archived topics, each with the numbers of its partitions that have files.

    Raises `ArchiveError` if there are none.
    """
    topics = {}
    for name in store.folders(""):
        key, _, topic = name.partition("=")
        if key == "topic" and topic:
            numbers = [part.partition("=") for part in store.folders(name)]
            partitions = [int(n) for key, _, n in numbers if key == "partition" and n.isdigit()]
            if partitions:
                topics[topic] = sorted(partitions)
    if not topics:
        raise ArchiveError(
            f"{store.name} is not an archive: it has no folders topic=…/partition=…; "
            "`streamgauge archive TOPIC --to FOLDER` makes one"
        )
    return topics


def first_offsets(store: Store, topic: str, partition: int) -> list[int]:
    """The first offset of each file of a partition, rising; what isn't named like a segment is left out."""
    offsets = (first_offset_of(name) for name in store.files(folder(topic, partition)))
    return [offset for offset in offsets if offset is not None]


def read_segment(store: Store, topic: str, partition: int, first_offset: int) -> Segment:
    """What a file's footer says of it. Raises `ArchiveError` for one that is damaged or foreign."""
    path = Segment(topic, partition, first_offset, 0, 0).path
    with store.open(path) as file:
        try:
            metadata = pq.read_metadata(file)
            columns = metadata.schema.to_arrow_schema()
        except (pa.ArrowException, OSError, ValueError) as error:
            raise ArchiveError(f"{path} is damaged, or isn't Parquet: {error}") from None
    segment = segment_of(metadata.metadata, path)
    if pa.schema(list(columns)[: len(SCHEMA)]) != SCHEMA:
        raise ArchiveError(f"{path} is damaged: its columns are {', '.join(columns.names)}")
    if (segment.topic, segment.partition, segment.first_offset) != (topic, partition, first_offset):
        raise ArchiveError(f"{path} says that it holds {segment.range_text}: it was moved or renamed")
    if metadata.num_rows != segment.rows:
        raise ArchiveError(f"{path} has {metadata.num_rows} rows, and its footer says {segment.rows}")
    return segment


def segments(store: Store, topic: str, partition: int) -> list[Segment]:
    """All segments of a partition, in order. Raises `ArchiveError` if they are no unbroken chain."""
    chain = [read_segment(store, topic, partition, first) for first in first_offsets(store, topic, partition)]
    check_chain(chain)
    return chain


def last_segment(store: Store, topic: str, partition: int) -> Segment | None:
    """The segment after which the archive goes on; None if there are none."""
    offsets = first_offsets(store, topic, partition)
    return read_segment(store, topic, partition, offsets[-1]) if offsets else None
