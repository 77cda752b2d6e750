"""The windows of a stream's definition: which there are, and when they close."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from .durations import Duration, microseconds, written
from .rows import RowStream
from .windows import Tumbling, Window


@dataclass(frozen=True, eq=False)
class WindowedStream(RowStream):
    """Rows cut into windows of event time.

    A row is late `delay_us` behind its partition; one more than `max_ahead_us` ahead of the clock has a
    broken event time (-1: every time is believed).
    """

    window: Window | None = None
    delay_us: int = 10_000_000
    max_ahead_us: int = 3_600_000_000

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
        if self.window is not None:
            asked = f'"{every}"' if isinstance(every, str) else repr(every)
            raise ValueError(
                f"tumbling: the stream has windows of {written(self.window.pane_us)} already; there is "
                f"one kind for each table. For {asked}, define a second stream or roll up this one's table"
            )
        ahead = -1 if max_ahead is None else microseconds(max_ahead)
        return replace(self, window=Tumbling.every(every), delay_us=microseconds(delay), max_ahead_us=ahead)
