"""Verifying every byte of an archive: hashes, pages, offsets, and the existence of each file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa

from .chain import check_beginning, check_end, first_offsets, segment_in
from .delta_log import DeltaLog
from .manifest import Manifest, first_kept, is_record, read_manifest, sha256_of
from .recording import messages_in
from .segment import ArchiveError, Segment, check_chain, file_name, first_offset_of, folder
from .store import Store


@dataclass(slots=True)
class PartitionCheck:
    """The findings in a partition's files: each problem names its file.

    `unhashed` counts files whose bytes no other file's hash covers: those before the first one of version 3,
    and one published by an archiver that was killed right after. Their pages are checked all the same. `lost`
    are ranges (first, next) that the topic no longer had when it was archived.
    """

    topic: str
    partition: int
    files: int = 0
    messages: int = 0
    bytes: int = 0
    unhashed: int = 0
    first_offset: int | None = None
    next_offset: int | None = None
    lost: list[tuple[int, int]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def file_count(store: Store, topics: Mapping[str, list[int]]) -> int:
    """The number of files to read."""
    return sum(len(first_offsets(store, topic, one)) for topic, parts in topics.items() for one in parts)


def verify(
    store: Store, topics: Mapping[str, list[int]], read: Callable[[], object] = lambda: None
) -> Iterator[PartitionCheck]:
    """Check the partitions of these topics; `read` is called after each file.

    A problem doesn't end the check: the other files are checked as well. Files that an archiver adds
    meanwhile are left for the next check, and those that retention removes meanwhile are ignored. If a topic
    has a Delta table, it must contain the same files. Raises `MissingExtraError` then if Delta isn't
    installed.
    """
    for topic, partitions in topics.items():
        delta_log = DeltaLog.open(store, topic)
        for partition in partitions:
            check = _verify_partition(store, topic, partition, read)
            if delta_log is not None:
                with _reported(check):
                    check.problems += _delta_problems(store, topic, partition, delta_log)
            yield check


def _delta_problems(store: Store, topic: str, partition: int, delta_log: DeltaLog) -> list[str]:
    """The differences between the files in a topic's Delta table and those in the archive."""
    place = folder(topic, partition)
    before, committed = delta_log.files(partition), delta_log.next_offset(partition) or 0
    files = [file_name(first) for first in first_offsets(store, topic, partition) if first < committed]
    after = delta_log.files(partition)
    begins = file_name(first_kept(store, topic, partition) or 0)
    problems = [
        f"{place}/{name} is in the Delta table, and not in the archive: restore the file"
        for name in sorted((before & after) - set(files))
    ]
    return problems + [
        f"{place}/{name} is not in the Delta table, which another program has changed: delete "
        f"topic={topic}/_delta_log, and the archiver makes it again"
        for name in files
        if name >= begins and name not in before | after
    ]


def _verify_partition(store: Store, topic: str, partition: int, read: Callable[[], object]) -> PartitionCheck:
    check, place = PartitionCheck(topic, partition), folder(topic, partition)

    manifest: Manifest | None = None
    with _reported(check):
        manifest = read_manifest(store, topic, partition)
    for name in store.files(place):
        if first_offset_of(name) is None and not is_record(name):
            check.problems.append(f"{place}/{name} is not a file of an archive: remove it")
    hashes: dict[str, str] = {}
    known = {manifest.last: manifest.sha256} if manifest is not None else {}
    before: Segment | None = None
    first_segment: Segment | None = None
    is_first = True
    for first in first_offsets(store, topic, partition):
        name, segment = file_name(first), None
        try:
            with store.open(f"{place}/{name}") as file:
                data = pa.py_buffer(file.read())
        except FileNotFoundError:
            # Retention records what it removes; if this file is gone, so are all files before it.
            with _reported(check):
                if first < (first_kept(store, topic, partition) or 0):
                    before, first_segment, is_first = None, None, True
            continue
        finally:
            read()
        check.files += 1
        check.bytes += data.size
        hashes[name] = sha256_of(data)
        with _reported(check):
            segment = segment_in(pa.BufferReader(data), topic, partition, first)
            check.messages += sum(map(len, messages_in(pa.BufferReader(data), segment)))
            check.lost += segment.lost
            if before is not None:
                check_chain([before, segment])
                if segment.before:
                    known[file_name(before.first_offset)] = segment.before
        if is_first:
            first_segment, is_first = segment, False
        before = segment
    for name in hashes.keys() & known.keys():
        if hashes[name] != known[name]:
            check.problems.append(
                f"{place}/{name} is damaged: its SHA-256 is {hashes[name]}, and was {known[name]} when it "
                "was published"
            )
    check.unhashed = len(hashes.keys() - known.keys())
    if first_segment is not None:
        check.first_offset = first_segment.first_offset
        with _reported(check):
            check_beginning(first_segment, first_kept(store, topic, partition))
    if before is not None:
        check.next_offset = before.next_offset
    if before is not None or not hashes:
        with _reported(check):
            check_end(before, manifest)
    return check


@contextmanager
def _reported(check: PartitionCheck) -> Iterator[None]:
    try:
        yield
    except ArchiveError as error:
        check.problems.append(str(error))
