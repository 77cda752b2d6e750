"""A limit to the memory of open windows: spilled and whole again, or refused with the largest named."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from streamgauge.operators.consumer.merge.limits import StateLimitError, keep_within
from streamgauge.operators.consumer.merge.merger import Merger
from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.definition.aggregates import count, distinct
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.sketching.partition_state import PartitionState
from streamgauge.operators.watermarks.position import Input

ROWS = Stream.from_schema({"at": pl.Int64, "key": pl.Int64}, time=pl.from_epoch("at")).group_by("key")
WINDOWED = {
    "tumbling": ROWS.tumbling("1h"),
    "hopping": ROWS.hopping("1h", every="10m"),
    "session": ROWS.session("10m"),
}


def filled(stream: Stream, options: RunOptions | None) -> tuple[Merger, int]:
    """A merger after 20 deltas of 2,000 keys each, half of them new; and the most that it held after."""
    where = Input("rows", 0)
    progress, merger, most = PartitionState(stream, *where, 0, clock=lambda: 1e9), Merger(stream, [where]), 0
    for at in range(20):
        keys = np.arange(2_000) + at * 1_000
        frame = pl.DataFrame({"at": np.full(2_000, at * 300), "key": keys})
        offsets = np.arange(at * 2_000, (at + 1) * 2_000)
        progress.add(frame, None, offsets, int(offsets[-1]) + 1, lambda numbers, reason: None)
        assert progress.nbytes > 2_000 * 8
        merger.offer(progress.delta(), at)
        if options is not None:
            keep_within(options, [merger])
        most = max(most, merger.state_bytes)
    return merger, most


@pytest.mark.parametrize("kind", WINDOWED)
def test_windows_that_are_spilled_hold_what_they_held(kind: str) -> None:
    stream = WINDOWED[kind].agg(rows=count(), keys=distinct("key"))
    free, most = filled(stream, None)
    limit = max(1_000_000, most // 3)
    bounded, held = filled(stream, RunOptions(state_bytes=limit))
    assert held <= limit < most
    wanted, result = ([*merger.close(), *merger.close_all()] for merger in (free, bounded))
    assert len(wanted) == len(result)
    assert all(one.sort_by("key").equals(other.sort_by("key")) for one, other in zip(wanted, result))


@pytest.mark.parametrize("kind", WINDOWED)
def test_a_limit_that_is_not_to_be_passed_ends_with_what_is_largest(kind: str) -> None:
    stream = WINDOWED[kind].agg(rows=count(), keys=distinct("key"))
    with pytest.raises(StateLimitError, match=r"state_bytes allows 1,000,000; the largest: .*1970-01-01T00:"):
        filled(stream, RunOptions(state_bytes=1_000_000, at_limit="refuse"))


def test_a_limit_is_a_number_of_bytes() -> None:
    for wrong in (0, 1.5, "2 GiB"):
        with pytest.raises(ValueError, match="state_bytes"):
            RunOptions(state_bytes=wrong)
