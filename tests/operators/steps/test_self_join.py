"""A stream joined with itself: as pair by pair in plain Python, cut anywhere and restarted anywhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl
import pytest

from streamgauge.operators.definition.aggregates import count, sum
from streamgauge.operators.definition.joining import MOST_ROWS, Between, TooManyRows
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json.decoder import json
from streamgauge.operators.sketching.account import Account
from streamgauge.operators.steps import join_buffer
from streamgauge.operators.testing import StreamTester

from .orders import START_US
from .pairs import AHEAD, DELAY, NEVER, SCHEMAS, SECOND, SIZE, TOPICS, WITHIN, Answer, Row, random_rows
from .test_join_state import NOW_US, Worker


def joined(how: Between, limit: int = MOST_ROWS, topic: str = TOPICS[0], **where: Any) -> Stream:
    """Either side drops other messages, and makes several rows of one, or gives it another key."""
    time = pl.from_epoch("at", time_unit="us")
    rows = Stream.from_kafka(topic, value=json(SCHEMAS[0]), time=time, **where)
    left = rows.filter(pl.col("n") % 10 != 3).with_columns(id=pl.concat_list("id", "twin")).explode("id")
    right = rows.filter(pl.col("n") % 6 != 2).select(id=pl.col("id") // 2, m=pl.col("n"))
    pairs = left.join(right, on="id", within="30s", how=how, limit=limit)
    pairs = pairs.filter((pl.col("n").fill_null(0) + pl.col("m").fill_null(0)) % 7 != 0)
    return pairs.tumbling("20s", delay="8s").agg(rows=count(), n=sum("n"), m=sum("m"))


@dataclass
class _Side:
    """A row on one side, that is on time."""

    message: int
    key: int | None
    value: int
    time: int
    reached: int
    paired: bool = False


def answer(rows: list[Row], how: Between, ended: bool = False) -> Answer:
    """The plain answer; once it has `ended`, no row waits for a partner any more."""
    account, seen = Account(), NEVER
    sides: tuple[list[_Side], list[_Side]] = [], []
    messages = set()
    for message, row in enumerate(rows):
        n, time = row["n"], row["at"]
        keys: tuple[Any, Any] = ([], [])
        if n % 10 != 3:
            keys[0].extend([row["id"], row["twin"]])
        if n % 6 != 2:
            keys[1].append(None if row["id"] is None else row["id"] // 2)
        if not any(keys):
            account += Account(read=1, filtered=1)
        elif time is None or time > NOW_US + AHEAD:
            account += Account(read=1, dead_lettered=1)
        else:
            reached = seen - DELAY
            seen = max(seen, time)
            if time - time % SIZE + SIZE <= reached:
                account += Account(read=1, late=1)
                continue
            messages.add(message)
            for own, keys_of_side in zip(sides, keys):
                own += [_Side(message, key, n, time, reached) for key in keys_of_side]
    counted, windows = set[int](), dict[tuple[int, int], list[int]]()

    def note(one: _Side | None, two: _Side | None) -> None:
        both = [row for row in (one, two) if row is not None]
        n, m = (0 if row is None else row.value for row in (one, two))
        if (n + m) % 7 == 0:
            return
        counted.update(row.message for row in both)
        time = max(row.time for row in both)
        start = time - time % SIZE
        if start + SIZE > max(row.reached for row in both):
            cell = windows.setdefault((start, start + SIZE), [0, 0, 0])
            for at, value in enumerate((1, n, m)):
                cell[at] += value

    for one in sides[0]:
        for two in sides[1]:
            if one.key is not None and one.key == two.key and abs(one.time - two.time) <= WITHIN:
                one.paired = two.paired = True
                note(one, two)
    for side in {"inner": (), "left": (0,), "outer": (0, 1)}[how]:
        for row in sides[side]:
            latest = row.time + WITHIN
            over = ended or latest - latest % SIZE + SIZE <= seen - DELAY
            if not row.paired and (row.key is None or over):
                note(*((row, None) if side == 0 else (None, row)))
    account += Account(len(messages), len(counted), len(messages) - len(counted))
    return Answer(account, {at: (cell[0], cell[1], cell[2]) for at, cell in windows.items()})


@pytest.mark.parametrize("how", ["inner", "left", "outer"])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, 9))])
def test_it_is_the_same_however_rows_are_read_and_wherever_workers_die(
    seed: int, how: Between, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(join_buffer, "_FEW", 4)
    rows = random_rows(40 + seed, 1_400)[0]
    worker, more = Worker([rows], joined(how), 300 + seed), 0
    while worker.left:
        worker.read(0, int(worker.random.integers(1, 40)))
        chance = worker.random.random()
        if chance < 0.3:
            worker.deliver()
        elif chance < 0.4:
            worker.begin()
        elif chance < 0.6:
            expected = answer(rows[: worker.progress[0].next_offset], how, ended=True)
            assert worker.ended() == expected
            more += expected.account.counted - worker.merger.state.account.counted
    wanted = answer(rows, how)
    assert worker.result() == wanted
    assert worker.ended() == answer(rows, how, ended=True)
    account = wanted.account
    assert account.balanced and min(account.counted, account.filtered, account.late) > 20
    assert worker.recalled > 100 and len(wanted.windows) > 15
    assert (more > 0) == (how != "inner")


def test_a_message_without_a_key_on_either_side_is_counted_once() -> None:
    rows = [{"id": None, "twin": None, "n": 1, "at": START_US}]
    tester = StreamTester(joined("outer"))
    assert tester.feed(rows) == Account(1, 1)
    # Two rows of the left, as it has two keys, and one of the right.
    assert tester.finish().windows().select("rows", "n", "m").rows() == [(3, 2, 1)]


def test_a_message_on_which_a_pair_fails_is_a_dead_letter_once() -> None:
    rows = Stream.from_kafka("orders", value=json({"id": pl.Int64, "at": pl.Int64}), time=pl.from_epoch("at"))
    pairs = rows.with_columns(n=pl.lit(1)).join(rows.with_columns(m=pl.lit(2)), on="id", within="30s")
    failing = pl.when(pl.col("id") == 13).then(pl.lit("x")).otherwise(pl.lit("1")).cast(pl.Int64)
    tester = StreamTester(pairs.with_columns(s=failing).tumbling("1m").agg(rows=count(), s=sum("s")))
    at = START_US // SECOND
    assert tester.feed([{"id": 13, "at": at}, {"id": 5, "at": at}]) == Account(2, 1, 0, 0, 1)
    assert [row.offset for row in tester.refused] == [0]
    assert tester.finish().windows()["rows"].to_list() == [1]


def test_too_many_rows_within_reach_end_the_run() -> None:
    tester = StreamTester(joined("inner", limit=10))
    with pytest.raises(TooManyRows, match=r"more than 10 rows of left\[0\] lie within within= of"):
        tester.feed([{"id": 1, "twin": None, "n": 5, "at": START_US}] * 11)
