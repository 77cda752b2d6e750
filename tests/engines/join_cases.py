"""Two streams of a few rows, and what comes of joining them: written down by hand, or paired one by one.

Nothing here is shared with the engines. Most cases are restated from Kafka Streams' tests of joins of two
streams (inner, left and outer), ksqlDB's and Flink's of interval joins: the edges of what is near enough,
null keys, rows that come again, out of order or too late, tombstones, messages that can't be read.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

WITHIN, SIZE, DELAY = 10, 10, 5
"""Seconds, of all streams here: how far apart rows pair, how long windows are, when they close."""
DAY = 1_767_225_600
"""A day's first second, from which times are counted."""
TOMBSTONE, BROKEN = None, "broken"

Row = tuple[int, str | None] | str | None
"""The second and the key of a row; or a message without a value, or one that can't be read."""


@dataclass(frozen=True)
class JoinCase:
    """Both sides' rows in the order in which they came; by the first second of a window what must be there.

    That is the pairs, and the rows of the left and of the right without a partner.
    """

    name: str
    left: tuple[Row, ...] = ()
    right: tuple[Row, ...] = ()
    pairs: Mapping[int, int] = field(default_factory=dict)
    lone_left: Mapping[int, int] = field(default_factory=dict)
    lone_right: Mapping[int, int] = field(default_factory=dict)
    late: int = 0

    def windows(self, how: str) -> dict[int, tuple[int, int, int]]:
        """By window the rows of a join, and how many of them have a left and a right side."""
        left = self.lone_left if how != "inner" else {}
        right = self.lone_right if how == "outer" else {}
        counts = {
            at: (self.pairs.get(at, 0), left.get(at, 0), right.get(at, 0))
            for at in {*self.pairs, *left, *right}
        }
        return {at: (p + one + two, p + one, p + two) for at, (p, one, two) in counts.items()}

    def filtered(self, how: str) -> int:
        """The messages that give nothing, and are neither late nor unreadable."""
        left = sum(self.lone_left.values()) if how == "inner" else 0
        right = sum(self.lone_right.values()) if how != "outer" else 0
        return left + right + [*self.left, *self.right].count(TOMBSTONE)


def a(*seconds: int) -> tuple[Row, ...]:
    """Rows of the key "a"."""
    return tuple((second, "a") for second in seconds)


def _many(seed: int, n: int) -> JoinCase:
    """Rows at random, some late, some without a key; paired each with each."""
    draw = random.Random(seed)
    sides = [
        [
            (second - draw.choice((0, 0, 1, 4, 40)), draw.choice((None, *"abcdef")))
            for second in sorted(draw.randrange(50, 400) for _ in range(n))
        ]
        for _ in range(2)
    ]
    on_time = [list(_on_time(side)) for side in sides]
    pairs, alone = Counter[int](), [Counter[int](), Counter[int]()]
    lone = [[True] * len(side) for side in on_time]
    for i, (one, key, reached) in enumerate(on_time[0]):
        for j, (two, other, other_reached) in enumerate(on_time[1]):
            if key is not None and key == other and abs(one - two) <= WITHIN:
                lone[0][i] = lone[1][j] = False
                start = max(one, two) // SIZE * SIZE
                if start + SIZE > max(reached, other_reached):
                    pairs[start] += 1
    for counts, side, kept in zip(alone, on_time, lone):
        counts.update(second // SIZE * SIZE for (second, _, _), left in zip(side, kept) if left)
    late = sum(map(len, sides)) - sum(map(len, on_time))
    return JoinCase(f"many {seed}", tuple(sides[0]), tuple(sides[1]), pairs, *alone, late)


def _on_time(side: list[tuple[int, str | None]]) -> Iterator[tuple[int, str | None, int]]:
    """The rows that are not late, each with the watermark before it."""
    watermark = -1_000
    for second, key in side:
        if second // SIZE * SIZE + SIZE > watermark:
            yield second, key, watermark
        watermark = max(watermark, second - DELAY)


CASES = (
    JoinCase("a pair", a(1), a(3), {0: 1}),
    JoinCase("the right comes first", a(9), a(2), {0: 1}),
    JoinCase("at the same moment", a(4), a(4), {0: 1}),
    JoinCase("as far apart as pairs may be", a(1), a(11), {10: 1}),
    JoinCase("as far apart, the right first", a(12), a(2), {10: 1}),
    JoinCase("a second too far apart", a(1), a(12), {}, {0: 1}, {10: 1}),
    JoinCase("a second too far, the right first", a(13), a(2), {}, {10: 1}, {0: 1}),
    JoinCase("the later time decides of the window", a(8), a(13), {10: 1}),
    JoinCase("other keys", a(1), ((1, "b"),), {}, {0: 1}, {0: 1}),
    JoinCase("an empty key is a key", ((1, ""),), ((2, ""),), {0: 1}),
    JoinCase("null keys meet nobody", ((1, None),), ((1, None),), {}, {0: 1}, {0: 1}),
    JoinCase("each with each", a(1, 2), a(3, 4), {0: 4}),
    JoinCase("a row that comes twice", a(1, 1), a(2), {0: 2}),
    JoinCase("one between two", a(10), a(0, 20), {10: 1, 20: 1}),
    JoinCase("one of two finds none", (*a(1), (1, "b")), ((2, "b"),), {0: 1}, {0: 1}),
    JoinCase("only left", (*a(1), (2, "b")), (), {}, {0: 2}),
    JoinCase("only right", (), a(1, 15), {}, {}, {0: 1, 10: 1}),
    JoinCase("out of order, on time", a(12, 8), a(9), {10: 1, 0: 1}),
    JoinCase("late on the left", a(21, 3), a(4), {}, {20: 1}, {0: 1}, 1),
    JoinCase("late on the right", a(3), a(30, 4), {}, {0: 1}, {30: 1}, 1),
    JoinCase("on the last moment", a(14, 9), a(8), {10: 1, 0: 1}),
    JoinCase("late by nothing", a(15, 9), a(8), {10: 1}, {}, {}, 1),
    JoinCase(
        "one that waited finds a late partner's neighbour", a(5), a(22, 16, 15), {10: 1}, {}, {20: 1, 10: 1}
    ),
    JoinCase("a tombstone is no row", (TOMBSTONE, *a(1)), (*a(2), TOMBSTONE), {0: 1}),
    JoinCase("what can't be read", (BROKEN, *a(1)), (BROKEN, *a(40)), {}, {0: 1}, {40: 1}),
    JoinCase("nothing but tombstones", (TOMBSTONE, TOMBSTONE), (), {}),
    _many(1, 120),
    _many(2, 150),
)

Update = tuple[str, str | None]
"""A key of a table and its city; the key's row is deleted for `TOMBSTONE`, and can't be read for `BROKEN`."""


@dataclass(frozen=True)
class TableCase:
    """A table's updates and the keys of rows that come after them, then more of both.

    `cities` are those that the rows find, null where they find none.
    """

    name: str
    updates: tuple[Update, ...]
    keys: tuple[str | None, ...]
    cities: Mapping[str | None, int]
    later_updates: tuple[Update, ...] = ()
    later_keys: tuple[str | None, ...] = ()


TABLE_CASES = (
    TableCase("a key's row", (("a", "Oslo"),), ("a", "a"), {"Oslo": 2}),
    TableCase("a key that isn't there", (("a", "Oslo"),), ("b",), {None: 1}),
    TableCase("a null key", (("a", "Oslo"),), (None, "a"), {None: 1, "Oslo": 1}),
    TableCase("an empty key", (("", "Oslo"),), ("",), {"Oslo": 1}),
    TableCase("the latest row", (("a", "Oslo"), ("a", "Turku")), ("a",), {"Turku": 1}),
    TableCase("a tombstone", (("a", "Oslo"), ("a", TOMBSTONE)), ("a",), {None: 1}),
    TableCase("a tombstone of nothing", (("a", TOMBSTONE),), ("a",), {None: 1}),
    TableCase("after a tombstone", (("a", "Oslo"), ("a", TOMBSTONE), ("a", "Lund")), ("a",), {"Lund": 1}),
    TableCase("a row that can't be read", (("a", "Oslo"), ("a", BROKEN)), ("a",), {None: 1}),
    TableCase("two keys", (("a", "Oslo"), ("b", "Lund")), ("b", "a", "b"), {"Oslo": 1, "Lund": 2}),
    TableCase(
        "a row that changes", (("a", "Oslo"),), ("a", "a"), {"Oslo": 2, "Lund": 1}, (("a", "Lund"),), ("a",)
    ),
    TableCase(
        "a row that goes", (("a", "Oslo"),), ("a",), {"Oslo": 1, None: 2}, (("a", TOMBSTONE),), ("a", "a")
    ),
    TableCase("a row that comes", (), ("a",), {None: 1, "Oslo": 1}, (("a", "Oslo"),), ("a",)),
    TableCase("a row that stays", (("a", "Oslo"),), ("a",), {"Oslo": 2}, (("b", "Lund"),), ("a",)),
)
