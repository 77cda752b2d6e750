"""The merging worker's state: duplicates, gaps and restarts, on a log in memory."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streamgauge.operators.consumer.merge.merger import Merger
from streamgauge.operators.definition.aggregates import count
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.kafka.log_faults import DeltaError
from streamgauge.operators.sketching.account import Account
from streamgauge.operators.watermarks.idle_timer import Rest
from streamgauge.operators.watermarks.partition_watermark import PartitionTime
from streamgauge.operators.watermarks.position import Input, inputs_of

from .deltas import START, STREAM, log, merged, paused, posts, windows, windows_of


def test_the_cut_into_deltas_changes_nothing() -> None:
    one, many = merged(log(1, 2_000)), merged(log(1, 17))
    assert (
        one.state.account
        == many.state.account
        == Account(6_000, one.state.account.counted, 0, one.state.account.late)
    )
    assert one.state.account.balanced and one.state.account.late > 0
    assert windows(one) == windows(many)


def test_a_delta_that_comes_twice_counts_once() -> None:
    deltas = log(2, 100)
    doubled = [delta for one in deltas for delta in (one, one)]
    repeated = [*deltas[:20], *deltas[:20], *deltas[20:]]
    clean = windows(merged(deltas))
    for noisy in (doubled, repeated):
        merger = merged(noisy)
        assert merger.state.duplicates == len(noisy) - len(deltas)
        assert merger.state.account == merged(deltas).state.account
        assert windows(merger) == clean


def test_a_zombies_range_inside_what_was_taken_counts_once() -> None:
    deltas = log(3, 100, partitions=3)
    zombie = replace(deltas[3], first_offset=110, next_offset=150)
    merger = merged([*deltas[:6], zombie, *deltas[6:]])
    assert merger.state.duplicates == 1
    assert windows(merger) == windows(merged(deltas))


@pytest.mark.parametrize(("first", "following"), [(50, 250), (150, 250), (100, 90)])
def test_a_delta_out_of_turn_is_refused_by_its_range(first: int, following: int) -> None:
    deltas = log(4, 100)
    merger = merged(deltas[:3])
    wrong = replace(deltas[3], first_offset=first, next_offset=max(following, first))
    if wrong.first_offset == 100:
        assert merger.offer(wrong, 3)
        return
    with pytest.raises(
        DeltaError, match=rf"posts\[0\] {first}…{following} is out of order; the next offset is 100"
    ):
        merger.offer(wrong, 3)


def test_at_least_once_takes_an_overlapping_range_and_says_so_but_no_gap() -> None:
    deltas = log(4, 100)
    merger = merged(deltas[:3], delivery="at_least_once")
    assert merger.offer(replace(deltas[3], first_offset=50, next_offset=200), 3)
    assert merger.state.overlaps == 1 and merger.state.marks["posts", 0].position.offset == 200
    with pytest.raises(DeltaError, match="out of order"):
        merger.offer(replace(deltas[3], first_offset=300, next_offset=400), 4)


def test_a_delta_of_another_definition_is_refused_by_name() -> None:
    deltas = log(5, 2_000)
    other = Stream(STREAM.source, STREAM.time).tumbling("2m").agg(posts=count())
    with pytest.raises(DeltaError, match=f"{STREAM.fingerprint()}.*{other.fingerprint()}"):
        Merger(other, posts(3)).offer(deltas[0], 0)


def test_no_window_closes_before_every_partition_was_heard_of() -> None:
    deltas = log(7, 2_000)
    merger = Merger(STREAM, posts(4))
    for offset, delta in enumerate(deltas):
        merger.offer(delta, offset)
    assert merger.close() == []
    assert merged(deltas).close()


def test_partitions_of_one_number_in_two_topics_have_chains_of_their_own() -> None:
    deltas = log(7, 100)
    likes = [replace(delta, topic="likes") for delta in deltas]
    merger = Merger(STREAM, inputs_of({"posts": 3, "likes": 3}))
    for offset, delta in enumerate(deltas):
        merger.offer(delta, offset)
    assert merger.close() == []
    for offset, delta in enumerate(likes, len(deltas)):
        assert merger.offer(delta, offset)
    again = Merger(STREAM, [])
    again.restore(*merger.restore_point())
    twice = {window: 2 * posts for window, posts in windows(merged(deltas)).items()}
    assert windows(merger) == twice
    assert again.state.marks.keys() <= set(inputs_of({"posts": 3, "likes": 3}))
    with pytest.raises(DeltaError, match="recreated"):
        for source in ("one", "two"):
            merger.offer(replace(likes[-1], first_offset=2_000, next_offset=2_000, source=source), 10**6)


def test_partitions_of_a_topic_that_is_gone_hold_no_window_open() -> None:
    deltas = log(7, 100)
    merger = Merger(STREAM, inputs_of({"posts": 3, "likes": 1}))
    merger.offer(replace(deltas[0], topic="likes"), 0)
    for offset, delta in enumerate(deltas, 1):
        merger.offer(delta, offset)
    assert len(merger.close()) < 2
    merger.leave_out({"likes"})
    assert len(merger.close()) >= len(merged(deltas).close()) - 1


def test_reached_says_when_all_ends_are_in() -> None:
    merger = merged(log(8, 2_000))
    assert merger.has_reached({Input("posts", 0): 2_000, Input("posts", 1): 1_999, Input("posts", 2): 0})
    assert not merger.has_reached({Input("posts", 0): 2_001})
    assert not merger.has_reached({Input("posts", 3): 0})


def test_a_kept_window_is_still_open_only_with_what_was_added_to_it() -> None:
    deltas, merger = paused(range(18), 60, range(18, 40)), Merger(STREAM, posts(1))
    assert windows_of(merger, deltas[:2]) == [(1, 0, 18)]
    assert merger.close_all() == []
    merger.offer(deltas[2], 2)
    assert merger.due() is None
    assert [table.column("posts").to_pylist() for table in merger.close_all()] == [[40]]


@pytest.mark.parametrize("together", [True, False])
def test_deltas_that_were_sent_together_are_taken_together(together: bool) -> None:
    """What was silent wakes with what lets the other partition close windows, its rows a moment behind."""
    first, second = log(9, 2_000, partitions=2)
    begin = {"next_offset": 0, "table": None, "messages": {}, "account": Account(), "time": PartitionTime()}
    merger = Merger(STREAM, posts(2))
    merger.offer(replace(first, **begin), 0)
    merger.offer(replace(second, **begin, rest=Rest(9_000_000, 5_000_000, START + 10**10)), 1)
    merger.offer(replace(first, more=together), 2)
    merger.offer(second, 3)
    missed = merger.state.account.late - first.account.late - second.account.late
    assert (missed == 0) == together and merger.state.missed == missed
    assert merger.close()
