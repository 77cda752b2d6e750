"""Which ids were there before: against a list of all rows, while the table grows and forgets."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.operators.definition.deduplication import TooManyIds
from streamgauge.operators.steps.id_index import IdIndex

WITHIN = 50


@pytest.mark.parametrize("seed", range(6))
def test_it_is_what_all_rows_before_say_while_the_table_grows_and_forgets(seed: int) -> None:
    random = np.random.default_rng(seed)
    n, ids = 3_000, [5, 60, 1_000][seed % 3]
    times = np.arange(n) + random.integers(-40, 40, n) - 100 * (random.random(n) < 0.02)
    names = [None if random.random() < 0.05 else f"id{random.integers(0, ids)}" for _ in range(n)]
    kinds = random.integers(0, 2, n)
    seen, before = IdIndex(WITHIN), dict[tuple[str, int], list[int]]()
    low, replays = 0, []
    while low < n:
        high = min(n, low + int(random.integers(1, 300)))
        rows = slice(low, high)
        columns = [pa.array(names[rows], pa.string()), pa.array(kinds[rows])]
        horizon = int(times[:high].max()) - 150  # no row lies further back than 140
        result = seen.mark(columns, times[rows], np.arange(low, high)).tolist()
        for row, duplicate in zip(range(low, high), result):
            known = before.setdefault((names[row] or "", int(kinds[row])), [])
            close = any(abs(times[row] - other) < WITHIN for other in known)
            assert duplicate == (names[row] is not None and close)
            known.append(int(times[row]))
        seen.forget_before(horizon)
        replay = seen.replay_from(high)
        in_reach = [r for r in range(high) if names[r] is not None and times[r] + WITHIN > horizon]
        assert replay <= min(in_reach, default=high) and high - replay < 300
        replays.append(replay)
        low = high
    assert replays == sorted(replays) and replays[-1] > 2_000
    assert len(seen) < 1_100


def test_an_id_that_never_pauses_is_one_stretch_and_times_in_any_order_meet() -> None:
    seen = IdIndex(10)

    def duplicates(*times: int) -> list[bool]:
        return seen.mark([pa.array(["a"] * len(times))], np.array(times), np.arange(len(times))).tolist()

    assert duplicates(0, 9, 18, 27) == [False, True, True, True]
    assert duplicates(37, 17, -10, -9) == [False, True, False, True]
    assert duplicates(28, 60, 50, 41) == [True, False, False, True]
    assert len(seen) == 5


def test_more_ids_than_may_be_held_are_an_error_and_those_out_of_reach_are_none_of_them() -> None:
    seen = IdIndex(10, limit=500)
    for start in range(0, 3_000, 300):
        times = np.arange(start, start + 300)
        seen.mark([pa.array(times)], times, times)
        seen.forget_before(start + 200)
    with pytest.raises(TooManyIds, match="a partition has 509 ids within reach, the limit is 500"):
        seen.mark([pa.array(np.arange(400))], np.full(400, 3_000), np.arange(400))


def test_rows_of_an_unbelievable_time_are_neither_judged_nor_noted() -> None:
    seen = IdIndex(10)
    names, times, believed = (
        pa.array(["a", "a", "b"]),
        np.array([5, 6, 1 << 60]),
        np.array([False, True, False]),
    )
    assert seen.mark([names], times, np.arange(3), believed).tolist() == [False, False, False]
    assert seen.replay_from(3) == 1
