"""How far windows may close: the watermark over all partitions, idle ones included.

Each partition holds windows open up to the watermark of its own rows. A silent one can't hold them for ever,
but the rows with which it wakes up must not be late because of its silence:

- A silent partition is assumed to be as far as its own watermark plus its silence, or as the furthest of all
  partitions. Because the furthest may have a clock that is ahead, this goes no further than the wall clock
  minus the stream's delay or, in streams that are ahead of that, the slowest partition that has had rows.
- When all are silent, windows that have rows close, and time stops there: rows that were written meanwhile
  and arrive later (from a producer that was cut off) find their windows open. Windows that only the clock has
  closed, with no row past them, are closed provisionally, because the backlog begins in the very window that
  the pause has interrupted. They close for good once rows are past them, or after another `KEPT_US` of
  silence.
- When the stream wakes up, partitions wake one after the other: the merger waits for those that are still
  silent, as long as it took them to become idle.

A window that is closed for good stays closed: later rows for it are late. A window that is closed
provisionally was emitted as well. If it can be emitted again (`operators.consumer`), later rows for it count;
if a window can be emitted only once (Spark's append mode), it is final.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from ..windows.window import EARLIEST, StreamWindows
from .idle_timer import Rest
from .partition_watermark import PartitionTime
from .position import Position

K = TypeVar("K")

KEPT_US = 3_600_000_000
"""How much longer a silence must last until windows that only it has closed are closed for good.

Until then the table topic retains such a window's deltas and those that report the silence, and a restart
rereads them.
"""


@dataclass(slots=True)
class Mark:
    """What closing windows needs of a partition: its position and its silence.

    `rest` is set while it is silent. It holds windows open until it has been silent for `wait_us`
    (microseconds).
    """

    position: Position = field(default_factory=Position)
    rest: Rest | None = None
    wait_us: int = 0

    @property
    def time(self) -> PartitionTime:
        """Its event time."""
        return self.position.time

    @property
    def idle(self) -> bool:
        """Whether it no longer holds windows open."""
        return self.rest is not None and self.rest.us >= self.wait_us

    @property
    def silent_us(self) -> int:
        """How long it has been silent, if it is idle."""
        return self.rest.us if self.rest is not None and self.idle else 0


def update_idleness(marks: Mapping[K, Mark], partition: K, rest: Rest | None) -> None:
    """Record that a partition is silent, or not. If it wakes the whole stream, the others are waited for."""
    mark = marks[partition]
    if rest is None and mark.rest is not None:
        others = [other for at, other in marks.items() if at != partition]
        if all(other.rest is not None for other in others):
            for other in others:
                assert other.rest is not None
                other.wait_us = other.rest.us + max(1, other.rest.patience_us)
    if rest is None:
        mark.wait_us = 0
    elif mark.rest is not None and rest.us < mark.rest.us and not mark.idle:
        # Another worker measures its silence again, so the wait starts over as well.
        mark.wait_us = rest.us + rest.patience_us
    mark.rest = rest


class ClosingTimes(NamedTuple):
    """Windows that end at or before `final_us` close for good, later ones up to `due_us` provisionally.

    These are event times in int64 microseconds; `due_us` is later than `final_us` only while all partitions
    are silent. Then `clock_us` is the event time according to the wall clock at `now_us`; it advances while
    nothing arrives, and closes no windows.
    """

    final_us: int
    due_us: int
    clock_us: int = EARLIEST
    now_us: int = 0


def closing_times(marks: Collection[Mark], window: StreamWindows, delay_us: int) -> ClosingTimes:
    """How far windows may close.

    >>> from ..windows.tumbling import Tumbling
    >>> minute, second = Tumbling.every("1m"), 1_000_000
    >>> awake = Mark(Position(time=PartitionTime(90 * second)))
    >>> closing_times([awake, Mark(Position(time=PartitionTime(50 * second)))], minute, 0).final_us // second
    50
    >>> idle = Mark(rest=Rest(5 * second, 5 * second, 100 * second))
    >>> closing_times([awake, idle], minute, 0).final_us // second
    90
    >>> silent = Mark(Position(time=PartitionTime(50 * second)), Rest(30 * second, 5 * second, 100 * second))
    >>> [time // second for time in closing_times([silent], minute, 0)[:2]]
    [50, 60]
    """
    going = [mark for mark in marks if mark.rest is None or not mark.rest.ended or not mark.idle]
    if not going:
        ended = min((mark.time.watermark(delay_us) for mark in marks), default=EARLIEST)
        return ClosingTimes(ended, ended)
    known = [mark for mark in going if mark.time.seen_us > EARLIEST]
    furthest = max((mark.time.latest_us - delay_us + mark.silent_us for mark in known), default=EARLIEST)
    slowest = min((mark.time.watermark(delay_us) + mark.silent_us for mark in known), default=EARLIEST)

    def reached_by(mark: Mark) -> int:
        own = mark.time.watermark(delay_us)
        if mark.rest is None or not mark.idle:
            return own
        idle_time = min(furthest, max(slowest, mark.rest.now_us - delay_us))
        return max(idle_time, own + mark.silent_us if own > EARLIEST else own)

    reached = min(map(reached_by, going))
    if any(not mark.idle for mark in going):
        return ClosingTimes(reached, reached)
    # Nothing has arrived since, so time goes no further than the last windows that have rows.
    times = {time for mark in known for time in (mark.time.seen_us, mark.time.latest_us)}
    ends = [window.ended_by(time, reached) for time in times]
    of_rows = max((mark.time.watermark(delay_us) for mark in known), default=EARLIEST)
    passed = min(reached, of_rows)
    long_ago = [window.ended_by(time, reached - KEPT_US) for time in times]
    clock = reached, max(mark.rest.now_us for mark in going if mark.rest is not None)
    return ClosingTimes(max(passed, *long_ago, EARLIEST), max(passed, *ends, EARLIEST), *clock)
