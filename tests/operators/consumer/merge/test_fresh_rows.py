"""Windows that begin and close with the same deltas: one batch, and the same groups as one by one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from streamgauge.operators.consumer.merge import fresh_rows
from streamgauge.operators.consumer.merge.merger import Merger
from streamgauge.operators.consumer.merge.paned_windows import PanedWindows
from streamgauge.operators.definition.aggregates import count, distinct, kll_quantiles
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.sketching.delta import Delta
from streamgauge.operators.sketching.partition_state import PartitionState
from streamgauge.operators.watermarks.position import inputs_of

START = 1_767_225_600
ROWS = Stream.from_schema({"at": pl.Int64, "k": pl.Int64, "user": pl.Int64}, time=pl.from_epoch("at"))
KEYED = ROWS.group_by("k").tumbling("1m", delay="90s")
STREAM = KEYED.agg(posts=count(), users=distinct("user"))
SEEDED = KEYED.agg(posts=count(), users=kll_quantiles("user", k=8))


def log(stream: Stream, partitions: int, each: int = 400) -> list[Delta]:
    """Deltas of all partitions by turns, over half an hour of event time, not quite in order."""
    deltas: list[Delta] = []
    for partition in range(partitions):
        random = np.random.default_rng(partition)
        state = PartitionState(stream, "input", partition, 0, clock=lambda: START + 1e6)
        at = START + np.sort(random.integers(0, 1_800, 5 * each)) + random.integers(0, 80, 5 * each)
        for low in range(0, len(at), each):
            offsets, times = np.arange(low, low + each), at[low : low + each]
            frame = pl.DataFrame({"at": times, "k": times % 3, "user": random.integers(0, 99, each)})
            state.add(frame, None, offsets, low + each, lambda numbers, reason: None)
            deltas.insert(len(deltas) * (low // each + 1) // 5, state.delta())
    return sorted(deltas, key=lambda delta: (delta.first_offset, delta.partition))


def given(stream: Stream, deltas: list[Delta], partitions: int) -> tuple[list[pa.Table], list[int]]:
    """The tables of all windows, and how many windows came at once."""
    merger = Merger(stream, inputs_of({"input": partitions}))
    tables, sizes = list[pa.Table](), list[int]()
    for offset, delta in enumerate(deltas):
        merger.offer(delta, offset)
        while (groups := merger.due()) is not None:
            windows = groups.windows()
            tables += [window.table for window in windows]
            sizes.append(len(windows))
            merger.mark_emitted()
    return tables + merger.close_all(), sizes


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize(("stream", "most"), [(STREAM, 1), (STREAM, 20), (STREAM, 10_000), (SEEDED, 10_000)])
def test_windows_together_are_those_of_panes(
    stream: Stream, most: int, partitions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fresh_rows, "_TOGETHER_ROWS", most)
    deltas = log(stream, partitions)
    tables, sizes = given(stream, deltas, partitions)
    monkeypatch.setattr(PanedWindows, "_without_panes", lambda *_: [])
    expected, alone = given(stream, deltas, partitions)
    assert [table.to_pylist() for table in tables] == [table.to_pylist() for table in expected]
    assert len(expected) > 25 and set(alone) == {1}
    assert max(sizes) > 1 if most == 10_000 and partitions == 1 else max(sizes) <= most


def test_a_batch_may_be_noted_in_parts() -> None:
    deltas = log(STREAM, 1)
    merger, starts, most = Merger(STREAM, inputs_of({"input": 1})), list[int](), 0
    for offset, delta in enumerate(deltas):
        merger.offer(delta, offset)
        while (groups := merger.due()) is not None:
            most = max(most, len(windows := groups.windows()))
            for window in windows:
                starts.append(int(window.starts[0]))
                merger.mark_emitted(int(window.ends[-1]))
    assert starts == sorted(set(starts)) and most > 3
    assert len(starts) + len(merger.close_all()) == len(given(STREAM, deltas, 1)[0])


def test_a_batch_of_which_some_windows_were_handed_over_goes_on_after_any_restart() -> None:
    deltas = log(STREAM, 1)
    expected = [int(table.column(0).cast("int64")[0].as_py()) for table in given(STREAM, deltas, 1)[0]]

    def hand_over(merger: Merger, begin: int, most: Callable[[int], int]) -> list[int]:
        starts = list[int]()
        for offset in range(begin, len(deltas)):
            merger.offer(deltas[offset], offset)
            while (groups := merger.due()) is not None:
                windows = groups.windows()
                several = windows[: most(len(windows))]
                starts += [int(window.starts[0]) for window in several]
                merger.mark_emitted(None if len(several) == len(windows) else int(several[-1].ends[0]))
                if len(several) < len(windows):
                    return starts
        return starts + [int(table.column(0).cast("int64")[0].as_py()) for table in merger.close_all()]

    for cut in (1, 2, 4):
        first = Merger(STREAM, inputs_of({"input": 1}))
        before = hand_over(first, 0, lambda windows, cut=cut: min(windows, cut))  # type: ignore[misc]
        offset, state = first.restore_point()
        again = Merger(STREAM, inputs_of({"input": 1}))
        again.restore(offset, state)
        assert len(before) == cut
        assert before + hand_over(again, offset, lambda windows: windows) == expected
        assert (
            len(first.close()) > 0
            and [int(t.column(0).cast("int64")[0].as_py()) for t in first.close()] == []
        )
