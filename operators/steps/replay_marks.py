"""The offsets from which rows must be reread, and their partition's event time there."""

from __future__ import annotations

from dataclasses import replace

from ..watermarks.partition_watermark import PartitionTime

_MANY = 64


class ReplayMarks:
    """Offsets in a partition, each with the event time before it and the latest time of the rows that follow.

    Reread rows must be judged as they were the first time. What is late depends on earlier rows, so a worker
    that rereads must start with the event time that the partition had there. There are few marks, however
    many rows, because neighbouring marks are merged.

    >>> marks = ReplayMarks()
    >>> for offset, latest in ((0, 10), (5, 30), (7, 20)):
    ...     marks.note(offset, PartitionTime(seen_us=offset), latest)
    >>> offset, time = marks.replay(9, PartitionTime(), reach_us=10)
    >>> offset, time.seen_us
    (5, 5)
    >>> marks.replay(9, PartitionTime(), reach_us=30)[0]
    9
    """

    def __init__(self) -> None:
        self._marks: list[tuple[int, PartitionTime, int]] = []

    def note(self, offset: int, time: PartitionTime, latest_us: int) -> None:
        """Record rows from `offset` on, before which the partition's time was `time`, up to `latest_us`."""
        self._marks.append((offset, replace(time), latest_us))
        if len(self._marks) > _MANY:
            pairs = zip(self._marks[::2], [*self._marks[1::2], self._marks[-1]])
            self._marks = [(at, before, max(one, two)) for (at, before, one), (_, _, two) in pairs]

    def replay(self, offset: int, time: PartitionTime, reach_us: int) -> tuple[int, PartitionTime]:
        """The offset from which to reread to know all rows after `reach_us`, and the event time there.

        It is at most `offset`, where the event time is `time`.
        """
        while self._marks and self._marks[0][2] <= reach_us:
            self._marks.pop(0)
        at, before = self._marks[0][:2] if self._marks else (offset, time)
        return at, replace(before)
