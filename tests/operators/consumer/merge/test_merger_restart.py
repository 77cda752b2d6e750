"""A merger that is restarted anywhere gives the same windows, each as often as it should."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from streamgauge.operators.consumer.merge.merger import Merger
from streamgauge.operators.sketching.partition_state import PartitionState
from streamgauge.operators.watermarks.idle_timer import Rest

from .deltas import START, STREAM, log, merged, paused, posts, windows, windows_of


@pytest.mark.parametrize("stop", [1, 7, 30, 59, 60])
def test_a_restart_from_the_resume_point_gives_the_same_windows_each_once(stop: int) -> None:
    deltas = log(6, 100)
    whole, clean = merged(deltas), Merger(STREAM, posts(3))
    first = Merger(STREAM, posts(3))
    emitted: list[object] = []
    for offset, delta in enumerate(deltas[:stop]):
        first.offer(delta, offset)
        emitted += [table.column("window_start")[0].as_py() for table in first.close()]
    offset, reported = first.restore_point()
    assert offset <= stop
    second = Merger(STREAM, posts(3))
    second.restore(offset, reported)
    by_key = {}
    for at in range(offset, len(deltas)):
        second.offer(deltas[at], at)
        for table in second.close():
            by_key[table.column("window_start")[0].as_py()] = table.column("posts")[0].as_py()
    assert not set(by_key) & set(emitted)
    for at, delta in enumerate(deltas):
        clean.offer(delta, at)
    expected = windows(clean)
    open_still = {
        t.column("window_start")[0].as_py(): t.column("posts")[0].as_py() for t in second.close_all()
    }
    assert {**by_key, **open_still} == {start: n for start, n in expected.items() if start not in emitted}
    assert second.state.account == whole.state.account
    assert len(emitted) + len(by_key) + len(open_still) == len(expected)


def test_a_window_that_was_not_handed_over_comes_again_after_a_restart() -> None:
    deltas, merger = log(9, 100), Merger(STREAM, posts(3))
    collected = []
    for offset, delta in enumerate(deltas):
        merger.offer(delta, offset)
        while (groups := merger.due()) is not None and len(collected) < 3:
            collected.append(groups.table.column("window_start")[0].as_py())
            merger.mark_emitted()
    unseen, same = merger.due(), merger.due()
    assert unseen is not None and same is not None and unseen.table.equals(same.table)
    again = Merger(STREAM, posts(3))
    offset, state = merger.restore_point()
    again.restore(offset, state)
    for at in range(offset, len(deltas)):
        again.offer(deltas[at], at)
    whole = {t.column("window_start")[0].as_py(): t for t in merged(deltas).close()}
    result = {t.column("window_start")[0].as_py(): t for t in again.close()}
    assert len(collected) == 3 and sorted([*collected, *result]) == sorted(whole)
    assert all(table.equals(whole[start]) for start, table in result.items())


@pytest.mark.parametrize("stop", range(4, 9))
def test_a_delta_in_parts_is_whole_again_after_a_restart_between_them(stop: int) -> None:
    """Delta 3 begins at offset 3 and ends behind the two that follow: a restart reads from its beginning."""
    deltas = log(10, 100)[:9]
    parts = [deltas[0], deltas[1], deltas[2], None, deltas[4], deltas[5], deltas[3], *deltas[6:]]

    def follow(merger: Merger, low: int, high: int) -> None:
        for at in range(low, high):
            delta = parts[at]
            if delta is None:
                merger.mark("parts", at)
            else:
                merger.offer(delta, at, "parts" if at == 6 else "")

    merger = Merger(STREAM, posts(3))
    follow(merger, 0, stop)
    offset, state = merger.restore_point()
    again = Merger(STREAM, posts(3))
    again.restore(offset, state)
    follow(again, offset, len(parts))
    assert again.state.duplicates == 0
    assert windows(again) == windows(merged(deltas))


def test_silence_is_read_from_the_log_and_survives_a_restart() -> None:
    silent = [PartitionState(STREAM, "posts", p, 0, clock=lambda: START / 1e6) for p in range(3)]
    collected = []
    for seconds in (30, 31):
        for progress in silent:
            progress.rest = Rest(seconds * 1_000_000, 5_000_000, START + seconds * 1_000_000)
            collected.append(progress.delta())
    rows = pl.DataFrame(
        {
            "at": pl.Series([START + n * 1_000_000 for n in range(200)]).cast(pl.Datetime("us", "UTC")),
            "user": range(200),
        }
    )
    silent[0].add(rows, None, np.arange(200), 200, lambda numbers, reason: None)
    collected.append(silent[0].delta())
    before = merged(collected)
    after = Merger(STREAM, posts(3))
    offset, state = before.restore_point()
    after.restore(offset, state)
    for merger in (before, after):
        if merger is after:
            merger.offer(collected[-1], len(collected) - 1)
        assert [mark.idle for mark in merger.state.marks.values()] == [False] * 3
        assert [mark.rest is None for mark in merger.state.marks.values()] == [True, False, False]
        assert merger.close() == []
        # The one that woke the stream is waited with, for five seconds of the others' silence.
        for seconds, closed in ((35, 0), (36, 3)):
            for progress in silent[1:]:
                progress.rest = Rest(seconds * 1_000_000, 5_000_000, START + 10**9)
                merger.offer(progress.delta(), 100)
            assert len(merger.close()) == closed


def test_a_window_that_silence_closed_is_confirmed_if_asked_and_so_after_any_restart() -> None:
    deltas = paused(range(18), 60, 61, range(70, 80), 100, range(130, 140))
    reported = [(1, 0, 18, False), (3, 0, 18, True), (4, 1, 10, False), (5, 1, 10, True)]

    def given(merger: Merger, begin: int, end: int) -> list[tuple[int, int, int, bool]]:
        collected = []
        for at in range(begin, end):
            merger.offer(deltas[at], at)
            while (groups := merger.due()) is not None:
                start = groups.table.column("window_start").cast("int64").to_pylist()[0]
                posts = groups.table.column("posts").to_pylist()[0]
                collected.append((at, (start - START) // 60_000_000, posts, merger.final))
                merger.mark_emitted()
        return collected

    for stop in range(len(deltas) + 1):
        first, second = (Merger(STREAM, posts(1), confirms=True) for _ in range(2))
        before = given(first, 0, stop)
        offset, state = first.restore_point()
        second.restore(offset, state)
        assert before + given(second, offset, len(deltas)) == reported


@pytest.mark.parametrize(
    ("steps", "reported", "late"),
    [
        # A pause and its backlog; what comes after the rows' time has passed is late.
        ((range(18), 40, 60, range(18, 80), range(59, 60)), [(2, 0, 18), (3, 0, 60)], 1),
        # The backlog stops inside the window: silence closes it again, and rows for good.
        (
            (range(18), 60, range(18, 40), 20, 31, 32, range(40, 50), range(50, 66)),
            [(1, 0, 18), (4, 0, 40), (7, 0, 60)],
            0,
        ),
        # Nothing is added: it goes without another word.
        ((range(18), 60, 61, range(70, 80), 100), [(1, 0, 18), (4, 1, 10)], 0),
        ((range(18), 60, range(70, 80), range(58, 59), 100), [(1, 0, 18), (4, 1, 10)], 1),
        # Two windows are kept at once, and only one of them is added to.
        (
            (range(58, 62), 100, range(59, 60), range(130, 135)),
            [(1, 0, 2), (1, 1, 2), (3, 0, 3)],
            0,
        ),
    ],
)
def test_a_window_that_silence_closed_comes_again_if_rows_follow_and_so_after_any_restart(
    steps: tuple[range | int, ...], reported: list[tuple[int, int, int]], late: int
) -> None:
    deltas = paused(*steps)
    whole = Merger(STREAM, posts(1))
    assert windows_of(whole, deltas) == reported
    in_merger = whole.state.account.late
    assert in_merger == late and whole.state.account.balanced
    assert whole.state.missed == late - sum(delta.account.late for delta in deltas)
    for stop in range(len(deltas) + 1):
        first, second, third = (Merger(STREAM, posts(1)) for _ in range(3))
        before = windows_of(first, deltas[:stop])
        offset, state = first.restore_point()
        second.restore(offset, state)
        assert second.restore_point() == (offset, state)
        # It may be restarted again before it has caught up.
        assert windows_of(second, deltas[: (offset + stop) // 2], offset) == []
        offset, state = second.restore_point()
        third.restore(offset, state)
        assert before + windows_of(third, deltas, offset) == reported
        assert third.state == whole.state
        assert third.restore_point() == whole.restore_point()
