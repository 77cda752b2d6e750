"""A stream that is joined with itself: each of its rows is matched with the others as left and as right."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..definition.joining import BothSides, StreamJoin
from ..definition.stream import Stream
from ..watermarks.partition_watermark import PartitionTime
from .join_state import JoinState
from .row_steps import Refuse, RowSteps
from .stream_join import Join, JoinedRows, JoinSide, RefusedMessages, Tally, TimelyRows, Unpaired, say_nothing


def join_of(stream: Stream, pairing: JoinState) -> Join:
    """An input's part in a join, depending on the stream of its topic."""
    return SelfJoin(stream, pairing) if pairing.source.of_itself else JoinSide(stream, pairing)


class SelfJoin:
    """Like `JoinSide`, for one input whose rows are on both sides. A row pairs with itself, as in SQL.

    A message is checked, counted and refused once, whichever of its sides has a row.
    """

    def __init__(self, stream: Stream, pairing: JoinState) -> None:
        at = next(at for at, step in enumerate(stream.steps) if isinstance(step, StreamJoin))
        both = stream.steps[at - 1]
        assert isinstance(both, BothSides)
        self._both, self._pairing = both, pairing
        self._sides = tuple(JoinSide(stream, pairing, side) for side in (0, 1))
        before = replace(stream, steps=stream.steps[:at], keys=(), aggregates={})
        self.before = RowSteps(before, both.columns)

    @property
    def size(self) -> int:
        """The bytes of the buffered rows."""
        return sum(side.size for side in self._sides)

    def replay(self, offset: int, time: PartitionTime) -> tuple[int, PartitionTime]:
        """See `Join`."""
        return self._pairing.replay(0, offset, time)

    def join(self, rows: TimelyRows, refuse: Refuse, tally: Tally) -> Iterator[JoinedRows]:
        """See `Join`."""
        yield from self._join(rows, refuse, tally)
        yield from self._sides[0].emit_unmatched(tally)
        self._pairing.forget()

    def recall(self, rows: TimelyRows) -> None:
        """See `Join`."""
        for _ in self._join(rows, say_nothing, Tally()):
            pass
        self._pairing.forget()

    def unpaired(self) -> Unpaired:
        """See `Join`."""
        left, right = (side.unpaired() for side in self._sides)
        offsets = np.concatenate([left.offsets, right.offsets])
        messages, firsts = np.unique(offsets, return_index=True)
        return Unpaired(
            [*left.rows, *right.rows], messages, np.concatenate([left.times, right.times])[firsts]
        )

    def _join(self, rows: TimelyRows, refuse: Refuse, tally: Tally) -> Iterator[JoinedRows]:
        refusing = RefusedMessages(refuse, self._pairing, 0, rows.offsets)
        entered = []
        # Rows of the left are matched with earlier rows of the right; those of the right with all of the
        # left.
        for side, own in zip(self._sides, self._split(rows)):
            if (came := side.enter(own)) is not None:
                entered.append((side, came))
                self._pairing.share_counted(side.side, came.first)
                yield from side.pairs(came, refusing, tally)
        for side, came in entered:
            yield from side.without_partner(came, refusing, tally)
        for side, came in entered:
            side.mark_refused(came, refusing)
        tally.refused = len(refusing.refused)

    def _split(self, rows: TimelyRows) -> Iterator[TimelyRows]:
        """The left side's rows, then the right side's."""
        right = self._both.is_right(rows.left.frame).to_numpy()
        for side, mask in enumerate((~right, right)):
            kept = rows.left.keep(mask)
            own = replace(kept, frame=self._both.rows_of(side, kept.frame))
            yield replace(rows, left=own, times=rows.times[mask])
