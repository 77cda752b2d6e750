"""Joins of two streams: the same as pair by pair in plain Python, cut anywhere and restarted anywhere."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

from streamgauge.operators.consumer.group.committed import LONE, Committed, metadata_of, places_of
from streamgauge.operators.consumer.merge.merger import Merger
from streamgauge.operators.definition.joining import Between
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.sketching.account import Account
from streamgauge.operators.sketching.partition_state import PartitionState
from streamgauge.operators.steps import join_buffer
from streamgauge.operators.steps.join_state import JoinStates
from streamgauge.operators.table.query import query
from streamgauge.operators.watermarks.partition_watermark import PartitionTime
from streamgauge.operators.watermarks.position import Input, Position

from .orders import START_US
from .pairs import SCHEMAS, TOPICS, Answer, answer, joined, random_rows

NOW_US = START_US + 20 * 60 * 1_000_000
INPUTS = [Input(topic, 0) for topic in TOPICS]


class Worker:
    """Both partitions of one number, whose worker may die at any message: only what was delivered stays.

    Of a stream that is joined with itself there is one.
    """

    def __init__(self, rows: Any, stream: Stream, seed: int) -> None:
        self.frames = [pl.DataFrame(side, schema=schema) for side, schema in zip(rows, SCHEMAS)]
        self.inputs = INPUTS[: len(rows)]
        self.stream = stream
        self.random = np.random.default_rng(seed)
        self.merger = Merger(stream, self.inputs)
        self.places = [Committed(Position()) for _ in self.inputs]
        self.windows: dict[tuple[Any, Any], tuple[int, ...]] = {}
        self.recalled = self.log = 0
        self.begin()

    def begin(self) -> None:
        """Take both up where the last deltas left them; all rows from before are known again first."""
        self.pairings, self.progress = JoinStates(self.stream), list[PartitionState]()
        for where, place in zip(self.inputs, self.places):
            position = places_of(place.position.offset, metadata_of({LONE: place}))[LONE].position
            self.progress.append(
                PartitionState(
                    *(self.stream, *where, position.offset, replace(position.time)),
                    clock=lambda: NOW_US / 1e6,
                    replay=position.replay,
                    replay_time=position.replay_time,
                    pairing=self.pairings.of(where),
                )
            )
        while left := [side for side, own in enumerate(self.progress) if own.recall_offset < own.next_offset]:
            side = int(self.random.choice(left))
            own = self.progress[side]
            if self.random.random() < 0.1:
                self.deliver()  # a place may be committed before all is known again
            if self.random.random() < 0.05:
                return self.begin()
            high = min(own.next_offset, own.recall_offset + int(self.random.integers(1, 60)))
            offsets = np.arange(own.recall_offset, high)
            self.recalled += len(offsets)
            own.recall(self.frames[side][offsets], self.stamps(offsets), offsets, high)

    def stamps(self, offsets: np.ndarray) -> np.ndarray:
        return np.full(len(offsets), NOW_US // 1000, np.int64)

    def read(self, side: int, many: int) -> None:
        own = self.progress[side]
        offsets = np.arange(own.next_offset, min(own.next_offset + many, self.frames[side].height))
        if len(offsets):
            end = int(offsets[-1]) + 1
            own.add(self.frames[side][offsets], self.stamps(offsets), offsets, end, lambda rows, why: None)

    def deliver(self) -> None:
        """The deltas and places of both, in one transaction."""
        deltas = [own.delta() for own in self.progress]
        for at, delta in enumerate(deltas):
            self.merger.offer(replace(delta, more=at + 1 < len(deltas)), self.log)
            self.log += 1
            self.places[at] = Committed(delta.end, (), "fingerprint", "id", "id")
        for table in self.merger.close():
            self.note(table)

    def note(self, table: Any) -> None:
        for row in query(table).iter_rows(named=True):
            at = tuple(int(row[name].timestamp() * 1e6) for name in ("window_start", "window_end"))
            self.windows[at] = row["rows"], int(row["n"] or 0), int(row["m"] or 0)

    def result(self) -> Answer:
        self.deliver()
        for table in self.merger.close_all():
            self.note(table)
        return Answer(self.merger.state.account, self.windows)

    def ended(self) -> Answer:
        """What a bounded run would give if it ended here; the worker goes on."""
        self.deliver()
        for own in self.progress:
            self.merger.offer(own.unpaired(last=False), self.log)
            self.log += 1
        kept = dict(self.windows)
        for table in self.merger.at_end():
            self.note(table)
        result, self.windows = self.windows, kept
        return Answer(self.merger.state_at_end.account, result)

    @property
    def left(self) -> list[int]:
        """The sides that are not read to their ends."""
        return [side for side, own in enumerate(self.progress) if own.next_offset < self.frames[side].height]


@pytest.mark.parametrize("hopping", [False, True], ids=["tumbling", "hopping"])
@pytest.mark.parametrize("how", ["inner", "left", "outer"])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, 6))])
def test_a_join_is_the_same_however_rows_are_read_and_wherever_workers_die(
    seed: int, how: Between, hopping: bool
) -> None:
    rows = random_rows(seed, 900)
    worker = Worker(rows, joined(how, hopping), 100 + seed)
    favoured = 0
    while worker.left:
        if worker.random.random() < 0.1:
            favoured = 1 - favoured
        side = favoured if worker.random.random() < 0.7 else 1 - favoured
        worker.read(side, int(worker.random.integers(1, 40)))
        if worker.random.random() < 0.3:
            worker.deliver()
        if worker.random.random() < 0.1:
            worker.begin()
    wanted = answer(rows, how, hopping, NOW_US)
    assert worker.result() == wanted
    account = wanted.account
    assert (
        account.balanced
        and min(account.counted, account.filtered) > 80
        and min(account.late, account.dead_lettered) > 3
    )
    assert worker.recalled > 100 and len(wanted.windows) > 15


@pytest.mark.slow
@pytest.mark.parametrize("hopping", [False, True], ids=["tumbling", "hopping"])
@pytest.mark.parametrize("how", ["inner", "left", "outer"])
def test_rows_without_a_partner_are_given_where_a_run_ends_and_wait_for_the_next(
    how: Between, hopping: bool
) -> None:
    rows, more = random_rows(5, 500), 0
    worker = Worker(rows, joined(how, hopping), 9)
    while worker.left:
        worker.read(worker.left[0 if worker.random.random() < 0.8 else -1], 25)
        if worker.random.random() < 0.3:
            so_far = tuple(side[: own.next_offset] for side, own in zip(rows, worker.progress))
            expected = answer(so_far, how, hopping, NOW_US, ended=True)
            assert worker.ended() == expected
            more += expected.account.counted - worker.merger.state.account.counted
            if worker.random.random() < 0.5:
                worker.begin()
    assert worker.ended() == answer(rows, how, hopping, NOW_US, ended=True)
    assert worker.result() == answer(rows, how, hopping, NOW_US)
    assert (more > 0) == (how != "inner")


@pytest.mark.slow
@pytest.mark.parametrize("how", [pytest.param("inner", marks=pytest.mark.soak), "outer"])
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.soak)])
def test_rows_far_apart_are_dropped_in_time_and_known_again_in_time(
    seed: int, how: Between, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both sides side by side, in small pieces, with a restart after every few: little is read again."""
    monkeypatch.setattr(join_buffer, "_FEW", 4)
    rows = random_rows(20 + seed, 2_500)
    worker, most = Worker(rows, joined(how), 200 + seed), 0
    while left := worker.left:
        side = min(left, key=lambda side: number(rows, side, worker.progress[side].next_offset))
        worker.read(side, int(worker.random.integers(1, 8)))
        most = max(most, *(len(rows) for rows in worker.pairings.of(INPUTS[0]).sides))
        if worker.random.random() < 0.3:
            worker.deliver()
            back = [place.position.offset - (place.position.replay or 0) for place in worker.places]
            most = max(most, *back)
            if worker.random.random() < 0.2:
                worker.begin()
    assert worker.result() == answer(rows, how, False, NOW_US)
    assert 100 < most < 700  # of 1,250 on each side, with two a second


@pytest.mark.parametrize("restarts", [False, True])
def test_rows_are_judged_again_as_they_were_at_first(restarts: bool) -> None:
    """Reading again begins with a row that is 75 minutes ahead, which moved no time when it came."""
    second = 1_000_000
    left = [{"id": 100 + at, "twin": None, "n": 1, "at": START_US + at * second} for at in range(25)]
    left += [{"id": 7, "twin": None, "n": 1, "at": START_US + 4_500 * second}]
    left += [{"id": key, "twin": None, "n": 1, "at": START_US + 200 * second} for key in (1, 2)]
    right = [{"id": 900 + at, "m": 1, "at": START_US + (165 + at) * second} for at in range(25)]
    right += [{"id": key, "m": 1, "at": START_US + 195 * second} for key in (1, 2)]
    worker = Worker((left, right), joined("inner"), 1)
    for side, many in ((0, 25), (1, 25), (0, 3)):
        worker.read(side, many)
    worker.deliver()
    assert worker.places[0].position.replay == 25
    if restarts:
        worker.begin()
    worker.read(1, 2)
    assert worker.result().account == Account(read=55, counted=4, filtered=51)


@pytest.mark.slow
def test_rows_that_are_read_again_from_the_beginning_are_dropped_as_they_were(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As after a reset: nobody knows where to read again from, so all is read, and little is held."""
    monkeypatch.setattr(join_buffer, "_FEW", 4)
    rows = random_rows(4, 2_000)
    worker = Worker(rows, joined("outer"), 7)
    for at in range(0, 1_000, 20):
        worker.read(0, 20)
        worker.read(1, 20)
        if at == 600:
            worker.deliver()
            forgotten = [replace(place.position, replay=0, replay_time=None) for place in worker.places]
            worker.places = [replace(p, position=at) for p, at in zip(worker.places, forgotten)]
            worker.begin()
            held = [len(side) for side in worker.pairings.of(INPUTS[0]).sides]
            assert worker.recalled >= 1_200 and max(held) < 500
    while worker.left:
        worker.read(worker.left[0], 50)
    assert worker.result() == answer(rows, "outer", False, NOW_US)


def test_where_to_read_again_from_is_committed_with_the_event_time_there() -> None:
    time = PartitionTime(7, rows=3)
    place = Committed(Position(9, PartitionTime(12), 4, time), (), "abc", "t", "u")
    assert places_of(9, metadata_of({LONE: place})) == {LONE: place}


def test_a_side_far_ahead_need_not_be_read_until_the_other_has_caught_up() -> None:
    left, right = random_rows(3, 900)
    ahead = Worker((left, right), joined("inner", limit=400), 1)
    silent = dict.fromkeys(INPUTS, False)
    ahead.read(0, 300)
    assert ahead.pairings.ahead(silent, set()) == {INPUTS[0]}
    assert not ahead.pairings.ahead({**silent, INPUTS[1]: True}, set())  # nobody waits for the silent
    assert not ahead.pairings.ahead({INPUTS[0]: False}, set())  # nor for what another worker has
    while ahead.pairings.ahead(silent, {INPUTS[0]}):
        ahead.read(1, 1)
    left_us, right_us = (own.time.seen_us for own in ahead.progress)
    assert 10_000_000 < left_us - right_us < 30_000_000  # within, a window and the delay are 58 seconds
    assert ahead.progress[1].next_offset > 100


def number(rows: Any, side: int, at: int) -> int:
    return rows[side][at][("n", "m")[side]]
