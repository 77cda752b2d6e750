"""Adjacent windows of one length."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from .durations import Duration, duration_text
from .paned import Paned
from .table import LargerWindows, TableWindows
from .window import window_length


@dataclass(frozen=True, slots=True)
class TumblingTable(TableWindows):
    """Adjacent windows in a table: each row of the stream is in one of them."""

    kind: ClassVar[str] = "tumbling"
    side_by_side: ClassVar[bool] = True
    in_steps: ClassVar[bool] = True

    def fit_into(self, larger: LargerWindows) -> bool:
        """See `TableWindows`. Larger windows begin at multiples of their length, except on a calendar."""
        return larger.calendar or (larger.size_us % self.size_us == 0 and not self.offset_us)


@dataclass(frozen=True, slots=True)
class Tumbling(Paned):
    """Adjacent windows of one length.

    >>> import numpy as np
    >>> hours = Tumbling.every("1h")
    >>> hours.pane_starts(np.array([-1, 0, 3_600_000_001])).tolist()
    [-3600000000, 0, 3600000000]
    """

    kind: ClassVar[str] = "tumbling"
    of_panes: ClassVar[bool] = True

    @classmethod
    def every(cls, size: Duration) -> Tumbling:
        """Windows of `size`, such as ``"1m"``. Raises `ValueError` for an empty one."""
        return cls.of_length(window_length("a window must be longer", size))

    @classmethod
    def of_length(cls, size_us: int) -> Tumbling:
        """Windows of so many microseconds."""
        return cls(size_us, size_us)

    def definition(self) -> dict[str, str]:
        """As plain JSON."""
        return {"window": self.kind, "size": duration_text(self.size_us)}

    @classmethod
    def from_definition(cls, definition: Mapping[str, str]) -> Tumbling:
        """See `StreamWindows`."""
        return cls.every(definition["size"])

    def of_table(self) -> TumblingTable:
        """See `StreamWindows`."""
        return TumblingTable(self.size_us, self.size_us)


@dataclass(frozen=True, slots=True)
class NoWindows(Paned):
    """For forwarded rows: each row is a moment by itself, late once its partition is past it."""

    size_us: int = 1
    every_us: int = 1

    kind: ClassVar[str] = "none"

    def definition(self) -> dict[str, str]:
        """As plain JSON."""
        return {"window": self.kind}

    def of_table(self) -> TumblingTable:
        """See `StreamWindows`: for a table without rows."""
        return TumblingTable(self.size_us, self.every_us)
