"""Windows by count against plain Python, however deltas are cut and whichever worker dies in between."""

from __future__ import annotations

import numpy as np
import pytest

from streamgauge.operators.consumer.merge import partial_windows, partial_windows_base
from streamgauge.operators.consumer.merge.merger import Merger
from streamgauge.operators.watermarks.position import inputs_of

from .counted import STREAM, Workers, given, rows_of, windows_of


@pytest.mark.slow
@pytest.mark.parametrize("cut", [1, 3, 40, 10_000])
def test_windows_are_those_of_the_rows_however_they_are_cut(cut: int) -> None:
    rows = rows_of(cut, 3, 150 if cut == 1 else 600)
    random, workers = np.random.default_rng(cut), Workers(STREAM, rows)
    merger, tables = Merger(STREAM, inputs_of({"input": 3})), []
    while any(own.next_offset < len(part) for own, part in zip(workers.inputs, rows)):
        partition = int(random.integers(3))
        workers.read(partition, cut, random)
        workers.send(partition)
        merger.offer(workers.logs[0][-1], len(workers.logs[0]) - 1)
        tables += merger.close()
    full, left = windows_of(rows)
    assert given(tables) == full
    assert given(merger.close_all()) == left
    account = merger.state.account
    assert account.balanced and account.counted == account.read == sum(map(len, rows))


@pytest.mark.slow
@pytest.mark.parametrize("tables", [1, 2])
@pytest.mark.parametrize("seed", range(2))
def test_restarts_of_workers_and_mergers_anywhere_change_nothing(
    seed: int, tables: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor do deltas that came twice, or reached a part of the log, nor where parts of windows lie."""
    monkeypatch.setattr(partial_windows_base, "_FEW", 10)
    monkeypatch.setattr(partial_windows, "_MOST_ORIGINS", 3)
    rows, random = rows_of(seed, 2, 400), np.random.default_rng(seed)
    workers = Workers(STREAM, rows, tables)
    cuts: list[list[int]] = [[], []]
    died = partly = 0
    while any(own.next_offset < len(part) for own, part in zip(workers.inputs, rows)):
        p = int(random.integers(2))
        until = cuts[p][0] - workers.inputs[p].next_offset if cuts[p] else int(random.integers(1, 30))
        workers.read(p, until, random)
        if cuts[p]:
            cuts[p].pop(0)
            workers.send(p)
        elif random.random() < 0.3:  # it dies with what it read, or with a part of it sent
            if random.random() < 0.5:
                workers.send(p, [int(random.integers(tables))])
                partly += 1
            cuts[p] = workers.restart(p)
            died += 1
        else:
            workers.send(p)
    assert died > 5 and partly > 2
    full, left = windows_of(rows)
    answers, unfilled = {}, {}
    for log in workers.logs:
        merger, reported, offset, furthest = Merger(STREAM, inputs_of({"input": 2})), [], 0, 0
        while offset < len(log):
            merger.offer(log[offset], offset)
            offset += 1
            if random.random() < 0.2:  # what a zombie sent again
                merger.offer(log[int(random.integers(offset))], offset - 1)
            if random.random() < 0.2:
                merger.open_windows.spill()
            if random.random() < 0.6:
                reported += merger.close()
            elif random.random() < 0.5 and (groups := merger.due()) is not None:
                reported.append(groups.table)
                merger.mark_emitted()
            if offset > furthest and random.random() < 0.2:
                furthest = offset
                offset, state = merger.restore_point()
                merger = Merger(STREAM, inputs_of({"input": 2}))
                merger.restore(offset, state)
        answers |= given([*reported, *merger.close()])
        unfilled |= given(merger.close_all())
        assert merger.state.account.read == sum(map(len, rows))
    assert answers == full and unfilled == left


def test_a_window_that_lost_what_fills_it_closes_when_the_next_begins() -> None:
    """With "at_most_once" a delta may be lost; its windows hold fewer rows, and none stays for ever."""
    rows = [[(second, "a", second) for second in range(30)]]
    workers, random = Workers(STREAM, rows), np.random.default_rng(1)
    for _ in range(6):
        workers.read(0, 5, random)
        workers.send(0)
    merger = Merger(STREAM, inputs_of({"input": 1}), "at_most_once")
    for offset, delta in enumerate(workers.logs[0]):
        if offset != 1:  # rows 5 to 9: the last two of the first window, three of the second
            merger.offer(delta, offset)
    result = given(merger.close())
    assert {name: of[2] for (_, name), of in result.items()} == {
        "input[0]:0": 5,
        "input[0]:7": 4,
        "input[0]:14": 7,
        "input[0]:21": 7,
    }
    assert [of[2] for of in given(merger.close_all()).values()] == [2]


def test_filling_windows_show_when_rows_came_for_them() -> None:
    rows = [[(second, "ab"[second % 2], second) for second in range(8)]]
    workers, random = Workers(STREAM, rows), np.random.default_rng(1)
    merger = Merger(STREAM, inputs_of({"input": 1}))
    workers.read(0, 7, random)
    workers.send(0)
    merger.offer(workers.logs[0][0], 0)
    assert {key: of[2] for (key, _), of in given(merger.updates()).items()} == {"a": 4, "b": 3}
    assert merger.updates() == []
    workers.read(0, 1, random)
    workers.send(0)
    merger.offer(workers.logs[0][1], 1)
    assert {key: of[2] for (key, _), of in given(merger.updates()).items()} == {"b": 4}
    assert merger.window_counts() == (3, 3) and merger.state_bytes > 0
