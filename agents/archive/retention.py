"""Remove old files from an archive, the oldest first, so that the remaining files form a chain."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from ...operators.archive.chain import first_offsets, read_segment
from ...operators.archive.delta_log import DeltaLog
from ...operators.archive.manifest import record_removal
from ...operators.archive.segment import Segment
from ...operators.archive.store import Store


def remove_older(store: Store, topics: Mapping[str, list[int]], before_ms: int) -> list[Segment]:
    """Remove the files whose messages are all older than a time (ms since 1970); return their segments.

    Stops at a partition's first file with a younger message, or without any timestamp. The last file is
    always kept, because archivers continue after it. The new beginning of the archive is recorded before
    anything is removed, so that a missing file can be distinguished from a removed one. A Delta table loses
    the files before they are removed.
    """
    removed = []
    for topic, partitions in topics.items():
        for partition in partitions:
            old = []
            # Another program's retention may have removed the rest meanwhile.
            with suppress(FileNotFoundError):
                for first in first_offsets(store, topic, partition)[:-1]:
                    segment = read_segment(store, topic, partition, first)
                    if segment.latest_ms is None or segment.latest_ms >= before_ms:
                        break
                    old.append(segment)
            if old:
                record_removal(store, topic, partition, old[-1].next_offset)
                # Not earlier, because a table that is created meanwhile reads the record.
                if (delta_log := DeltaLog.open(store, topic)) is not None:
                    delta_log.remove_before(partition, old[-1].next_offset)
            for segment in old:
                store.remove(segment.path)
            removed += old
    return removed
