"""What belongs together: stretches joined at once, by parts and in any order, against row by row."""

from __future__ import annotations

import numpy as np
import pytest

from streamgauge.operators.sketching.session_rows import Stretches

GAP = 7


def rows(seed: int, n: int = 300) -> Stretches:
    """Rows of a few owners; before some of them their partition was far ahead, but not past their end."""
    random = np.random.default_rng(seed)
    times = random.integers(-400, 400, n)
    reached = np.where(random.random(n) < 0.4, times + random.integers(-20, GAP, n), times - 50)
    return Stretches.of_rows(random.integers(0, 3, n), times, reached)


def one_by_one(stretches: Stretches) -> set[tuple[int, int, int, int]]:
    """Owner, first and last time, and barrier of what belongs together, by the rule for two rows."""
    result = [{at} for at in range(len(stretches))]
    own, times, barrier = stretches.owner, stretches.first, stretches.barrier
    for later in range(len(own)):
        for earlier in range(len(own)):
            together = own[later] == own[earlier] and times[earlier] <= times[later]
            if together and times[earlier] + GAP >= barrier[later] and result[later] is not result[earlier]:
                result[later] |= result[earlier]
                for at in result[later]:
                    result[at] = result[later]
    return {
        (int(own[min(part)]), *(int(x) for x in (times[list(part)].min(), times[list(part)].max())),
         int(barrier[list(part)].min()))
        for part in result
    }  # fmt: skip


def plain(stretches: Stretches) -> set[tuple[int, int, int, int]]:
    columns = (stretches.owner, stretches.first, stretches.last, stretches.barrier)
    return set(zip(*(column.tolist() for column in columns)))


@pytest.mark.parametrize("seed", range(5))
def test_stretches_joined_in_any_cut_and_order_are_those_of_the_rows(seed: int) -> None:
    everything, random = rows(seed), np.random.default_rng(seed)
    wanted = one_by_one(everything)
    whole, part = everything.joined(GAP)
    assert plain(whole) == wanted and len(whole) == len(wanted)
    assert (whole.first[part] <= everything.first).all() and (everything.first <= whole.last[part]).all()
    order = random.permutation(len(everything))
    together = Stretches.none()
    for some in np.array_split(order, 9):
        columns = (everything.owner, everything.first, everything.last, everything.barrier)
        together += Stretches(*(column[some] for column in columns)).joined(GAP)[0]
        if random.random() < 0.3:
            together = together.joined(GAP)[0]
    assert plain(together.joined(GAP)[0]) == wanted


def test_nothing_is_joined_to_nothing() -> None:
    result, part = Stretches.none().joined(GAP)
    assert len(result) == len(part) == 0


def test_a_row_that_comes_after_its_session_has_ended_begins_another() -> None:
    times, reached = np.array([0, 5]), np.array([-100, 7])
    assert plain(Stretches.of_rows(np.zeros(2, int), times, reached).joined(GAP)[0]) == {
        (0, 0, 0, 0),
        (0, 5, 5, 8),
    }
    assert len(Stretches.of_rows(np.zeros(2, int), times, reached - 1).joined(GAP)[0]) == 1
