"""Windows over a DataFrame's time column, as `groupBy` takes them: Spark's own, or those of `window`.

A worker sketches rows by **panes**, once each, however many windows a row is in; Spark then puts the panes'
sketches into windows. It needs to know nothing of panes: it sees rows with a time, and decides by that time
which windows they are in, which are late, and how far its watermark is.
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
    """Windows of one length over a DataFrame's time column, made by `window`.

    >>> import streamgauge as sg
    >>> sg.spark.window("at", "1 hour").definition()
    {'size': '1h', 'time': 'over "at"'}
    """

    column: str
    size_us: int
    every_us: int
    offset_us: int
    time: Column | None = field(default=None, compare=False, repr=False)
    """The expression that they are over, whose text is `column`; None where that is a column's name."""

    @property
    def pane_us(self) -> int:
        """The length of panes: each pane lies wholly inside a window or wholly outside it."""
        return math.gcd(self.size_us, self.every_us, self.offset_us)

    def panes(self, streaming: bool) -> Paned:
        """The panes that rows are sketched by."""
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
    """Windows on a calendar over a DataFrame's time column, made by `window`; workers put rows into them.

    >>> import streamgauge as sg
    >>> sg.spark.window("at", "1 day", zone="Europe/Helsinki").definition()
    {'size': '1d', 'zone': 'in Europe/Helsinki', 'time': 'over "at"'}
    """

    column: str
    windows: CalendarWindows
    time: Column | None = field(default=None, compare=False, repr=False)
    """See `Windows.time`."""

    def panes(self, streaming: bool) -> Paned:
        """The panes that rows are sketched by."""
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
    """Sessions over a DataFrame's time column, as `pyspark.sql.functions.session_window` makes them.

    Of two rows of a group the later one is in the same session if it comes at most `gap_us` after.

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

        Rows of one pane as long as the gap always are. In a stream Spark drops rows that are late before it
        looks at their sessions, each by its own time, so there a piece has only rows that are late together.
        """
        if not streaming:
            return Tumbling.of_length(self.gap_us)
        return TogetherLate(1_000, 1_000, (-self.gap_us) % 1_000)

    def of_table(self) -> TableWindows:
        """The windows of the table of sketches."""
        return SessionTable(self.gap_us)

    def over_partials(self) -> Column:
        """Spark's own session window over pieces of sessions, each with a gap that reaches to its end."""
        length = F.unix_micros(END) - F.unix_micros(START)
        return F.session_window(START, F.concat(length.cast("string"), F.lit(" microseconds")))

    def definition(self) -> dict[str, str]:
        """As plain JSON."""
        return {"session": duration_text(self.gap_us), "time": f'over "{self.column}"'}


FrameWindows = Windows | LocalWindows | Sessions
"""The windows that a DataFrame can be sketched in."""


@dataclass(frozen=True, slots=True)
class TogetherLate(Paned):
    """Panes of a millisecond, cut once more: behind `cut_us`, where sessions of its rows begin to end later.

    Spark's watermark counts milliseconds. Rows of one pane move it to the same one, and the same one ends all
    of their sessions.

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

    `groupBy` takes Spark's own as well; this one needs no running Spark. Unlike Spark's, windows may be of
    months (``"1 month"``) and begin by the clock of a `zone`, as `Stream.tumbling` describes; a streaming
    DataFrame takes neither. Raises `ValueError` for text that is not a duration or a zone, and for a slide
    longer than the window.

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
    """The windows that `F.window` or `F.session_window` made, None for any other column.

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
    """The column that windows are over, as points in time.

    Raises `TypeError` for columns that Spark has no windows of: a cast would take numbers as seconds. Raises
    `ValueError` for times without a zone in a session whose zone is not UTC. Spark's windows of these begin
    by the clock on the wall there, while those of a table of sketches begin by UTC.
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
    """Times that a table of sketches can hold; for another the query ends with an error around its number."""
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
    """A length of time in Spark's notation or ours, in microseconds.

    >>> duration("1 minute"), duration("interval 1 hour 30 minutes"), duration("90s")
    (60000000, 5400000000, 90000000)
    """
    plain = in_our_notation(text)
    if signed and plain.startswith("-"):
        return -microseconds(plain[1:])
    return microseconds(plain)


def in_our_notation(text: str) -> str:
    """A length of time in Spark's notation in ours."""
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
