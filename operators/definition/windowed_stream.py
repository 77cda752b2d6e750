"""The windows of a stream's definition: which there are, and when they close."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

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
    """Rows cut into windows of event time.

    A row is late `delay_us` behind its partition; one more than `max_ahead_us` ahead of the clock has a
    broken event time (-1: every time is believed).
    """

    window: StreamWindows | None = None
    delay_us: int = 10_000_000
    max_ahead_us: int = 3_600_000_000

    @property
    def closing_delay_us(self) -> int:
        """How far behind the watermark windows close: rows that wait for partners in vain come so late."""
        if self.window is None or self.joined is None or self.joined.how == "inner":
            return self.delay_us
        return self.delay_us + self.joined.within_us + self.window.last_end(0)

    def _check_rows(self, verb: str, bare: bool = False) -> None:
        if bare and self.window is not None:
            raise ValueError(f"{verb}: the stream has windows already; write .{verb}(...) before them")

    def tumbling(self, every: str, *, delay: Duration = "10s", max_ahead: Duration | None = "1h") -> Self:
        """Windows of length `every`, side by side.

        A window is given out once all partitions are `delay` past its end. A row is late, and left out, if
        its partition was that far before it, or if its window was given out for good. When partitions are
        silent for a run's `idle_seconds`, windows that have rows close without them; those that are still
        silent when the stream wakes are waited for as long. A partition with unread messages, or messages
        behind an open transaction, is not silent.

        A window that only the silence of all partitions has closed is given out and kept: rows that follow
        for it count, and if there are any it is given out again, whole, when it closes next. It is final once
        rows are `delay` past its end, or after another hour of silence. On Spark it is final when it is given
        out.

        A row with an event time more than `max_ahead` past the wall clock, or past its message's timestamp,
        is a dead letter and does not move time. In a recording, a row that far past those before it counts,
        but time jumps only once 20 rows in a row lie there. With None every time is believed.

        Raises `ValueError` for text that isn't a duration, and if the stream has windows already.
        """
        return self._windowed("tumbling", Tumbling.every(every), delay, max_ahead)

    def hopping(
        self, size: str, *, every: str, delay: Duration = "10s", max_ahead: Duration | None = "1h"
    ) -> Self:
        """Windows of length `size` that begin `every` so often, so that each row is in several.

        They are aligned to 1970-01-01 00:00 UTC. A window is given out if any row is in it, with the groups
        that have rows in it: so the first rows show in windows that began before them. Rows are sketched
        once, by the pieces that windows are made of, whatever the overlap. A row that is late for some of its
        windows counts in the others. `delay`, `max_ahead` and what closes windows are as for `tumbling`.

        Raises `ValueError` for text that isn't a duration, for an `every` that is longer than `size`, which
        would leave rows out, for windows of more than 100,000 pieces, and if the stream has windows already.

        >>> import polars as pl
        >>> import streamgauge as sg
        >>> rows = sg.Stream.from_schema({"at": pl.Int64}, time=pl.from_epoch("at"))
        >>> tester = sg.StreamTester(rows.hopping("3s", every="1s").agg(n=sg.count()))
        >>> _ = tester.feed([{"at": 1_767_225_600 + second} for second in (0, 0, 1)])
        >>> tester.finish().windows()["n"].to_list()
        [2, 3, 3, 1]
        """
        return self._windowed("hopping", Hopping.of(size, every), delay, max_ahead)

    def cumulate(
        self, size: str, *, every: str, delay: Duration = "10s", max_ahead: Duration | None = "1h"
    ) -> Self:
        """Windows that begin every `size` and end every `every` from there: a total so far, at each step.

        That is Flink's ``CUMULATE``: ``cumulate("1d", every="1m")`` gives a day's total each minute, the last
        at midnight (UTC), and starts over. A window is given out, with all groups that have had rows since it
        began, at each step from the first such row on, whether or not more have come. Windows that begin
        together are told apart by `window_end`, so replace by `window_start`, `window_end` and keys. Rows are
        sketched once, and each step's are merged once. A row that is late for some of its windows counts in
        the others. The table topic keeps a period's deltas until it is over, and a restart reads them again.

        `merge` and `rollup` with ``every`` take the windows of full length, so a period counts once it is
        over; a server that answers for a whole span uses the latest of each period. `delay`, `max_ahead`
        and what closes windows are as for `tumbling`.

        Raises `ValueError` for text that isn't a duration, for an `every` that doesn't divide `size`, for
        more than 100,000 steps in a window, and if the stream has windows already.

        >>> import polars as pl
        >>> import streamgauge as sg
        >>> rows = sg.Stream.from_schema({"at": pl.Int64}, time=pl.from_epoch("at"))
        >>> tester = sg.StreamTester(rows.cumulate("4s", every="1s").agg(n=sg.count()))
        >>> _ = tester.feed([{"at": 1_767_225_600 + second} for second in (0, 0, 1, 3, 5)])
        >>> tester.finish().windows()["n"].to_list()
        [2, 3, 3, 4, 1, 1, 1]
        """
        return self._windowed("cumulate", Cumulate.of(size, every), delay, max_ahead)

    def sliding(
        self, size: str, *, step: str = "1s", delay: Duration = "10s", max_ahead: Duration | None = "1h"
    ) -> Self:
        """For each group, the last `size` of its rows, whenever it has a row.

        Time is cut into steps of length `step`. For each group and each step in which it has a row, there is
        one window: it ends with that step, and begins `size` before. So a group is given out as often as it
        has rows, and no more than once a step, where `hopping` with ``every=step`` gives it out for as long
        as a window holds any of its rows. These are the windows of Quix Streams' `sliding_window`, or those
        of Kafka Streams' `SlidingWindows` that end with a row, to within a step: a sketch can't take single
        rows back, so rows are sketched by steps. A row counts in those of its windows that have not ended
        when it comes. `delay`, `max_ahead` and what closes windows are as for `tumbling`.

        Raises `ValueError` for text that isn't a duration, for a `step` that doesn't divide `size`, for more
        than 100,000 steps in a window, and if the stream has windows already.

        >>> import polars as pl
        >>> import streamgauge as sg
        >>> rows = sg.Stream.from_schema({"at": pl.Int64}, time=pl.from_epoch("at"))
        >>> tester = sg.StreamTester(rows.sliding("3s").agg(n=sg.count()))
        >>> _ = tester.feed([{"at": 1_767_225_600 + second} for second in (0, 0, 1, 30)])
        >>> tester.finish().windows()["n"].to_list()
        [2, 3, 1]
        """
        return self._windowed("sliding", Sliding.of(size, step), delay, max_ahead)

    def session(self, gap: str, *, delay: Duration = "10s", max_ahead: Duration | None = "1h") -> Self:
        """For each group, its rows up to a pause of `gap`: rows less than `gap` apart are in one session.

        In the table a session begins with its first row and ends `gap` after its last, as with Spark's
        `session_window`. It is given out once all partitions are `delay` past that end, together with the
        others for which that is so. A row is late once its partition is `delay` past the end of the session
        that it would be by itself; one that comes after its group's session has ended, and is not late, is of
        the next. A session that silence alone has closed comes again when it is final, and before if it gets
        longer: it then replaces those of its keys that it covers. `SketchesToParquet` and `SketchesToKafka`
        wait until it is final. `max_ahead` and what closes windows are as for `tumbling`.

        Raises `ValueError` for text that isn't a duration, and if the stream has windows already.

        >>> import polars as pl
        >>> import streamgauge as sg
        >>> rows = sg.Stream.from_schema({"at": pl.Int64, "user": pl.String}, time=pl.from_epoch("at"))
        >>> tester = sg.StreamTester(rows.group_by("user").session("30s").agg(n=sg.count()))
        >>> seen = [(0, "ann"), (10, "bob"), (29, "ann"), (40, "bob")]
        >>> _ = tester.feed([{"at": 1_767_225_600 + second, "user": user} for second, user in seen])
        >>> tester.finish().windows().select("user", "n").rows()
        [('ann', 2), ('bob', 1), ('bob', 1)]
        """
        return self._windowed("session", Session.of(gap), delay, max_ahead)

    def count_window(self, rows: int) -> Self:
        """For each group, its first so many rows, then the next so many, whenever they come.

        That is Flink's `countWindow`. Rows are counted in the order of their offsets, within each partition
        of the input: where a group's rows lie in one partition, as in a topic that is keyed by the group, its
        windows hold its rows one after the other; where they don't, each partition has windows of its own. A
        message that `explode` made several rows of may be in two windows.

        In the table a window begins with the earliest event time of its rows and ends a microsecond after the
        latest. Windows of a group may lie alike, so one more key tells them apart: `window_id` names the
        message with which it began, such as ``posts[3]:1042`` (and ``posts[3]:1042.2`` for the third row of
        that message). No row is late. A window is given out, and final, once it is full; one that isn't stays
        open, however long, and shows with ``emit="checkpoint"``, in `run.table()` and at the end of a bounded
        run. A worker knows the place of each group that has an open window, which takes about 100 bytes of
        memory (`state_bytes` limits it), and who takes its partitions up reads the places from the table
        topic. That topic keeps all that was sent since the oldest open window began, and a restart reads it
        again: the metric `replayed_messages` shows how much that is. Where some groups hardly ever have a
        row, filter those out, or take a `session`, which time ends.

        With ``delivery="at_least_once"`` a window may hold a row twice after a fault, and with
        ``"at_most_once"`` lack one; otherwise each holds exactly so many. Not for `deduplicate`, which needs
        to know when a row is too late, nor for query servers, which refuse it.

        Raises `TypeError` and `ValueError` for a number of rows that isn't one, and `ValueError` if the
        stream has windows already.

        >>> import polars as pl
        >>> import streamgauge as sg
        >>> schema = {"at": pl.Int64, "machine": pl.String, "heat": pl.Int64}
        >>> rows = sg.Stream.from_schema(schema, time=pl.from_epoch("at")).group_by("machine")
        >>> tester = sg.StreamTester(rows.count_window(2).agg(heat=sg.mean("heat")))
        >>> _ = tester.feed([{"at": 7, "machine": "ab"[n % 2], "heat": n} for n in range(7)])
        >>> tester.windows().select("machine", "window_id", "heat").rows()
        [('a', 'input[0]:0', 1.0), ('a', 'input[0]:4', 5.0), ('b', 'input[0]:1', 2.0)]
        """
        if self.looks_back or self.joined is not None:
            verb = "a join with another stream" if self.joined else f"{self.looking_back}()"
            raise ValueError(
                f"count_window: the stream has {verb}, which depends on which rows come too late, and "
                "windows by count have no late rows; take windows of time, such as .tumbling(...)"
            )
        return self._windowed("count_window", ByCount.of(rows), "0s", None)

    def _windowed(
        self, verb: str, window: StreamWindows, delay: Duration, max_ahead: Duration | None
    ) -> Self:
        if self.window is not None:
            _, *present = self.window.definition().values()
            _, *wanted = (f'"{length}"' for length in window.definition().values())
            raise ValueError(
                f"{verb}: the stream has windows of {' every '.join(present)} already; there is one kind for "
                f"each table. For {' every '.join(wanted)}, define a second stream or roll up this one's "
                "table"
            )
        ahead = -1 if max_ahead is None else microseconds(max_ahead)
        return replace(self, window=window, delay_us=microseconds(delay), max_ahead_us=ahead)
