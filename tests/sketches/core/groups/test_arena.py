"""Regions that grow, move and are brought together keep what is in them."""

import numpy as np

from streamgauge.sketches.core.compilation.jit import lean
from streamgauge.sketches.core.groups.arena import allocate, new_extent, packed, with_rows
from streamgauge.sketches.core.resume import DONE, NO_ROOM, resume


@lean
def push(places, twins, extent, start, size, room, groups, values, at):  # type: ignore[no-untyped-def]
    """Append values to their groups' regions, which double; a model of what the families do."""
    for i in range(at, len(groups)):
        g = groups[i]
        if size[g] == room[g]:
            larger = max(np.int64(1), 2 * room[g])
            to = allocate(extent, larger, len(places))
            if to < 0:
                return i, NO_ROOM
            for j in range(size[g]):
                places[to + j], twins[to + j] = places[start[g] + j], twins[start[g] + j]
            start[g], room[g] = to, larger
        places[start[g] + size[g]], twins[start[g] + size[g]] = values[i], -values[i]
        size[g] += 1
    return len(groups), DONE


class Lists:
    """Lists of numbers by group, and of their negatives in an array of another type."""

    def __init__(self, n: int) -> None:
        self.arrays = np.empty(0, np.int64), np.empty(0, np.float32)
        self.extent = new_extent()
        self.start, self.size, self.room = (np.zeros(n, np.int64) for _ in range(3))
        self.enlarged = 0

    def enlarge(self, why: int) -> None:
        assert why == NO_ROOM
        self.enlarged += 1
        self.arrays = packed(self.arrays, self.extent, self.start, self.room)

    def push(self, groups: np.ndarray, values: np.ndarray) -> None:
        def step(at: int) -> tuple[int, int]:
            return push(*self.arrays, self.extent, self.start, self.size, self.room, groups, values, at)

        assert resume(step, self.enlarge) == (len(groups), DONE)

    def of(self, g: int) -> tuple[list[int], list[float]]:
        first, second = (a[self.start[g] :][: self.size[g]].tolist() for a in self.arrays)
        return first, second


def test_regions_keep_what_is_in_them():
    rng = np.random.default_rng(8)
    lists, expected = Lists(50), [[] for _ in range(50)]
    for _ in range(20):
        groups = rng.integers(0, 50, 500) ** 2 // 50  # some groups much larger than others
        values = rng.integers(0, 1 << 20, 500)
        lists.push(groups, values)
        for g, value in zip(groups.tolist(), values.tolist()):
            expected[g].append(value)
    assert [lists.of(g)[0] for g in range(50)] == expected
    assert [lists.of(g)[1] for g in range(50)] == [[-float(x) for x in own] for own in expected]


def test_what_is_moved_is_a_share_of_what_there_is():
    """At most a few enlargements for each doubling, and at most twice the regions' places are held."""
    lists = Lists(1000)
    for _ in range(200):
        lists.push(np.arange(1000), np.arange(1000))
    assert lists.enlarged < 3 * np.log2(200 * 1000)
    assert len(lists.arrays[0]) <= 4 * int(lists.room.sum())


def test_a_region_larger_than_all_there_is_finds_room():
    extent, start, size = new_extent(), np.zeros(1, np.int64), np.zeros(1, np.int64)
    extent["wanted"] = 1000
    (places,) = packed((np.empty(0),), extent, start, size)
    assert len(places) >= 1000 and extent["used"][0] == 0 and extent["wanted"][0] == 0


def test_starts_may_be_a_column_of_records():
    rows = np.zeros(2, [("start", np.int64), ("lg", np.uint8)])
    rows["start"], rows["lg"] = [3, 1], [1, 0]
    extent = new_extent()
    (places,) = packed((np.arange(5),), extent, rows["start"], 1 << rows["lg"].astype(np.int64))
    assert places[: extent["used"][0]].tolist() == [3, 4, 1] and rows["start"].tolist() == [0, 2]


def test_rows_are_numbered_as_they_are_made():
    rows = np.empty(0, np.int64)
    for n in range(1, 40):
        rows = with_rows(rows, n, np.arange)
        assert len(rows) >= n
    assert rows.tolist() == list(range(len(rows)))
