"""Streams of a few rows, and what their windows must hold: written down by hand, or counted one by one.

Nothing here is shared with the engines. Borders, late rows and rows out of order are restated from Kafka
Streams' tests of time windows and from Flink's of HOP and CUMULATE.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from streamgauge.operators.definition.stream import Stream

from ..oracles.local_days import OnCalendar

DELAY = 5
"""Seconds, of all streams here."""
COUNT = 3
"""Rows of a window by count."""
DAY = 1_767_225_600
"""A day's first second, from which times are counted."""

Rows = tuple[tuple[float, str | None], ...]
"""A partition's rows in the order in which they came: the second and the key of each."""
Windows = Callable[[float], Iterator[tuple[int, int]]]
"""The first second of each window that holds a time, and the one that it ends before."""
Counted = Mapping[tuple[str | None, float, float], int]
"""Rows by key and window."""


@dataclass(frozen=True)
class Case:
    """Rows by partition, and how many of them are in each window; `late` ones are in none."""

    name: str
    partitions: tuple[Rows, ...]
    counted: Counted
    late: int = 0
    origin: int = DAY


def rows(*seconds: float | tuple[float, str | None]) -> Rows:
    """A partition's rows, of the key "a" unless they name one."""
    return tuple(row if isinstance(row, tuple) else (row, "a") for row in seconds)


def a(windows: Mapping[tuple[float, float], int]) -> Counted:
    """Rows of the key "a" by window."""
    return {("a", *window): n for window, n in windows.items()}


def hopping(size: int, every: int) -> Windows:
    def windows(time: float) -> Iterator[tuple[int, int]]:
        start = int(time // every) * every
        while start + size > time:
            yield start, start + size
            start -= every

    return windows


def cumulating(size: int, every: int) -> Windows:
    def windows(time: float) -> Iterator[tuple[int, int]]:
        start = int(time // size) * size
        return ((start, end) for end in range(start + every, start + size + 1, every) if end > time)

    return windows


def on_calendar(windows: OnCalendar, origin: int) -> Windows:
    """Windows as plain Python knows them, in seconds from an origin."""

    def of(time: float) -> Iterator[tuple[int, int]]:
        around = windows.windows_of(datetime.fromtimestamp(origin + time, UTC))
        return ((int(start.timestamp()) - origin, int(end.timestamp()) - origin) for start, end in around)

    return of


def drawn_rows(step: float, back_share: float, times: int = 1) -> list[Rows]:
    """Three partitions whose times go on and fall back."""
    draw = random.Random(7)
    partitions: list[list[tuple[float, str | None]]] = [[], [], []]
    for number in range(360):
        back = draw.expovariate(0.1) if draw.random() < back_share else 0.0
        partitions[number % 3].append((round(60 + (step * number - back) * times, 3), draw.choice("abc")))
    return [tuple(partition) for partition in partitions]


def reaching(partition: Rows) -> Iterator[tuple[float, str | None, float]]:
    """A partition's rows, each with the watermark before it."""
    latest = float("-inf")
    for time, key in partition:
        yield time, key, latest - DELAY
        latest = max(latest, time)


def drawn(windows: Windows, origin: int = DAY, times: int = 1) -> Case:
    """Rows whose times go on and fall back, so that some are late for all or some of their windows."""
    partitions = drawn_rows(0.7, 0.3, times)
    counted: Counter[tuple[str | None, int, int]] = Counter()
    late = 0
    for partition in partitions:
        for time, key, reached in reaching(partition):
            counting = [window for window in windows(time) if window[1] > reached]
            counted.update((key, *window) for window in counting)
            late += not counting
    return Case(MANY, tuple(partitions), counted, late, origin)


def drawn_sliding(size: int, step: int) -> Case:
    partitions = drawn_rows(0.7, 0.3)
    counted: Counter[tuple[str | None, int, int]] = Counter()
    ending: set[tuple[str | None, int, int]] = set()
    late = 0
    for time, key, reached in (row for partition in partitions for row in reaching(partition)):
        first = int(time // step) * step + step
        windows = [(key, end - size, end) for end in range(first, first + size, step) if end > reached]
        counted.update(windows)
        ending.update((key, start, end) for _, start, end in windows if end == first)
        late += not windows
    return Case(MANY, tuple(partitions), {window: counted[window] for window in ending}, late)


def drawn_sessions(gap: int, together: bool = False) -> Case:
    """Any two that meet are put together, until none do: of each key, or `together` of all rows."""
    partitions = drawn_rows(5.0 if together else 2.5, 0.3)
    counted: dict[tuple[str | None, float, float], int] = {}
    late = 0
    pieces: dict[str | None, list[tuple[float, float, float, Counter[str | None]]]] = {}
    for time, key, reached in (row for partition in partitions for row in reaching(partition)):
        if time + gap <= reached:
            late += 1
            continue
        first, last, barrier, n = time, time, max(time, round(reached + 0.001, 3)), Counter([key])
        others = pieces.setdefault(None if together else key, [])
        while True:
            mine = (first, last, barrier)
            met = [other for other in others if meet(mine, other[:3], gap)]
            if not met:
                break
            others[:] = [other for other in others if other not in met]
            first = min(first, *(other[0] for other in met))
            last = max(last, *(other[1] for other in met))
            barrier = min(barrier, *(other[2] for other in met))
            n += sum((other[3] for other in met), Counter())
        others.append((first, last, barrier, n))
    for first, last, _, n in (session for sessions in pieces.values() for session in sessions):
        counted |= {(key, first, round(last + gap, 3)): count for key, count in n.items()}
    return Case(MANY, tuple(partitions), counted, late)


def meet(one: tuple[float, float, float], other: tuple[float, float, float], gap: int) -> bool:
    """Whether rows from a first to a last time, and a barrier, are of one session with others."""
    (_, last, _), (later, _, barrier) = sorted((one, other))
    return later <= last or round(last + gap, 3) >= barrier


MANY = "many rows out of order"
FURTHER = "a partition that is further makes no row of another one late"
LATE = "a row whose last window has passed is late"
SOME = "a row that is late for some of its windows counts in the others"
ORDER = "rows out of order"

TUMBLING = (
    Case("at a border", (rows(29.999, 30),), a({(0, 30): 1, (30, 60): 1})),
    Case(ORDER, (rows(34, 27, 31),), a({(0, 30): 1, (30, 60): 2})),
    Case(LATE, (rows(34.999, 29, 35, 28),), a({(0, 30): 1, (30, 60): 2}), late=1),
    Case(FURTHER, (rows(95), rows(3, 1)), a({(0, 30): 2, (90, 120): 1})),
    Case("null is a key", (rows((1, None), (2, "b"), (3, None)),), {(None, 0, 30): 2, ("b", 0, 30): 1}),
)  # fmt: skip
HOPPING = (
    Case("a row is in all windows over it", (rows(12),), a({(-10, 20): 1, (0, 30): 1, (10, 40): 1})),
    Case("at a border", (rows(9.999, 10),), a({(-20, 10): 1, (-10, 20): 2, (0, 30): 2, (10, 40): 1})),
    Case("before 1970", (rows(5),), a({(-20, 10): 1, (-10, 20): 1, (0, 30): 1}), origin=0),
    Case(ORDER, (rows(25, 22, 31),), a({(0, 30): 2, (10, 40): 3, (20, 50): 3, (30, 60): 1})),
    Case(SOME, (rows(40, 12),), a({(10, 40): 1, (20, 50): 1, (30, 60): 1, (40, 70): 1})),
    Case(LATE, (rows(40, 2),), a({(20, 50): 1, (30, 60): 1, (40, 70): 1}), late=1),
    Case("at the watermark", (rows(35, 1, 10),), a({(10, 40): 2, (20, 50): 1, (30, 60): 1}), late=1),
    Case(
        FURTHER,
        (rows(100), rows(3, 1)),
        a({(-20, 10): 2, (-10, 20): 2, (0, 30): 2, (80, 110): 1, (90, 120): 1, (100, 130): 1}),
    ),
    Case(
        "null is a key",
        (rows((1, None), (12, None)),),
        {(None, -20, 10): 1, (None, -10, 20): 2, (None, 0, 30): 2, (None, 10, 40): 1},
    ),
)  # fmt: skip
UNEVEN = (
    Case("in three windows or in two", (rows(2, 7),), a({(-20, 5): 1, (-10, 15): 2, (0, 25): 2})),
    Case(SOME, (rows(22, 7),), a({(0, 25): 2, (10, 35): 1, (20, 45): 1})),
)
CUMULATING = (
    Case("each holds those before", (rows(1, 12, 23),), a({(0, 10): 1, (0, 20): 2, (0, 30): 3})),
    Case(
        "at a step and at the end",
        (rows(10, 30),),
        a({(0, 20): 1, (0, 30): 1, (30, 40): 1, (30, 50): 1, (30, 60): 1}),
    ),
    Case("in 1970", (rows(0),), a({(0, 10): 1, (0, 20): 1, (0, 30): 1}), origin=0),
    Case(ORDER, (rows(24, 22, 14),), a({(0, 20): 1, (0, 30): 3})),
    Case(SOME, (rows(24, 3),), a({(0, 20): 1, (0, 30): 2})),
    Case(LATE, (rows(35, 29),), a({(30, 40): 1, (30, 50): 1, (30, 60): 1}), late=1),
    Case(FURTHER, (rows(95), rows(25, 21)), a({(0, 30): 2, (90, 100): 1, (90, 110): 1, (90, 120): 1})),
    Case("null is a key", (rows((21, None), (22, "b")),), {(None, 0, 30): 1, ("b", 0, 30): 1}),
)  # fmt: skip


SLIDING = (
    Case("each step with a row ends one", (rows(12, 25),), a({(-10, 20): 1, (0, 30): 2})),
    Case("at a border", (rows(9.999, 10),), a({(-20, 10): 1, (-10, 20): 2})),
    Case(
        "none ends where the group has no row",
        (rows((1, "a"), (21, "b")),),
        {("a", -20, 10): 1, ("b", 0, 30): 1},
    ),
    Case(ORDER, (rows(25, 22, 31, 18),), a({(0, 30): 3, (10, 40): 4})),
    Case(
        "a row that is late for its own window counts in later ones",
        (rows(45, 27, 51),),
        a({(20, 50): 2, (30, 60): 2}),
    ),
    Case(LATE, (rows(45, 2, 51),), a({(20, 50): 1, (30, 60): 2}), late=1),
    Case(FURTHER, (rows(100), rows(3, 1)), a({(-20, 10): 2, (80, 110): 1})),
    Case("null is a key", (rows((1, None), (12, None)),), {(None, -20, 10): 1, (None, -10, 20): 2}),
)
SESSIONS = (
    Case("at most the gap apart", (rows(1, 10.999, 20),), a({(1, 30): 3})),
    Case("a pause of exactly the gap doesn't end it", (rows(1, 11),), a({(1, 21): 2})),
    Case("and a longer one does", (rows(1, 11.001),), a({(1, 11): 1, (11.001, 21.001): 1})),
    Case("one row joins two", (rows(1, 14, 9),), a({(1, 24): 3})),
    Case("a row before it moves its start", (rows(14, 9),), a({(9, 24): 2})),
    Case(
        "each key has its own",
        (rows((1, "a"), (8, "b"), (12, "a")),),
        {("a", 1, 11): 1, ("a", 12, 22): 1, ("b", 8, 18): 1},
    ),
    Case("two partitions have one together", (rows(1, 15), rows(8)), a({(1, 25): 3})),
    Case(LATE, (rows(1, 17, 2),), a({(1, 11): 1, (17, 27): 1}), late=1),
    Case(
        "one that has ended takes no more rows", (rows(1, 20, 8),), a({(1, 11): 1, (8, 18): 1, (20, 30): 1})
    ),
    Case("it ends with the watermark at its end", (rows(1, 16, 7),), a({(1, 11): 1, (7, 26): 2})),
    Case("and not a little before", (rows(1, 15.999, 7),), a({(1, 25.999): 3})),
    Case(FURTHER, (rows(100), rows(3, 1)), a({(1, 13): 2, (100, 110): 1})),
    Case("null is a key", (rows((1, None), (9, None)),), {(None, 1, 19): 2}),
    Case("in 1970", (rows(1, 5),), a({(1, 15): 2}), origin=0),
)

TOGETHER = (
    Case(
        "a session of all rows has a row for each key",
        (rows((1, "a"), (8, "b"), (12, "a"), (22, "b"), (33, "a")),),
        {("a", 1, 32): 2, ("b", 1, 32): 2, ("a", 33, 43): 1},
    ),
    Case("another key's row joins two", (rows((1, "a"), (14, "a"), (9, "b")),),
         {("a", 1, 24): 2, ("b", 1, 24): 1}),
    Case("two partitions have one together", (rows((1, "a"), (15, "b")), rows((8, None))),
         {("a", 1, 25): 1, ("b", 1, 25): 1, (None, 1, 25): 1}),
    Case(LATE, (rows((1, "a"), (17, "b"), (2, "b")),), {("a", 1, 11): 1, ("b", 17, 27): 1}, late=1),
)  # fmt: skip


COUNTING = (
    Case("so many rows, whenever they come", (rows(1, 900, 5, 7),), a({(1, 900): 3, (7, 7): 1})),
    Case(
        "each key has its own",
        (rows((1, "a"), (2, "b"), (3, "a"), (4, "b"), (5, "a")),),
        {("a", 1, 5): 3, ("b", 2, 4): 2},
    ),
    Case(
        "each partition has its own", (rows(1, 2, 3, 4), rows(11, 12)), a({(1, 3): 3, (4, 4): 1, (11, 12): 2})
    ),
    Case("none is late", (rows(500, 1, 2, 3),), a({(1, 500): 3, (3, 3): 1})),
    Case("null is a key", (rows((1, None), (2, None), (3, None)),), {(None, 1, 3): 3}),
)


def drawn_counts(size: int) -> Case:
    partitions = drawn_rows(0.7, 0.3)
    counted: Counter[tuple[str | None, float, float]] = Counter()
    for partition in partitions:
        for wanted in "abc":
            times = [time for time, key in partition if key == wanted]
            for window in (times[at : at + size] for at in range(0, len(times), size)):
                counted[wanted, min(window), max(window)] += len(window)
    return Case(MANY, tuple(partitions), counted)


HELSINKI = "Europe/Helsinki"
SPRING, AUTUMN = 1_774_735_200, 1_792_875_600
"""Midnight in Helsinki before clocks are put forward, on 2026-03-29, and back, on 2026-10-25."""
HOURS = 3_600
LOCAL_DAYS = (
    Case("a day of 23 hours", (rows(0, 23 * HOURS - 0.001, 23 * HOURS),),
         a({(0, 23 * HOURS): 2, (23 * HOURS, 47 * HOURS): 1}), origin=SPRING),
    Case("and one of 25", (rows(0, 24.5 * HOURS, 25 * HOURS),),
         a({(0, 25 * HOURS): 2, (25 * HOURS, 49 * HOURS): 1}), origin=AUTUMN),
    Case("late when the day of 23 hours is over", (rows(23 * HOURS + 4.999, 2, 23 * HOURS + 5, 3),),
         a({(0, 23 * HOURS): 1, (23 * HOURS, 47 * HOURS): 2}), late=1, origin=SPRING),
    Case("null is a key", (rows((1, None), (2, "b")),),
         {(None, 0, 25 * HOURS): 1, ("b", 0, 25 * HOURS): 1}, origin=AUTUMN),
)  # fmt: skip
NIGHTS = OnCalendar("hopping", "2d", "1d", "-6h", HELSINKI)
MONTHS = OnCalendar("cumulate", "1mo", "1d", None, HELSINKI)
MANY_DAYS = 2 * HOURS
"""Drawn rows are over three weeks, in which clocks are put forward, and a month begins."""


def windowed(kind: str, source: Stream) -> Stream:
    """A stream in windows of this kind."""
    more: dict[str, Any] = {"delay": f"{DELAY}s", "max_ahead": None}
    match kind:
        case "tumbling":
            return source.tumbling("30s", **more)
        case "hopping":
            return source.hopping("30s", every="10s", **more)
        case "uneven":
            return source.hopping("25s", every="10s", **more)
        case "sliding":
            return source.sliding("30s", step="10s", **more)
        case "session":
            return source.session("10s", **more)
        case "together":
            return source.session("10s", by=("case",), **more)
        case "count":
            return source.count_window(COUNT)
        case "days":
            return source.tumbling("1d", zone=HELSINKI, **more)
        case "nights":
            return source.hopping("2d", every="1d", offset="-6h", zone=HELSINKI, **more)
        case "months":
            return source.cumulate("1mo", every="1d", zone=HELSINKI, **more)
        case _:
            return source.cumulate("30s", every="10s", **more)


CASES: dict[str, tuple[Case, ...]] = {
    "tumbling": (*TUMBLING, drawn(hopping(30, 30))),
    "hopping": (*HOPPING, drawn(hopping(30, 10))),
    "uneven": (*UNEVEN, drawn(hopping(25, 10))),
    "cumulate": (*CUMULATING, drawn(cumulating(30, 10))),
    "sliding": (*SLIDING, drawn_sliding(30, 10)),
    "session": (*SESSIONS, drawn_sessions(10)),
    "together": (*TOGETHER, drawn_sessions(10, together=True)),
    "count": (*COUNTING, drawn_counts(COUNT)),
    "days": (
        *LOCAL_DAYS,
        drawn(on_calendar(OnCalendar("tumbling", "1d", None, None, HELSINKI), SPRING), SPRING, MANY_DAYS),
    ),
    "nights": (drawn(on_calendar(NIGHTS, SPRING), SPRING, MANY_DAYS),),
    "months": (drawn(on_calendar(MONTHS, AUTUMN), AUTUMN, MANY_DAYS),),
}
