"""Streams of rows that come more than once, and how many must count: written down, or looked up one by one.

Nothing here is shared with the engines. Most cases are restated from Flink's deduplication by key and from
ksqlDB's and Kafka Streams' ways to find repeated events within a stretch of time.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

SIZE, WITHIN, LAST = 30, 10, 2
"""Seconds of a window, and within which a row is compared; messages with which one is compared instead."""
STEP_US = WITHIN * 1_000_000 // 128
"""What a filter can't tell apart: it finds an id for up to so much longer."""
DAY = 1_767_225_600

Row = tuple[float, str | None]
"""The second and the id of a row."""


@dataclass(frozen=True)
class DuplicateCase:
    """Rows by partition, and how many count by the first second of their window."""

    name: str
    partitions: tuple[tuple[Row, ...], ...]
    counted: Mapping[int, int]


def a(*seconds: float) -> tuple[Row, ...]:
    """Rows of the id "a"."""
    return tuple((second, "a") for second in seconds)


def many() -> tuple[tuple[Row, ...], ...]:
    """Three partitions of rows that fall back in time, but not so far that one is late."""
    draw = random.Random(11)
    partitions: list[list[Row]] = [[], [], []]
    for number in range(300):
        second = round(60 + 0.5 * number - draw.choice((0, 0, 3)), 3)
        partitions[number % 3].append((second, draw.choice([None, *"abcdefghijkl"])))
    return tuple(map(tuple, partitions))


def many_within() -> DuplicateCase:
    counted: Counter[int] = Counter()
    for rows in many():
        for at, (second, name) in enumerate(rows):
            before = [other for other, one in rows[:at] if one == name is not None]
            counted[int(second // SIZE * SIZE)] += not any(abs(second - one) < WITHIN for one in before)
    return DuplicateCase("many rows", many(), counted)


def many_filtered() -> DuplicateCase:
    """No row is so far behind that a later one of its id would be found that is out of its reach."""
    counted: Counter[int] = Counter()
    for rows in many():
        steps = [round((DAY + second) * 1e6) // STEP_US for second, _ in rows]
        for at, (second, name) in enumerate(rows):
            first = (round((DAY + second - WITHIN) * 1e6) + 1) // STEP_US
            near = [one for one, (_, other) in zip(steps[:at], rows) if other == name is not None]
            counted[int(second // SIZE * SIZE)] += not any(one >= first for one in near)
    return DuplicateCase("many rows", many(), counted)


def many_last() -> DuplicateCase:
    counted: Counter[int] = Counter()
    for rows in many():
        for at, (second, name) in enumerate(rows):
            before = [one for _, one in rows[max(at - LAST, 0) : at]]
            counted[int(second // SIZE * SIZE)] += name is None or name not in before
    return DuplicateCase("many rows", many(), counted)


CASES: dict[str, tuple[DuplicateCase, ...]] = {
    "within": (
        DuplicateCase("a row that comes again", (a(1, 2),), {0: 1}),
        DuplicateCase("at the same moment", (a(4, 4, 4),), {0: 1}),
        DuplicateCase("as far away as it must be", (a(1, 11),), {0: 2}),
        DuplicateCase("a little nearer", (a(1, 10.999),), {0: 1}),
        DuplicateCase("one that keeps coming counts once", (a(1, 8, 15, 22),), {0: 1}),
        DuplicateCase("and again after a pause", (a(1, 8, 18),), {0: 2}),
        DuplicateCase("out of order the first to come counts", (a(33, 29),), {30: 1}),
        DuplicateCase("on both sides of a border", (a(29, 31),), {0: 1}),
        DuplicateCase("another id between", (((1, "a"), (2, "b"), (3, "a")),), {0: 2}),
        DuplicateCase("rows without an id all count", (((1, None), (2, None)),), {0: 2}),
        DuplicateCase("an empty id is an id", (((1, ""), (2, "")),), {0: 1}),
        DuplicateCase("each partition by itself", (a(1), a(2)), {0: 2}),
        many_within(),
    ),
    "filter": (
        DuplicateCase("a row that comes again", (a(1, 2),), {0: 1}),
        DuplicateCase("at the same moment", (a(4, 4, 4),), {0: 1}),
        DuplicateCase("farther away than it must be", (a(1, 11.1),), {0: 2}),
        DuplicateCase("a little nearer", (a(1, 10.999),), {0: 1}),
        DuplicateCase("one that keeps coming counts once", (a(1, 8, 15, 22),), {0: 1}),
        DuplicateCase("and again after a pause", (a(1, 8, 18.1),), {0: 2}),
        DuplicateCase("out of order the first to come counts", (a(33, 29),), {30: 1}),
        DuplicateCase("on both sides of a border", (a(29, 31),), {0: 1}),
        DuplicateCase("another id between", (((1, "a"), (2, "b"), (3, "a")),), {0: 2}),
        DuplicateCase("rows without an id all count", (((1, None), (2, None)),), {0: 2}),
        DuplicateCase("each partition by itself", (a(1), a(2)), {0: 2}),
        many_filtered(),
    ),
    "last": (
        DuplicateCase("the message before", (a(1, 2),), {0: 1}),
        DuplicateCase("the one before that", (((1, "a"), (2, "b"), (3, "a")),), {0: 2}),
        DuplicateCase("further back than that", (((1, "a"), (2, "b"), (3, "c"), (4, "a")),), {0: 4}),
        DuplicateCase("however long ago", (a(1, 61),), {0: 1}),
        DuplicateCase("one that keeps coming counts once", (a(1, 2, 3, 4),), {0: 1}),
        DuplicateCase("rows without an id all count", (((1, None), (2, None)),), {0: 2}),
        DuplicateCase("each partition by itself", (a(1), a(2)), {0: 2}),
        many_last(),
    ),
}
"""By what a row is compared with: those within a stretch of event time, exactly or by a filter, or the last
messages."""
