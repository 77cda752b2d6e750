"""Up to where windows may close, by what is known of each partition."""

from __future__ import annotations

import pytest

from streamgauge.operators.watermarks.global_watermark import Mark, closing_times, update_idleness
from streamgauge.operators.watermarks.idle_timer import Rest
from streamgauge.operators.watermarks.partition_watermark import PartitionTime
from streamgauge.operators.watermarks.position import Position
from streamgauge.operators.windows.tumbling import Tumbling
from streamgauge.operators.windows.window import EARLIEST

SECOND = 1_000_000
MINUTE = Tumbling.every("1m")
DELAY = 10 * SECOND
NOW = 10_000


def awake(seen: float) -> Mark:
    return Mark(Position(time=PartitionTime(int(seen * SECOND))))


def resting(seen: float | None, silent: float, now: float = NOW, patience: float = 5) -> Mark:
    rest = Rest(int(silent * SECOND), int(patience * SECOND), int(now * SECOND))
    return Mark(rest=rest) if seen is None else Mark(Position(time=PartitionTime(int(seen * SECOND))), rest)


def closes(*marks: Mark) -> float:
    result = closing_times(marks, MINUTE, DELAY).due_us
    return result / SECOND if result > EARLIEST else EARLIEST


def closes_for_good(*marks: Mark) -> float:
    result = closing_times(marks, MINUTE, DELAY).final_us
    return result / SECOND if result > EARLIEST else EARLIEST


def test_the_slowest_partition_that_is_awake_decides() -> None:
    assert closes(awake(500), awake(300), awake(400)) == 290
    assert closes(awake(500), Mark()) == EARLIEST


def test_a_silent_one_is_as_far_as_the_furthest() -> None:
    assert closes(awake(500), resting(None, 6)) == 490
    assert closes(awake(500), resting(20, 6)) == 490


def test_but_not_further_than_the_clock_on_the_wall() -> None:
    # The one that is awake has a clock that is an hour ahead.
    assert closes(awake(NOW + 3_600), resting(NOW - 8, 6)) == NOW - DELAY / SECOND
    assert closes(awake(NOW + 3_600), resting(None, 6), awake(NOW)) == NOW - DELAY / SECOND


def test_all_silent_time_goes_on_to_the_last_windows_and_no_further() -> None:
    assert closes(resting(50, 5)) == 40
    assert closes(resting(50, 19.9)) == 40
    assert closes(resting(50, 20)) == 60
    assert closes(resting(50, 10_000)) == 60
    assert closes(resting(50, 100), resting(200, 30)) == 190
    assert closes(resting(50, 100), resting(200, 50)) == 240


def test_all_silent_only_what_rows_are_past_closes_for_good_until_an_hour_has_gone() -> None:
    assert closes_for_good(awake(500), resting(20, 6)) == closes(awake(500), resting(20, 6))
    assert closes_for_good(resting(50, 20)) == 40
    assert closes_for_good(resting(50, 100), resting(200, 50)) == 190
    assert closes_for_good(resting(50, 100), resting(None, 100)) == 40
    assert closes_for_good(resting(50, 3_619)) == 40
    assert closes_for_good(resting(50, 3_620)) == 60
    for ended in (20, 500):
        assert closes_for_good(resting(ended, 0, patience=0)) == closes(resting(ended, 0, patience=0))


def test_nothing_closes_where_nothing_ever_came() -> None:
    assert closes(resting(None, 10**6), resting(None, 10**6)) == EARLIEST
    assert closes() == EARLIEST


def test_an_ended_partition_holds_nothing_until_all_have_ended() -> None:
    assert closes(awake(500), resting(20, 0, patience=0), resting(None, 0, patience=0)) == 490
    assert closes(resting(500, 0, patience=0), resting(20, 0, patience=0)) == 10


def test_when_all_were_silent_and_one_wakes_the_others_are_waited_for() -> None:
    marks = {p: resting(None, 30) for p in range(3)}
    marks[0].time.seen_us = 500 * SECOND
    update_idleness(marks, 0, None)
    assert closes(*marks.values()) == EARLIEST
    for silent, held in ((31, True), (34.9, True), (35, False)):
        for partition in (1, 2):
            update_idleness(marks, partition, Rest(int(silent * SECOND), 5 * SECOND, NOW * SECOND))
        assert closes(*marks.values()) == (EARLIEST if held else 490)


def test_one_that_wakes_beside_others_that_are_awake_keeps_nobody_waiting() -> None:
    marks = {0: awake(500), 1: resting(450, 8), 2: resting(None, 8)}
    update_idleness(marks, 1, None)
    assert marks[2].idle
    assert closes(*marks.values()) == 440


@pytest.mark.parametrize("again", [5, 6])
def test_a_wait_starts_over_with_another_worker(again: int) -> None:
    marks = {0: resting(500, 30), 1: resting(None, 30)}
    update_idleness(marks, 0, None)
    update_idleness(marks, 1, Rest(again * SECOND, 5 * SECOND, NOW * SECOND))
    assert not marks[1].idle
    update_idleness(marks, 1, Rest((again + 5) * SECOND, 5 * SECOND, NOW * SECOND))
    assert marks[1].idle


def test_partitions_that_had_ended_are_waited_for_in_the_next_bounded_run() -> None:
    marks = {0: resting(500, 9, patience=0), 1: resting(20, 9, patience=0)}
    marks[0].time.seen_us = 900 * SECOND
    update_idleness(marks, 0, None)
    assert closes(*marks.values()) == 10
    update_idleness(marks, 1, Rest(0, 0, NOW * SECOND))
    assert closes(*marks.values()) == 890
