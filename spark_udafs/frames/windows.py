"""Windows over a DataFrame's time column, as `groupBy` accepts them: Spark's own, or results of `window`.

A worker sketches rows by **panes**, once each, however many windows a row is in; Spark then merges the panes'
sketches into windows. Spark doesn't need to know about panes: it sees rows with a time, and by that time it
determines their windows, which of them are late, and its watermark.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DatetimeType, StringType, TimestampNTZType

from ...operators.table.windows import END, START
from ...operators.windows.calendar import CalendarWindows, calendar_windows
from ...operators.windows.durations import calendar_length, duration_text, microseconds
from ...operators.windows.hopping import regular_windows
from ...operators.windows.paned import Paned
from ...operators.windows.session import SessionTable
from ...operators.windows.table import TableWindows
from ...operators.windows.tumbling import Tumbling
from ...operators.windows.window import YEAR_1, YEAR_10000
from .columns import Term, term_of
from .declared import DeclaredFrame

_MS = np.int64(1_000)
_UTC = ("UTC", "Etc/UTC", "GMT", "Etc/GMT", "Z", "+00:00", "Zulu", "Etc/Zulu", "Universal", "Etc/Universal")


@dataclass(frozen=True)
class Windows:
    """Windows of one length over a DataFrame's time column, created by `window`.

    >>> import streamgauge as sg
    >>> sg.spark.window("at", "1 hour").definition()
    {'size': '1h', 'time': 'over "at"'}
    """

    column: str
    size_us: int
    every_us: int
    offset_us: int
    time: Column | None = field(default=None, compare=False, repr=False)
    """The expression for the windows' time, with `column` as its text; None if `column` names a column."""

    @property
    def pane_us(self) -> int:
        """The length of panes: each pane lies wholly inside a window or wholly outside it."""
        return math.gcd(self.size_us, self.every_us, self.offset_us)

    def panes(self, streaming: bool) -> Paned:
        """The panes in which rows are sketched."""
        return Tumbling.of_length(self.pane_us)

    def of_table(self) -> TableWindows:
        """The windows of the table of sketches."""
        return regular_windows(self.size_us, self.every_us, self.offset_us)

    def over_partials(self) -> Column:
        """Spark's own window over partial rows, whose `START` is the time of the latest row."""
        return self.over(START)

    def over(self, column: str) -> Column:
        """Spark's own window over a column."""
        size, slide, offset = (f"{us} microseconds" for us in (self.size_us, self.every_us, self.offset_us))
        return F.window(column, size, slide, offset)

    def definition(self) -> dict[str, str]:
        """As plain JSON."""
        definition = {"size": duration_text(self.size_us), "time": f'over "{self.column}"'}
        if self.every_us != self.size_us:
            definition["slide"] = f"every {duration_text(self.every_us)}"
        if self.offset_us:
            definition["start"] = f"from {duration_text(self.offset_us)}"
        return definition


@dataclass(frozen=True)
class LocalWindows:
    """Calendar windows over a DataFrame's time column, created by `window`; workers assign rows to them.

    >>> import streamgauge as sg
    >>> sg.spark.window("at", "1 day", zone="Europe/Helsinki").definition()
    {'size': '1d', 'zone': 'in Europe/Helsinki', 'time': 'over "at"'}
    """

    column: str
    windows: CalendarWindows
    time: Column | None = field(default=None, compare=False, repr=False)
    """See `Windows.time`."""

    def panes(self, streaming: bool) -> Paned:
        """The panes in which rows are sketched."""
        return self.windows

    def of_table(self) -> TableWindows:
        """The windows of the table of sketches."""
        return self.windows.of_table()

    def definition(self) -> dict[str, str]:
        """As plain JSON."""
        words = {"size": "", "every": "every ", "offset": "from ", "zone": "in "}
        own = self.windows.definition()
        definition = {name: f"{word}{own[name]}" for name, word in words.items() if name in own}
        return {**definition, "time": f'over "{self.column}"'}


@dataclass(frozen=True)
class Sessions:
    """Sessions over a DataFrame's time column, like those of `pyspark.sql.functions.session_window`.

    Two rows of a group are in the same session if the later one is at most `gap_us` after the earlier.

    >>> import streamgauge as sg
    >>> sg.spark.Sessions("at", 1_000_000).definition()
    {'session': '1s', 'time': 'over "at"'}
    """

    column: str
    gap_us: int
    time: Column | None = field(default=None, compare=False, repr=False)
    """See `Windows.time`."""

    def panes(self, streaming: bool) -> Paned:
        """Pieces of sessions, each within one session.

        All rows of a pane as long as the gap belong to one session. In a stream, Spark drops late rows one by
        one before it forms sessions, so there a piece only holds rows that become late at the same moment.
        """
        if not streaming:
            return Tumbling.of_length(self.gap_us)
        return TogetherLate(1_000, 1_000, (-self.gap_us) % 1_000)

    def of_table(self) -> TableWindows:
        """The windows of the table of sketches."""
        return SessionTable(self.gap_us)

    def over_partials(self) -> Column:
        """Spark's own session window over pieces of sessions; each piece's gap reaches to its end."""
        length = F.unix_micros(END) - F.unix_micros(START)
        return F.session_window(START, F.concat(length.cast("string"), F.lit(" microseconds")))

    def definition(self) -> dict[str, str]:
        """As plain JSON."""
        return {"session": duration_text(self.gap_us), "time": f'over "{self.column}"'}


FrameWindows = Windows | LocalWindows | Sessions
"""The kinds of windows in which a DataFrame can be sketched."""


@dataclass(frozen=True, slots=True)
class TogetherLate(Paned):
    """Panes of one millisecond, split again after `cut_us`: sessions of later rows end a millisecond later.

    Spark's watermark counts milliseconds. All rows of a pane advance it to the same millisecond, and their
    sessions all end in the same millisecond.

    >>> TogetherLate(1_000, 1_000, 0).pane_starts(np.array([5_000, 5_001, 5_999])).tolist()
    [5000, 5001, 5001]
    """

    cut_us: int

    def pane_start(self, time_us: int) -> int:
        """The start of the pane that holds a time."""
        return int(self.pane_starts(np.array([time_us]))[0])

    def pane_starts(self, times_us: np.ndarray) -> np.ndarray:
        """The start of each time's pane."""
        within = times_us % _MS
        return times_us - within + np.where(within > self.cut_us, self.cut_us + 1, 0)


def window(
    timeColumn: str,
    windowDuration: str,
    slideDuration: str | None = None,
    startTime: str | None = None,
    *,
    zone: str | None = None,
) -> Windows | LocalWindows:
    """Windows like those of `pyspark.sql.functions.window`; durations as there (``"1 minute"``), or ``"1m"``.

    `groupBy` accepts Spark's own windows as well; this function doesn't need a running Spark. Unlike Spark's,
    its windows may last months (``"1 month"``) and begin by the clock of a `zone`, as `Stream.tumbling`
    describes; a streaming DataFrame supports neither. Raises `ValueError` for text that is not a duration or
    a zone, and for a slide longer than the window.

    >>> import streamgauge as sg
    >>> sg.spark.window("at", "1 hour", "15 minutes").pane_us == 15 * 60_000_000
    True
    """
    given = [
        None if one is None else in_our_notation(one) for one in (windowDuration, slideDuration, startTime)
    ]
    if zone is not None or any(calendar_length(one or "0s").months for one in given[:2]):
        kind = "tumbling" if given[1] in (None, given[0]) else "hopping"
        windows = calendar_windows(kind, given[0] or "", given[1], given[2], zone)
        assert windows is not None
        return LocalWindows(timeColumn, windows)
    size = duration(windowDuration)
    slide = size if slideDuration is None else duration(slideDuration)
    if not 0 < slide <= size:
        raise ValueError(
            f"window: a slide of {slideDuration} doesn't fit windows of {windowDuration}; it must be longer "
            "than 0 and at most the window's length"
        )
    return Windows(timeColumn, size, slide, 0 if startTime is None else duration(startTime, signed=True))


def windows_of_column(column: Column) -> FrameWindows | None:
    """The windows of an `F.window` or `F.session_window` column; None for any other column.

    Raises `ValueError` for a gap that differs from row to row, which such windows can't have here.
    """
    called = term_of(column)
    if called.kind != "call" or called.value not in ("window", "session_window"):
        return None
    time, *durations = called.arguments
    texts = [_constant(called, one) for one in durations]
    name = time.value if time.kind == "name" else str(time)
    windows = window(name, *texts) if called.value == "window" else Sessions(name, duration(texts[0]))
    if isinstance(windows, Sessions) and not windows.gap_us:
        raise ValueError("session_window: a gap must be longer than 0")
    return windows if time.kind == "name" else replace(windows, time=time.column)


def event_times(rows: DataFrame | DeclaredFrame, time: Column) -> Column:
    """Return the windows' time column as timestamps.

    Raises `TypeError` for columns that Spark's windows don't accept: a cast would read numbers as seconds.
    Raises `ValueError` for times without a zone if the session's zone is not UTC: Spark begins windows over
    these by local time, while the windows of a table of sketches begin by UTC.
    """
    (field,) = rows.select(time).schema
    if not isinstance(field.dataType, DatetimeType | StringType):
        raise TypeError(
            f"groupBy: windows need a timestamp, and {field.name!r} is {field.dataType.simpleString()}; make "
            "it one, as by F.timestamp_seconds, F.timestamp_millis or F.timestamp_micros of a number"
        )
    zone = rows.sparkSession.conf.get("spark.sql.session.timeZone") or ""
    if zone not in _UTC and isinstance(field.dataType, TimestampNTZType):
        raise ValueError(
            "groupBy: the time of the window has no zone. Windows of a table of sketches begin by UTC, "
            f"Spark's by the clock in {zone}: cast such times to timestamp first if they are in {zone}, "
            "or set spark.sql.session.timeZone to UTC"
        )
    return time.cast("timestamp")


def in_years(time: Column, before: str, behind: str) -> Column:
    """Check that times fit a table of sketches; any other ends the query with an error that shows it."""
    least, most = (F.timestamp_micros(F.lit(us)) for us in (YEAR_1, YEAR_10000 - 1))
    error = F.concat(F.lit(before), F.unix_micros(time).cast("string"), F.lit(behind))
    return F.when(time.between(least, most) | time.isNull(), time).otherwise(F.raise_error(error))


def _constant(called: Term, given: Term) -> str:
    if given.kind != "constant":
        raise ValueError(
            f"{called.value}: {given} is not a constant; a table of sketches has windows of one kind, so "
            'write a duration such as "5 minutes"'
        )
    return str(given.value)


def duration(text: str, signed: bool = False) -> int:
    """Parse a duration in Spark's notation or ours into microseconds.

    >>> duration("1 minute"), duration("interval 1 hour 30 minutes"), duration("90s")
    (60000000, 5400000000, 90000000)
    """
    plain = in_our_notation(text)
    if signed and plain.startswith("-"):
        return -microseconds(plain[1:])
    return microseconds(plain)


def in_our_notation(text: str) -> str:
    """Convert a duration from Spark's notation to ours."""
    plain = text.strip().lower().removeprefix("interval ")
    spelled = re.sub(
        r"(\d+)\s*(microsecond|millisecond|second|minute|hour|day|week|month|quarter|year)s?\b",
        lambda match: match[1] + _UNITS[match[2]],
        plain,
    )
    return re.sub(r"\s", "", spelled)


_UNITS = {
    "microsecond": "us",
    "millisecond": "ms",
    "second": "s",
    "minute": "m",
    "hour": "h",
    "day": "d",
    "week": "w",
    "month": "mo",
    "quarter": "q",
    "year": "y",
}
