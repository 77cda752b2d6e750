"""The windows of a stream's definition: their kinds, and when they close."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from ..windows.calendar import calendar_windows
from ..windows.count import ByCount
from ..windows.cumulate import Cumulate
from ..windows.durations import Duration, microseconds
from ..windows.hopping import Hopping
from ..windows.session import Session
from ..windows.sliding import Sliding
from ..windows.tumbling import Tumbling
from ..windows.window import StreamWindows
from .row_stream import RowStream


@dataclass(frozen=True, eq=False)
class WindowedStream(RowStream):
    """Rows divided into windows of event time.

    A row is late if it is `delay_us` behind its partition; a row more than `max_ahead_us` ahead of the clock
    has an invalid event time (-1 accepts every time). With `keep_late` a late row counts in the first window
    that is still open.
    """

    window: StreamWindows | None = None
    delay_us: int = 10_000_000
    max_ahead_us: int = 3_600_000_000
    keep_late: bool = False

    @property
    def closing_delay_us(self) -> int:
        """How far behind the watermark windows close: unmatched rows of a join are emitted that late."""
        if self.window is None or self.reading.joined is None or self.reading.joined.how == "inner":
            return self.delay_us
        return self.delay_us + self.reading.joined.within_us + self.window.longest_us

    def _check_rows(self, verb: str, bare: bool = False) -> None:
        if bare and self.window is not None:
            raise ValueError(f"{verb}: the stream has windows already; write .{verb}(...) before them")

    def tumbling(
        self,
        every: str,
        *,
        offset: Duration | None = None,
        zone: str | None = None,
        delay: Duration = "10s",
        max_ahead: Duration | None = "1h",
        keep_late: bool = False,
    ) -> Self:
        """Windows of length `every` that don't overlap.

        They are aligned to 1970-01-01 00:00 UTC, so days begin at midnight UTC and weeks on Thursdays. Months
        of the calendar are written ``"1mo"``, ``"1q"`` and ``"1y"``. With `zone`, windows begin by the clock
        there: a day in ``"Europe/Helsinki"`` begins at midnight and lasts 23, 24 or 25 hours, and ``"1w"``
        begins on Monday, in ``"UTC"`` as well. If the zone's clock skips the time at which a window would
        begin, the window begins when the clock is put forward. If that time occurs twice, the window begins
        at the first, so the hour that is repeated in autumn is one window of two hours. `offset` shifts the
        beginning of windows, to earlier times if it is negative:
        ``tumbling("1d", offset="6h", zone="Europe/Helsinki")`` has days from 06:00 to 06:00, and
        ``tumbling("1y", offset="3mo")`` years that begin in April.

        A window is emitted once all partitions are `delay` past its end. A row is late, and dropped, if its
        partition was already that far ahead of it, or if its window was closed for good. If partitions are
        silent for a run's `idle_seconds`, windows with rows close without them; when the stream resumes, it
        waits as long for partitions that are still silent. A partition with unread messages, or with messages
        behind an open transaction, is not silent.

        A window that only the silence of all partitions has closed is emitted and retained: later rows for it
        count, and if there are any, it is emitted again, complete, when it next closes. It is final once rows
        are `delay` past its end, or after another hour of silence. On Spark a window is final when it is
        emitted.

        A row with an event time more than `max_ahead` past the wall clock, or past its message's timestamp,
        is a dead letter and does not advance time. In a recording, a row that far past the previous ones
        counts, but time jumps only after 20 consecutive rows at the later time. None accepts every time.

        With `keep_late=True` no row is dropped as late: a row that arrives after its window has closed counts
        in the first window that is still open. This is for readings, which rules evaluate by their own times
        in the order of each key (`Alerting` with `at`), and not for answers about windows.

        Raises `ValueError` for text that isn't a duration or a time zone, if the stream already has windows,
        and for `keep_late` in a stream that is deduplicated or joined with another, or with `offset` or
        `zone`.

        >>> import polars as pl
        >>> import streamgauge as sg
        >>> rows = sg.Stream.from_schema({"at": pl.Int64}, time=pl.from_epoch("at"))
        >>> days = rows.tumbling("1d", zone="Europe/Helsinki", max_ahead=None).agg(n=sg.count())
        >>> tester = sg.StreamTester(days)
        >>> _ = tester.feed([{"at": 1_774_735_200 + 86_400 * day} for day in (0, 1)])
        >>> hours = pl.col("window_end") - pl.col("window_start")
        >>> tester.finish().windows().select(hours.dt.total_hours()).to_series().to_list()
        [23, 24]
        """
        calendar = calendar_windows("tumbling", every, None, offset, zone)
        stream = self._windowed("tumbling", calendar or Tumbling.every(every), delay, max_ahead)
        if keep_late and (self.reading.joined is not None or self.reading.looking_back):
            raise ValueError(
                "tumbling: keep_late=True is for streams whose rows don't depend on others; leave out "
                f"{'the join' if self.reading.joined else f'{self.reading.looking_back}()'}, or keep_late"
            )
        if keep_late and calendar is not None:
            raise ValueError(
                "tumbling: keep_late=True is for rules over readings, which don't use the windows' edges; "
                "leave out offset and zone"
            )
        return replace(stream, keep_late=keep_late)

    def hopping(
        self,
        size: str,
        *,
        every: str,
        offset: Duration | None = None,
        zone: str | None = None,
        delay: Duration = "10s",
        max_ahead: Duration | None = "1h",
    ) -> Self:
        """Overlapping windows of length `size`, one beginning every `every`.

        They are aligned to 1970-01-01 00:00 UTC, or by `offset` and `zone` as `tumbling` describes. Both
        lengths are in months, or neither is. A window is emitted if it has any row, with the groups that have
        rows in it, so the first rows are also in windows that began before them. Rows are sketched once, in
        panes, whatever the overlap. A row that is late for some of its windows counts in the others. `delay`,
        `max_ahead` and the closing of windows are as for `tumbling`.

        Raises `ValueError` for text that isn't a duration, for an `every` longer than `size`, which would
        skip rows, for windows of more than 100,000 panes, and if the stream already has windows.

        >>> import polars as pl
        >>> import streamgauge as sg
        >>> rows = sg.Stream.from_schema({"at": pl.Int64}, time=pl.from_epoch("at"))
        >>> tester = sg.StreamTester(rows.hopping("3s", every="1s").agg(n=sg.count()))
        >>> _ = tester.feed([{"at": 1_767_225_600 + second} for second in (0, 0, 1)])
        >>> tester.finish().windows()["n"].to_list()
        [2, 3, 3, 1]
        """
        window = calendar_windows("hopping", size, every, offset, zone) or Hopping.of(size, every)
        return self._windowed("hopping", window, delay, max_ahead)

    def cumulate(
        self,
        size: str,
        *,
        every: str,
        offset: Duration | None = None,
        zone: str | None = None,
        delay: Duration = "10s",
        max_ahead: Duration | None = "1h",
    ) -> Self:
        """Windows that begin every `size` and grow by `every`: the total so far, at each step.

        This is Flink's ``CUMULATE``: ``cumulate("1d", every="1m")`` gives a day's total each minute, the last
        at midnight (UTC), and starts over. `offset` and `zone` work as in `tumbling`:
        ``cumulate("1mo", every="1d", zone="Europe/Helsinki")`` gives a month's total each midnight there.
        From the first row on, a window is emitted at each step, with all groups that have had rows since it
        began, whether or not new rows have arrived. Windows with the same beginning differ in `window_end`,
        so replace by `window_start`, `window_end` and keys. Rows are sketched once, and the rows of each step
        are merged once. A row that is late for some of its windows counts in the others. The table topic
        stores a period's deltas until the period is over, and a restart rereads them. `merge` and `rollup`
        with ``every`` use the windows of full length, so a period counts once it is over; a server that
        answers for a whole span uses the latest window of each period. `delay`, `max_ahead` and the closing
        of windows are as for `tumbling`.

        Raises `ValueError` for text that isn't a duration, for an `every` that doesn't divide `size`, for
        more than 100,000 steps in a window, and if the stream already has windows.

        >>> import polars as pl
        >>> import streamgauge as sg
        >>> rows = sg.Stream.from_schema({"at": pl.Int64}, time=pl.from_epoch("at"))
        >>> tester = sg.StreamTester(rows.cumulate("4s", every="1s").agg(n=sg.count()))
        >>> _ = tester.feed([{"at": 1_767_225_600 + second} for second in (0, 0, 1, 3, 5)])
        >>> tester.finish().windows()["n"].to_list()
        [2, 3, 3, 4, 1, 1, 1]
        """
        window = calendar_windows("cumulate", size, every, offset, zone) or Cumulate.of(size, every)
        return self._windowed("cumulate", window, delay, max_ahead)

    def sliding(
        self, size: str, *, step: str = "1s", delay: Duration = "10s", max_ahead: Duration | None = "1h"
    ) -> Self:
        """For each group, its rows of the last `size`, emitted whenever it has a row.

        Time is divided into steps of length `step`. For each group and each step in which it has a row, there
        is one window, which ends with that step and begins `size` before. A group is therefore emitted as
        often as it has rows, at most once per step, whereas `hopping` with ``every=step`` emits it as long as
        a window contains any of its rows. These are the windows of Quix Streams' `sliding_window`, or of
        Kafka Streams' `SlidingWindows` that end with a row, to within a step: a sketch can't remove single
        rows, so rows are sketched by steps. A row counts in all of its windows that have not ended when it
        arrives. `delay`, `max_ahead` and the closing of windows are as for `tumbling`.

        Raises `ValueError` for text that isn't a duration, for a `step` that doesn't divide `size`, for more
        than 100,000 steps in a window, and if the stream already has windows.

        >>> import polars as pl
        >>> import streamgauge as sg
        >>> rows = sg.Stream.from_schema({"at": pl.Int64}, time=pl.from_epoch("at"))
        >>> tester = sg.StreamTester(rows.sliding("3s").agg(n=sg.count()))
        >>> _ = tester.feed([{"at": 1_767_225_600 + second} for second in (0, 0, 1, 30)])
        >>> tester.finish().windows()["n"].to_list()
        [2, 3, 1]
        """
        return self._windowed("sliding", Sliding.of(size, step), delay, max_ahead)

    def session(
        self,
        gap: str,
        *,
        by: Sequence[str] | None = None,
        delay: Duration = "10s",
        max_ahead: Duration | None = "1h",
    ) -> Self:
        """For each group, its rows up to a pause longer than `gap`: rows `gap` apart are in one session.

        `by` names some of the keys, or none. A session then covers all rows that agree in these keys, and
        each group has a row of its own for it: ``group_by("shop").session("3m", by=())`` forms sessions over
        all rows, and counts each by shop.

        In the table a session begins with its first row and ends `gap` after its last, as with Spark's
        `session_window`. It is emitted once all partitions are `delay` past that end, together with all other
        sessions for which this is true. A row is late once its partition is `delay` past the end of the
        session that the row would form alone; a row that arrives after its group's session has ended, and is
        not late, belongs to the next session. A session that only silence has closed is emitted again when it
        is final, and earlier if it grows: it then replaces the sessions of its keys that it covers.
        `SketchesToParquet` and `SketchesToKafka` wait until it is final. `max_ahead` and the closing of
        windows are as for `tumbling`.

        Raises `ValueError` for text that isn't a duration, and if the stream already has windows; `agg`
        raises it for names in `by` that aren't keys.

        >>> import polars as pl
        >>> import streamgauge as sg
        >>> rows = sg.Stream.from_schema({"at": pl.Int64, "user": pl.String}, time=pl.from_epoch("at"))
        >>> tester = sg.StreamTester(rows.group_by("user").session("30s").agg(n=sg.count()))
        >>> seen = [(0, "ann"), (10, "bob"), (30, "ann"), (41, "bob")]
        >>> _ = tester.feed([{"at": 1_767_225_600 + second, "user": user} for second, user in seen])
        >>> tester.finish().windows().select("user", "n").rows()
        [('ann', 2), ('bob', 1), ('bob', 1)]
        """
        return self._windowed("session", Session.of(gap, by), delay, max_ahead)

    def count_window(self, rows: int) -> Self:
        """For each group, windows of a fixed number of consecutive rows, whenever they arrive.

        This is Flink's `countWindow`. Rows are counted in the order of their offsets, within each partition
        of the input. If a group's rows are in one partition, as in a topic keyed by the group, its windows
        contain its rows one after another; otherwise each partition has its own windows. After `explode`, the
        rows of one message may be in two windows.

        In the table a window begins with the earliest event time of its rows and ends a microsecond after the
        latest. Windows of a group may have the same times, so an additional key distinguishes them:
        `window_id` names the message with which the window began, such as ``posts[3]:1042`` (and
        ``posts[3]:1042.2`` for the third row of that message). No row is late. A window is emitted, and
        final, once it is full. An incomplete window stays open, however long, and is visible with
        ``emit="checkpoint"``, in `run.table()` and at the end of a bounded run. A worker remembers the
        position of each group with an open window, in about 100 bytes of memory (`state_bytes` limits this);
        its successor reads the positions from the table topic. That topic stores all deltas since the oldest
        open window began, and a restart rereads them: the metric `replayed_messages` shows their number. If
        some groups hardly ever have a row, filter them out, or use a `session`, which ends by time.

        With ``delivery="at_least_once"`` a window may contain a row twice after a fault, and with
        ``"at_most_once"`` lack one; otherwise each has exactly this number. It can't follow `deduplicate`,
        which needs to know when a row is too late, and query servers refuse it.

        Raises `TypeError` and `ValueError` for an invalid number of rows, and `ValueError` if the stream
        already has windows.

        >>> import polars as pl
        >>> import streamgauge as sg
        >>> schema = {"at": pl.Int64, "machine": pl.String, "heat": pl.Int64}
        >>> rows = sg.Stream.from_schema(schema, time=pl.from_epoch("at")).group_by("machine")
        >>> tester = sg.StreamTester(rows.count_window(2).agg(heat=sg.mean("heat")))
        >>> _ = tester.feed([{"at": 7, "machine": "ab"[n % 2], "heat": n} for n in range(7)])
        >>> tester.windows().select("machine", "window_id", "heat").rows()
        [('a', 'input[0]:0', 1.0), ('a', 'input[0]:4', 5.0), ('b', 'input[0]:1', 2.0)]
        """
        if self.reading.looks_back or self.reading.joined is not None:
            verb = "a join with another stream" if self.reading.joined else f"{self.reading.looking_back}()"
            raise ValueError(
                f"count_window: the stream has {verb}, which depends on late rows, but count windows "
                "have none; use windows of time, such as .tumbling(...)"
            )
        return self._windowed("count_window", ByCount.of(rows), "0s", None)

    def _windowed(
        self, verb: str, window: StreamWindows, delay: Duration, max_ahead: Duration | None
    ) -> Self:
        if self.window is not None:
            present = _in_words(self.window.definition(), str)
            wanted = _in_words(window.definition(), lambda length: f'"{length}"')
            raise ValueError(
                f"{verb}: the stream has windows of {present} already; there is one kind for "
                f"each table. For {wanted}, define a second stream or roll up this one's "
                "table"
            )
        ahead = -1 if max_ahead is None else microseconds(max_ahead)
        return replace(self, window=window, delay_us=microseconds(delay), max_ahead_us=ahead)


def _in_words(definition: Mapping[str, Any], shown: Callable[[Any], str]) -> str:
    """The lengths and the alignment of windows, in words."""
    place = {"offset": "from", "zone": "in"}
    lengths = [shown(length) for name, length in definition.items() if name not in ("window", *place)]
    begin = (f" {word} {shown(definition[name])}" for name, word in place.items() if name in definition)
    return " every ".join(lengths) + "".join(begin)
