"""`fill_forward` among a stream's steps: previous values, for rows with a null."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...sketches.core.lazy import pl
from ..definition.deduplication import Deduplicate
from ..definition.filling import FillForward
from ..definition.stream import Stream
from .deduplicator import Deduplicator
from .look_back import LookBack
from .row_steps import Stepped

_PLACE = "__place"


class ForwardFiller(LookBack):
    """The latest value of each key in the last messages of one partition, with its offset."""

    def __init__(self, stream: Stream, step: FillForward) -> None:
        super().__init__(stream, step)
        self._step = step
        names = [*step.by, step.column]
        types = replace(stream, steps=stream.steps[: stream.steps.index(step)]).columns
        schema = {**{name: types[name] for name in names}, _PLACE: pl.Int64()}
        self._known = pl.DataFrame(schema=schema)

    @property
    def size(self) -> int:
        """See `LookBack`."""
        return int(self._known.estimated_size())

    def mark(
        self, left: Stepped, times: np.ndarray, timestamps_ms: np.ndarray | None, offsets: np.ndarray
    ) -> Stepped:
        """See `LookBack`."""
        if not len(left.numbers):
            return left
        step, known = self._step, self._known
        places = pl.Series(_PLACE, offsets[left.numbers], pl.Int64)
        rows = left.frame.select(*step.by, step.column).with_columns(places)
        both = pl.concat([known, rows])
        filled = both.select(step.filled(pl.col(_PLACE)))
        frame = left.frame.with_columns(filled.slice(known.height).to_series())
        said = pl.all_horizontal(pl.col(name).is_not_null() for name in (*step.by, step.column))
        latest = both.filter(said).unique(subset=step.by, keep="last", maintain_order=True)
        self._known = latest.filter(pl.col(_PLACE) > int(places[-1]) - step.last)
        return replace(left, frame=frame)

    def replay_from(self, offset: int) -> int:
        """See `LookBack`."""
        return min(self._known[_PLACE].to_list(), default=offset)


def look_back_of(stream: Stream) -> LookBack | None:
    """The memory of earlier rows that a stream needs in a partition; None if each row is independent."""
    for step in stream.steps:
        if isinstance(step, Deduplicate):
            return Deduplicator(stream, step)
        if isinstance(step, FillForward):
            return ForwardFiller(stream, step)
    return None
