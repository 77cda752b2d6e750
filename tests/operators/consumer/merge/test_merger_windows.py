"""Windows of every kind against those recomputed row by row, whatever happens to the log and its reader."""

from __future__ import annotations

import numpy as np
import pytest

from streamgauge.operators.consumer.merge import (
    pane,
    partial_windows,
    partial_windows_base,
    sliding_aggregation,
)
from streamgauge.operators.sketching import session_rows as session_rows

from .recomputed import deltas, given, merger_of, partitions, share, streams, windows_of

STREAMS = streams()


@pytest.mark.parametrize("cut", [1, pytest.param(7, marks=pytest.mark.soak), 90, 10_000])
@pytest.mark.parametrize("kind", STREAMS)
def test_windows_are_those_of_the_rows_however_they_are_cut(kind: str, cut: int) -> None:
    stream = STREAMS[kind]
    rows = partitions(cut, 3, 60 if cut == 1 else 200, stream)
    merger, tables = merger_of(stream, 3), []
    log = deltas(stream, rows, cut, cut)
    for offset, delta in enumerate(log):
        merger.offer(delta, offset)
        tables += merger.close()
    closed_early = len(tables)
    result = given(stream, [*tables, *merger.close_all()])
    assert result == windows_of(stream, [row for partition in rows for row in partition])
    assert merger.state.account.balanced and merger.state.account.late > 0
    assert closed_early or cut == 10_000


@pytest.mark.parametrize("kind", STREAMS)
def test_restarts_and_duplicates_change_nothing_in_any_table_partition(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does where open windows lie, how many are made at once, or how few places are kept."""
    monkeypatch.setattr(session_rows, "_FEW", 5)
    monkeypatch.setattr(sliding_aggregation, "_TOGETHER_BYTES", 2_000)
    monkeypatch.setattr(pane, "_MOST_WAITING", 2)
    monkeypatch.setattr(partial_windows_base, "_FEW", 10)
    monkeypatch.setattr(partial_windows, "_MOST_ORIGINS", 3)
    stream = STREAMS[kind]
    rows = partitions(5, 2, 150, stream)
    log = deltas(stream, rows, 5, 8)
    accounts, answers = set(), {}
    for partition in range(2):
        own, random = share(stream, log, partition, 2), np.random.default_rng(partition)
        merger, tables, offset, furthest = merger_of(stream, 2), [], 0, 0
        while offset < len(own):
            merger.offer(own[offset], offset)
            offset += 1
            if random.random() < 0.2:  # what a zombie sent again
                merger.offer(own[int(random.integers(offset))], offset - 1)
            if random.random() < 0.2:
                merger.open_windows.spill()
            if random.random() < 0.7:
                tables += merger.close()
            elif random.random() < 0.5 and (groups := merger.due()) is not None:
                tables.append(groups.table)
                merger.mark_emitted()
            if offset > furthest and random.random() < 0.2:
                furthest = offset
                offset, reported = merger.restore_point()
                merger = merger_of(stream, 2)
                merger.restore(offset, reported)
        answers |= given(stream, [*tables, *merger.close(), *merger.close_all()])
        accounts.add(merger.state.account)
    assert answers == windows_of(stream, [row for partition in rows for row in partition])
    assert len(accounts) == 1 and accounts.pop().read == 300
