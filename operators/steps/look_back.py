"""A step that depends on earlier rows, with the steps of its stream before and after it.

It runs before anything that depends on more than the rows themselves: late rows, and rows of a clock that is
ahead, are remembered like all others, so that rereading gives the same result.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace

import numpy as np

from ..definition.sources import FrameSource
from ..definition.steps import RowStep
from ..definition.stream import Stream
from ..watermarks.partition_watermark import PartitionTime
from .row_steps import Refuse, RowSteps, Stepped, unique


class LookBack(ABC):
    """A step's memory of one partition's rows, and the steps of its stream before and after it."""

    def __init__(self, stream: Stream, step: RowStep) -> None:
        at = stream.steps.index(step)
        before = replace(stream, steps=stream.steps[:at], keys=(), aggregates={})
        after = replace(stream, source=FrameSource(before.columns), time=None, steps=stream.steps[at + 1 :])
        self.before = RowSteps(before, before.columns)
        self._after = RowSteps(after)

    @property
    @abstractmethod
    def size(self) -> int:
        """The bytes of its memory."""

    @abstractmethod
    def mark(
        self, left: Stepped, times: np.ndarray, timestamps_ms: np.ndarray | None, offsets: np.ndarray
    ) -> Stepped:
        """The rows after the step; remembers them. `offsets` are those of the caller's rows."""

    def drop(self, left: Stepped, times: np.ndarray, refuse: Refuse) -> tuple[Stepped, np.ndarray, int]:
        """The rows without duplicates after the other steps, their times, and the messages without a row."""
        messages = len(unique(left.numbers))
        if left.duplicate is not None and left.duplicate.any():
            times, left = times[~left.duplicate], left.keep(~left.duplicate)
        refused: set[int] = set()

        def refuse_messages(rows: np.ndarray, reason: str) -> None:
            for number in unique(left.numbers[rows]).tolist():
                if number not in refused:
                    refused.add(number)
                    refuse(np.array([number]), reason)

        result = self._after.apply(left.frame, refuse_messages)
        rows = Stepped(result.frame, left.numbers[result.numbers], 0)
        times = times[result.numbers]
        if refused:
            whole = ~np.isin(rows.numbers, list(refused))
            rows, times = rows.keep(whole), times[whole]
        return rows, times, messages - len(refused) - len(unique(rows.numbers))

    def forget(self, time: PartitionTime) -> None:
        """Forget what only late rows could need, given the partition's time."""
        return None

    @abstractmethod
    def replay_from(self, offset: int) -> int:
        """The offset from which to reread before continuing at `offset`."""
