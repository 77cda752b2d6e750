"""Which of two snapshots is the newer one."""

from __future__ import annotations

from streamgauge.operators.consumer.log.snapshots import Snapshot
from streamgauge.operators.consumer.merge.merger import Merger

from ..merge.deltas import STREAM, paused


def test_of_two_snapshots_at_one_place_the_one_with_more_tellings_is_the_newer() -> None:
    deltas, merger, found = paused(range(18), 60, range(18, 40), 31), Merger(STREAM, range(1)), []
    for offset, delta in enumerate(deltas):
        merger.offer(delta, offset)
        merger.close()
        found.append(Snapshot(STREAM.fingerprint(), "id", *merger.resume_point(), STREAM.definition()))
    assert [snapshot.resume for snapshot in found] == [0] * 4
    assert found[0].progress < found[1].progress == found[2].progress < found[3].progress
