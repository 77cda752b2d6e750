"""Rows that wait for partners are found by key and time, whatever was dropped since."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from streamgauge.operators.steps import join_buffer
from streamgauge.operators.steps.join_buffer import JoinBuffer, KeyedRows, keyed_rows

WITHIN = 10
SCHEMA = {"id": pl.Int64, "name": pl.String}


def came(ids: list[int | None], times: list[int], first: int) -> tuple[KeyedRows, np.ndarray]:
    frame = pl.DataFrame({"id": ids, "name": [f"row {first + at}" for at in range(len(ids))]}, schema=SCHEMA)
    offsets = np.arange(first, first + len(ids))
    return keyed_rows(frame, ["id"], np.array(times), np.full(len(ids), -1), offsets)


@pytest.mark.parametrize("pairs", [5, 1_000_000])
def test_partners_are_those_of_a_plain_search(pairs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join_buffer, "_FEW", 16)
    monkeypatch.setattr(join_buffer, "_PAIRS", pairs)
    random, rows, kept = np.random.default_rng(5), JoinBuffer(SCHEMA, WITHIN), list[tuple[int, int, str]]()
    reach, first, seen = -1, 0, 0
    for turn in range(200):
        ids = random.integers(0, 400, 30).tolist()
        times = (turn + random.integers(-8, 9, 30)).tolist()
        result, _ = came(ids, times, first)
        wanted = [
            (at, name)
            for at, (key, time) in enumerate(zip(ids, times))
            for other, moment, name in kept
            if other == key and abs(moment - time) <= WITHIN
        ]
        given, at = list[tuple[int, str]](), 0
        for low, high, mine, theirs in rows.partners(result):
            assert low == at and high > low
            names = rows.gather(theirs)["name"].to_list()
            given += zip((low + mine).tolist(), names)
            at = high
        assert at == 30 and [(at, name) for at, name in given if (at, name) in set(wanted)] == wanted
        assert len(given) >= len(wanted)  # rows out of reach may still be there
        rows.append(result)
        kept += zip(ids, times, result.frame["name"])
        first, reach, seen = first + 30, turn - 40, max(seen, len(rows))
        assert rows.forget(reach, 10_000)
        kept = [row for row in kept if row[1] > reach]
        assert len(kept) <= len(rows) <= 2.2 * len(kept) + 16 + 30
    assert seen < 3_000 and rows.size > 0


def test_a_null_is_no_key() -> None:
    result, known = came([1, None, 2], [0, 0, 0], 0)
    assert known.tolist() == [True, False, True]
    assert result.keep(known).frame["id"].to_list() == [1, 2]


def test_messages_are_counted_once_whichever_of_their_rows_decides() -> None:
    rows = JoinBuffer(SCHEMA, WITHIN)
    result, _ = came([1, 2, 3, 4], [0, 0, 0, 0], 0)
    rows.append(result._replace(offsets=np.array([5, 5, 8, 9])))
    assert rows.mark_counted(np.array([5, 7, 9])).tolist() == [True, True, True]
    assert rows.mark_counted(np.array([5, 8, 9, 10])).tolist() == [False, True, False, True]
    assert [rows.is_counted(offset) for offset in (5, 6, 8, 11)] == [True, False, True, False]


def test_rows_that_can_not_be_dropped_are_too_many_beyond_the_limit() -> None:
    rows = JoinBuffer(SCHEMA, WITHIN)
    rows.append(came([1, 2, 3], [0, 5, 9], 0)[0])
    assert rows.forget(-1, 3) and not rows.forget(-1, 2) and len(rows) == 3
    assert rows.forget(4, 2) and rows.gather(np.arange(2))["id"].to_list() == [2, 3]
