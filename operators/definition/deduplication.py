"""Deduplication by id, as a step of a stream."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...sketches.core.errors import StreamgaugeError
from ...sketches.core.lazy import pl
from ..windows.durations import duration_text

MANY = 10_000_000
"""The number of ids that one partition may hold at a time: about a gigabyte."""


MOST = 20_000_000
"""The largest capacity of a filter: 200 to 1,100 megabytes."""


class TooManyIds(StreamgaugeError, RuntimeError):
    """A partition has more ids within reach than `deduplicate` may hold."""


@dataclass(frozen=True, eq=False)
class Deduplicate:
    """Keep the first of several rows with one id that are close to one another.

    Rows are close if their event times are less than `within_us` apart or, if that is None, if fewer than
    `last` messages of their partition lie between them. With `fpp`, another row is mistaken for a duplicate
    with that probability, as long as there are at most `capacity` ids. Applied to a frame, the step does
    nothing: which rows it drops is known only once rows are ordered by event time
    (`steps.deduplicator`).
    """

    ids: tuple[str, ...]
    within_us: int | None
    limit: int = MANY
    last: int | None = None
    fpp: float | None = None
    capacity: int | None = None
    verb = "deduplicate"
    drops_rows = True

    def check(self, schema: Mapping[str, Any]) -> None:
        """Raise `TypeError` for ids that aren't names or are nested, `ValueError` for unknown columns."""
        if not self.ids:
            raise TypeError('deduplicate: name the column of the id, as in .deduplicate("id", within="10m")')
        if wrong := [name for name in self.ids if not isinstance(name, str)]:
            raise TypeError(
                f'deduplicate: {wrong[0]!r} is not a name; write .deduplicate("id", within="10m")'
            )
        for name in self.ids:
            if name not in schema:
                raise ValueError(f"deduplicate: no column {name!r} in {', '.join(schema)}")
            if schema[name].is_nested():
                raise TypeError(f"deduplicate: {name!r} is of type {schema[name]}; name its parts one by one")
        if type(self.limit) is not int or self.limit < 1:
            raise ValueError(f"deduplicate: limit must be an integer ≥ 1, got {self.limit!r}")
        if (self.within_us is None) == (self.last is None):
            raise ValueError(
                "deduplicate: set the largest distance between duplicates, either in event time, as in "
                'within="10m", or in messages of a partition, as in last=100_000'
            )
        if self.last is not None and (type(self.last) is not int or not 1 <= self.last <= self.limit):
            raise ValueError(
                "deduplicate: last must be a number of messages from 1 to the limit, "
                f"{self.limit:,}, got {self.last!r}"
            )
        if self.within_us is not None and self.within_us < 1:
            raise ValueError(
                "deduplicate: within must be a duration above 0, the largest distance between duplicates"
            )
        if self.fpp is not None or self.capacity is not None:
            self._check_filter()

    def _check_filter(self) -> None:
        if self.fpp is None or self.capacity is None:
            raise ValueError(
                "deduplicate: fpp and capacity go together: the share of rows that may be dropped by mistake "
                "and the number of ids that a partition has in within=, as in fpp=0.001, capacity=1_000_000"
            )
        if self.last is not None:
            raise ValueError(
                "deduplicate: last keeps exact ids; leave out fpp and capacity, or write within="
            )
        if self.limit != MANY:
            raise ValueError("deduplicate: fpp and capacity fix the memory; leave out limit")
        if type(self.fpp) is not float or not 1e-9 <= self.fpp <= 0.1:
            raise ValueError(f"deduplicate: fpp must be a number from 1e-9 to 0.1, got {self.fpp!r}")
        if type(self.capacity) is not int or not 1 <= self.capacity <= MOST:
            raise ValueError(
                f"deduplicate: capacity must be an integer from 1 to {MOST:,}, got {self.capacity!r}"
            )

    def apply(self, frame: pl.LazyFrame, carried: tuple[str, ...] = ()) -> pl.LazyFrame:
        """Return `frame` unchanged: the step doesn't change the columns."""
        return frame

    def definition(self) -> list[Any]:
        """As plain JSON: the verb, the id's columns, the reach, and the false positive rate unless exact.

        The limit and the capacity are left out, because they may change between runs.
        """
        stretch = (
            f"last={self.last}" if self.within_us is None else f'within="{duration_text(self.within_us)}"'
        )
        rate = [] if self.fpp is None else [f"fpp={self.fpp!r}"]
        return [self.verb, *map(json.dumps, self.ids), stretch, *rate]
