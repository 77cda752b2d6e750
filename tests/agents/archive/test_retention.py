"""Retention removes whole old files from the beginning, never the last, and leaves a chain."""

from __future__ import annotations

from pathlib import Path

from streamgauge.agents.archive.retention import remove_older
from streamgauge.operators.archive.chain import segments, topics_of
from streamgauge.operators.archive.segment import SegmentWriter
from streamgauge.operators.archive.store import LocalStore
from streamgauge.operators.formats.messages import Messages


def test_files_that_are_wholly_older_are_removed_from_the_beginning(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    for first, times in ((0, [5, 9]), (2, [7, 8]), (4, [30, 6]), (6, [9, 9]), (8, [9, 9])):
        writer = SegmentWriter("t", 0, first)
        writer.add(Messages.of([b"", b""], first_offset=first, timestamps=times))
        segment, data = writer.finish()
        assert store.create(segment.path, data)
    assert [one.first_offset for one in remove_older(store, topics_of(store), 10)] == [0, 2]
    assert [one.first_offset for one in segments(store, "t", 0)] == [4, 6, 8]
    assert [one.first_offset for one in remove_older(store, topics_of(store), 10**6)] == [4, 6]
    assert [one.first_offset for one in segments(store, "t", 0)] == [8]
