"""Old files removed from an archive, oldest first, so that what remains is a chain."""

from __future__ import annotations

from collections.abc import Mapping

from ...operators.archive.chain import first_offsets, read_segment
from ...operators.archive.segment import Segment
from ...operators.archive.store import Store


def remove_older(store: Store, topics: Mapping[str, list[int]], before_ms: int) -> list[Segment]:
    """Remove the files whose messages are all older than a time (ms since 1970); gives what they held.

    Ends at a partition's first file with a younger message or with none that has a timestamp. The last file
    stays in any case: it says where the archive goes on.
    """
    removed = []
    for topic, partitions in topics.items():
        for partition in partitions:
            for first in first_offsets(store, topic, partition)[:-1]:
                segment = read_segment(store, topic, partition, first)
                if segment.latest_ms is None or segment.latest_ms >= before_ms:
                    break
                store.remove(segment.path)
                removed.append(segment)
    return removed
