"""The merging worker's state: duplicates, gaps and restarts, on a log in memory."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from json import dumps, loads

import numpy as np
import polars as pl
import pytest
from confluent_kafka import TopicPartition

from streamgauge.operators.consumer.log.faults import DeltaError
from streamgauge.operators.consumer.log.snapshots import Snapshot
from streamgauge.operators.consumer.merge.closed_windows import ClosedWindows
from streamgauge.operators.consumer.merge.follower import LogMerger
from streamgauge.operators.consumer.merge.merger import Merger
from streamgauge.operators.consumer.plan import Plan
from streamgauge.operators.definition.aggregates import count, distinct
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json import json
from streamgauge.operators.sketching.accounting import Account
from streamgauge.operators.sketching.delta import Delta
from streamgauge.operators.sketching.lateness import PartitionTime
from streamgauge.operators.sketching.progress import Progress
from streamgauge.operators.sketching.silence import Rest
from streamgauge.operators.table.schema import schema_of

START = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp() * 1e6)
STREAM = (
    Stream.from_batches({"at": pl.Datetime("us", "UTC"), "user": pl.Int64}, time="at")
    .tumbling("1m", delay="5s")
    .agg(posts=count(), users=distinct("user"))
)


def log(seed: int, cut: int, partitions: int = 3, rows: int = 2_000) -> list[Delta]:
    """Ten minutes of deltas, one partition after the other, each of `cut` messages."""
    random = np.random.default_rng(seed)
    times = START + np.linspace(0, 600e6, rows).astype(np.int64)
    found = []
    inputs = [Progress(STREAM, "posts", p, 0, clock=lambda: START / 1e6 + 600) for p in range(partitions)]
    frames = [
        pl.DataFrame(
            {
                "at": pl.Series(times - random.exponential(2e6, rows).astype(np.int64)).cast(
                    pl.Datetime("us", "UTC")
                ),
                "user": random.integers(0, 500, rows),
            }
        )
        for _ in inputs
    ]
    for low in range(0, rows, cut):
        for progress, frame in zip(inputs, frames):
            part = frame[low : low + cut]
            offsets = np.arange(low, low + part.height)
            progress.add(part, None, offsets, low + part.height, lambda numbers, reason: None)
            found.append(progress.delta())
    return found


def windows(merger: Merger) -> dict[object, int]:
    return {
        row["window_start"]: row["posts"]
        for table in (*merger.close(), *merger.close_all())
        for row in table.select(["window_start", "posts"]).to_pylist()
    }


def merged(deltas: list[Delta], **options) -> Merger:
    merger = Merger(STREAM, range(3), **options)
    for offset, delta in enumerate(deltas):
        merger.offer(delta, offset)
    return merger


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
    zombie = replace(deltas[3], first=110, next=150)
    merger = merged([*deltas[:6], zombie, *deltas[6:]])
    assert merger.state.duplicates == 1
    assert windows(merger) == windows(merged(deltas))


@pytest.mark.parametrize(("first", "following"), [(50, 250), (150, 250), (100, 90)])
def test_a_delta_out_of_turn_is_refused_by_its_range(first: int, following: int) -> None:
    deltas = log(4, 100)
    merger = merged(deltas[:3])
    wrong = replace(deltas[3], first=first, next=max(following, first))
    if wrong.first == 100:
        assert merger.offer(wrong, 3)
        return
    with pytest.raises(
        DeltaError, match=rf"posts\[0\] {first}…{following} is out of turn, the next offset is 100"
    ):
        merger.offer(wrong, 3)


def test_at_least_once_takes_an_overlapping_range_and_says_so_but_no_gap() -> None:
    deltas = log(4, 100)
    merger = merged(deltas[:3], delivery="at_least_once")
    assert merger.offer(replace(deltas[3], first=50, next=200), 3)
    assert merger.state.overlaps == 1 and merger.state.chains[0].next == 200
    with pytest.raises(DeltaError, match="out of turn"):
        merger.offer(replace(deltas[3], first=300, next=400), 4)


def test_a_delta_of_another_definition_is_refused_by_name() -> None:
    deltas = log(5, 2_000)
    other = Stream(STREAM.source, STREAM.time).tumbling("2m").agg(posts=count())
    with pytest.raises(DeltaError, match=f"{STREAM.fingerprint()}.*{other.fingerprint()}"):
        Merger(other, range(3)).offer(deltas[0], 0)


@pytest.mark.parametrize("stop", [1, 7, 30, 59, 60])
def test_a_restart_from_the_resume_point_gives_the_same_windows_each_once(stop: int) -> None:
    deltas = log(6, 100)
    whole, clean = merged(deltas), Merger(STREAM, range(3))
    first = Merger(STREAM, range(3))
    emitted: list[object] = []
    for offset, delta in enumerate(deltas[:stop]):
        first.offer(delta, offset)
        emitted += [table.column("window_start")[0].as_py() for table in first.close()]
    offset, told = first.resume_point()
    assert offset <= stop
    second = Merger(STREAM, range(3))
    second.resume(offset, told)
    found = {}
    for at in range(offset, len(deltas)):
        second.offer(deltas[at], at)
        for table in second.close():
            found[table.column("window_start")[0].as_py()] = table.column("posts")[0].as_py()
    assert not set(found) & set(emitted)
    for at, delta in enumerate(deltas):
        clean.offer(delta, at)
    expected = windows(clean)
    open_still = {
        t.column("window_start")[0].as_py(): t.column("posts")[0].as_py() for t in second.close_all()
    }
    assert {**found, **open_still} == {start: n for start, n in expected.items() if start not in emitted}
    assert second.state.account == whole.state.account
    assert len(emitted) + len(found) + len(open_still) == len(expected)


def test_a_window_that_was_not_handed_over_comes_again_after_a_restart() -> None:
    deltas, merger = log(9, 100), Merger(STREAM, range(3))
    told = []
    for offset, delta in enumerate(deltas):
        merger.offer(delta, offset)
        while (table := merger.due()) is not None and len(told) < 3:
            told.append(table.column("window_start")[0].as_py())
            merger.told()
    unseen = merger.due()
    assert unseen is not None and unseen.equals(merger.due())
    again = Merger(STREAM, range(3))
    offset, state = merger.resume_point()
    again.resume(offset, state)
    for at in range(offset, len(deltas)):
        again.offer(deltas[at], at)
    whole = {t.column("window_start")[0].as_py(): t for t in merged(deltas).close()}
    found = {t.column("window_start")[0].as_py(): t for t in again.close()}
    assert len(told) == 3 and sorted([*told, *found]) == sorted(whole)
    assert all(table.equals(whole[start]) for start, table in found.items())


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

    merger = Merger(STREAM, range(3))
    follow(merger, 0, stop)
    offset, state = merger.resume_point()
    again = Merger(STREAM, range(3))
    again.resume(offset, state)
    follow(again, offset, len(parts))
    assert again.state.duplicates == 0
    assert windows(again) == windows(merged(deltas))


def test_a_damaged_state_is_refused() -> None:
    for told in ("", "{}", "[]", '{"chains": {"a": [1, 2, 3]}}'):
        with pytest.raises(DeltaError, match="damaged"):
            Merger(STREAM, range(3)).resume(0, told)


def test_a_state_from_before_windows_were_kept_holds_all_that_had_closed_as_final() -> None:
    deltas, before = log(6, 100), merged(log(6, 100))
    told = [table.column("window_start")[0].as_py() for table in before.close()]
    offset, state = before.resume_point()
    older = {name: value for name, value in loads(state).items() if name not in ("due", "kept")}
    after = Merger(STREAM, range(3))
    after.resume(offset, dumps(older))
    assert after.state.due_us == after.state.closed_us
    for at in range(offset, len(deltas)):
        after.offer(deltas[at], at)
    assert told and after.close() == [] and after.state == before.state


def test_no_window_closes_before_every_partition_was_heard_of() -> None:
    deltas = log(7, 2_000)
    merger = Merger(STREAM, range(4))
    for offset, delta in enumerate(deltas):
        merger.offer(delta, offset)
    assert merger.close() == []
    assert merged(deltas).close()


def test_reached_says_when_all_ends_are_in() -> None:
    merger = merged(log(8, 2_000))
    assert merger.reached({0: 2_000, 1: 1_999, 2: 0})
    assert not merger.reached({0: 2_001})
    assert not merger.reached({3: 0})


def test_what_is_known_stays_known_while_the_group_is_lost() -> None:
    stream = Stream.from_kafka(
        "posts", value=json({"user": pl.Int64}), time=None, bootstrap_servers="127.0.0.1:1"
    )
    plan = Plan(stream.tumbling("1m").agg(posts=count()), "group", "table", 1)
    follower = LogMerger(plan, lambda table: None, ClosedWindows(schema_of(plan.stream), 1), lambda: True)
    follower.mergers[0] = Merger(plan.stream, [0])
    follower.mergers[0].state.account = Account(read=7, counted=7)
    follower._lost(follower._consumer, [TopicPartition("table", 0)])
    assert [state.account.read for state in follower.states()] == [7]
    follower._consumer.close()


def test_silence_is_told_by_the_log_and_survives_a_restart() -> None:
    silent = [Progress(STREAM, "posts", p, 0, clock=lambda: START / 1e6) for p in range(3)]
    told = []
    for seconds in (30, 31):
        for progress in silent:
            progress.rest = Rest(seconds * 1_000_000, 5_000_000, START + seconds * 1_000_000)
            told.append(progress.delta())
    rows = pl.DataFrame(
        {
            "at": pl.Series([START + n * 1_000_000 for n in range(200)]).cast(pl.Datetime("us", "UTC")),
            "user": range(200),
        }
    )
    silent[0].add(rows, None, np.arange(200), 200, lambda numbers, reason: None)
    told.append(silent[0].delta())
    before = merged(told)
    after = Merger(STREAM, range(3))
    offset, state = before.resume_point()
    after.resume(offset, state)
    for merger in (before, after):
        if merger is after:
            merger.offer(told[-1], len(told) - 1)
        assert [chain.idle for chain in merger.state.chains.values()] == [False] * 3
        assert [chain.rest is None for chain in merger.state.chains.values()] == [True, False, False]
        assert merger.close() == []
        # The one that woke the stream is waited with, for five seconds of the others' silence.
        for seconds, closed in ((35, 0), (36, 3)):
            for progress in silent[1:]:
                progress.rest = Rest(seconds * 1_000_000, 5_000_000, START + 10**9)
                merger.offer(progress.delta(), 100)
            assert len(merger.close()) == closed


def paused(*steps: range | int) -> list[Delta]:
    """One partition: rows of each second in a range, and at a number so many seconds of silence."""
    progress, found = Progress(STREAM, "posts", 0, 0, clock=lambda: START / 1e6 + 600), []
    for step in steps:
        if isinstance(step, range):
            at = pl.Series([START + second * 1_000_000 for second in step]).cast(pl.Datetime("us", "UTC"))
            rows = pl.DataFrame({"at": at, "user": list(step)})
            offsets = np.arange(progress.next, progress.next + len(step))
            progress.add(rows, None, offsets, progress.next + len(step), lambda numbers, reason: None)
        else:
            progress.rest = Rest(step * 1_000_000, 5_000_000, START + 10**9)
        found.append(progress.delta())
    return found


def told_by(merger: Merger, deltas: list[Delta], begin: int = 0) -> list[tuple[int, int, int]]:
    """At which offset which minute's window was told, and with how many rows."""
    found = []
    for offset in range(begin, len(deltas)):
        merger.offer(deltas[offset], offset)
        for table in merger.close():
            row = table.select(["window_start", "posts"]).to_pylist()[0]
            minute = int(row["window_start"].timestamp() * 1e6 - START) // 60_000_000
            found.append((offset, minute, row["posts"]))
    return found


@pytest.mark.parametrize(
    ("steps", "told", "late"),
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
    steps: tuple[range | int, ...], told: list[tuple[int, int, int]], late: int
) -> None:
    deltas = paused(*steps)
    whole = Merger(STREAM, range(1))
    assert told_by(whole, deltas) == told
    in_merger = whole.state.account.late
    assert in_merger == late and whole.state.account.balanced
    for stop in range(len(deltas) + 1):
        first, second, third = (Merger(STREAM, range(1)) for _ in range(3))
        before = told_by(first, deltas[:stop])
        offset, state = first.resume_point()
        second.resume(offset, state)
        assert second.resume_point() == (offset, state)
        # It may be restarted again before it has caught up.
        assert told_by(second, deltas[: (offset + stop) // 2], offset) == []
        offset, state = second.resume_point()
        third.resume(offset, state)
        assert before + told_by(third, deltas, offset) == told
        assert third.state == whole.state
        assert third.resume_point() == whole.resume_point()


def test_of_two_snapshots_at_one_place_the_one_with_more_tellings_is_the_newer() -> None:
    deltas, merger, found = paused(range(18), 60, range(18, 40), 31), Merger(STREAM, range(1)), []
    for offset, delta in enumerate(deltas):
        merger.offer(delta, offset)
        merger.close()
        found.append(Snapshot(STREAM.fingerprint(), "id", *merger.resume_point(), STREAM.definition()))
    assert [snapshot.resume for snapshot in found] == [0] * 4
    assert found[0].progress < found[1].progress == found[2].progress < found[3].progress


def test_a_kept_window_is_still_open_only_with_what_was_added_to_it() -> None:
    deltas, merger = paused(range(18), 60, range(18, 40)), Merger(STREAM, range(1))
    assert told_by(merger, deltas[:2]) == [(1, 0, 18)]
    assert merger.close_all() == []
    merger.offer(deltas[2], 2)
    assert merger.due() is None
    assert [table.column("posts").to_pylist() for table in merger.close_all()] == [[40]]


@pytest.mark.parametrize("together", [True, False])
def test_deltas_that_were_sent_together_are_taken_together(together: bool) -> None:
    """What was silent wakes with what lets the other partition close windows, its rows a moment behind."""
    first, second = log(9, 2_000, partitions=2)
    begin = {"next": 0, "table": None, "messages": {}, "account": Account(), "time": PartitionTime()}
    merger = Merger(STREAM, range(2))
    merger.offer(replace(first, **begin), 0)
    merger.offer(replace(second, **begin, rest=Rest(9_000_000, 5_000_000, START + 10**10)), 1)
    merger.offer(replace(first, more=together), 2)
    merger.offer(second, 3)
    missed = merger.state.account.late - first.account.late - second.account.late
    assert (missed == 0) == together
    assert merger.close()


def test_a_message_whose_partition_goes_while_more_are_fetched_is_left_to_its_next_owner() -> None:
    stream = Stream.from_kafka("posts", value=json({"user": pl.Int64}), bootstrap_servers="127.0.0.1:1")
    plan = Plan(stream.tumbling("1m").agg(posts=count()), "group", "table", 1)
    follower = LogMerger(plan, lambda table: None, ClosedWindows(schema_of(plan.stream), 1), lambda: True)
    real = follower._consumer
    follower.mergers[0] = Merger(plan.stream, [0])

    class Fetched:
        def partition(self) -> int:
            return 0

    class Rebalancing:
        def poll(self, seconds: float) -> Fetched:
            return Fetched()

        def consume(self, most: int, seconds: float) -> list[Fetched]:
            follower._lost(real, [TopicPartition("table", 0)])
            return []

    follower._consumer = Rebalancing()
    assert follower._read() == []
    real.close()
