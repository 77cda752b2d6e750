"""The files of a partition in an archive, in the order of their offsets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from .manifest import Manifest, first_kept, read_manifest, sha256_of
from .segment import SCHEMA, ArchiveError, Segment, check_chain, first_offset_of, folder, segment_of
from .store import Store

_LISTINGS = 5
"""How often files are listed, if retention removes some of them meanwhile."""


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
            "`streamgauge archive TOPIC --output FOLDER` makes one"
        )
    return topics


def first_offsets(store: Store, topic: str, partition: int) -> list[int]:
    """The first offset of each of a partition's files, ascending; other files are ignored."""
    offsets = (first_offset_of(name) for name in store.files(folder(topic, partition)))
    return [offset for offset in offsets if offset is not None]


def read_segment(store: Store, topic: str, partition: int, first_offset: int) -> Segment:
    """The segment in a file's footer. Raises `ArchiveError` for a damaged or foreign file."""
    path = Segment(topic, partition, first_offset, 0, 0).path
    with store.open(path) as file:
        return segment_in(file, topic, partition, first_offset)


def segment_in(file: Any, topic: str, partition: int, first_offset: int) -> Segment:
    """Like `read_segment`, for an open file or one in memory."""
    path = Segment(topic, partition, first_offset, 0, 0).path
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
    """All segments of a partition, in order.

    Raises `ArchiveError` if the chain is broken, or files are missing at its beginning or its end.
    """
    for _ in range(_LISTINGS):
        # The record of the end is read before files are listed, and that of the beginning afterwards:
        # meanwhile an archiver may add files at the end, and retention may remove some at the beginning.
        manifest = read_manifest(store, topic, partition)
        offsets = first_offsets(store, topic, partition)
        try:
            chain = [read_segment(store, topic, partition, first) for first in offsets]
        except FileNotFoundError:
            continue
        check_chain(chain)
        check_end(chain[-1] if chain else None, manifest)
        if chain:
            check_beginning(chain[0], first_kept(store, topic, partition))
        return chain
    raise ArchiveError(
        f"{store.name}: files of {topic}[{partition}] are removed faster than they can be listed; wait until "
        "retention has finished"
    )


def check_end(last: Segment | None, manifest: Manifest | None) -> None:
    """Raise `ArchiveError` if files are missing after the last one, according to the manifest."""
    if manifest is not None and (last is None or last.next_offset < manifest.next_offset):
        raise ArchiveError(
            f"{folder(manifest.topic, manifest.partition)}/{manifest.last} is missing: {manifest.path} "
            f"names it as the archive's last file, which ends before offset {manifest.next_offset}; restore "
            "the file, or delete the manifest to continue without it"
        )


def check_beginning(first: Segment, begins: int | None) -> None:
    """Raise `ArchiveError` if files are missing before the first one; `begins` is the recorded beginning."""
    if begins is not None and first.first_offset > begins:
        place = folder(first.topic, first.partition)
        raise ArchiveError(
            f"{first.path} is the first file, and the archive begins at offset {begins}: {begins} to "
            f"{first.first_offset - 1} are missing; restore the missing file, or delete {place}/_first.json "
            f"and {place}/_begins.*.json to continue without it"
        )


def last_segment(store: Store, topic: str, partition: int) -> Segment | None:
    """The last segment, after which an archiver continues; None if the archive is empty.

    Raises `ArchiveError` if it is damaged, or if later files, which the manifest lists, are missing.
    """
    while True:
        manifest = read_manifest(store, topic, partition)
        offsets = first_offsets(store, topic, partition)
        try:
            chain = [read_segment(store, topic, partition, first) for first in offsets[-1:]]
        except FileNotFoundError:  # retention removed it, because another archiver has published more
            continue
        last = chain[0] if chain else None
        check_end(last, manifest)
        return last


def current_manifest(store: Store, topic: str, partition: int) -> Manifest:
    """The manifest of all existing files, which an archiver needs to continue.

    It includes files published after the manifest was written, because an archiver may be killed in between.
    Raises `ArchiveError` for damaged files.
    """
    manifest = read_manifest(store, topic, partition)
    offsets = first_offsets(store, topic, partition)
    if manifest is None:
        manifest = Manifest(topic, partition, offsets[0] if offsets else 0)
    for first in offsets:
        if first >= manifest.next_offset:
            segment = read_segment(store, topic, partition, first)
            manifest = manifest.after(segment, "")
    if not manifest.sha256 and manifest.last:
        with store.open(f"{folder(topic, partition)}/{manifest.last}") as file:
            manifest = replace(manifest, sha256=sha256_of(file.read()))
    return manifest
