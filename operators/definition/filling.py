"""Filling nulls from previous rows, as a step of a stream."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...sketches.core.lazy import pl
from .deduplication import MANY

_ROW = "__row"


@dataclass(frozen=True, eq=False)
class FillForward:
    """Replace a null in a column by the previous value of the same keys, within so many messages.

    Values from previous batches are known only where a partition's rows pass in order
    (`steps.forward_filler`); the step by itself only sees the rows of one frame.
    """

    column: str
    by: tuple[str, ...]
    last: int
    verb = "fill_forward"
    drops_rows = False

    def check(self, schema: Mapping[str, Any]) -> None:
        """Raise `TypeError` for anything but names of columns, `ValueError` for unknown columns."""
        for name in (self.column, *self.by):
            if not isinstance(name, str):
                raise TypeError(f'fill_forward: {name!r} is not a name; write .fill_forward("ip", by="pid")')
            if name not in schema:
                raise ValueError(f"fill_forward: no column {name!r} in {', '.join(schema)}")
        if not self.by or self.column in self.by:
            raise ValueError(
                "fill_forward: by must name the columns whose values group the rows, and not "
                f"{self.column!r} itself"
            )
        if type(self.last) is not int or not 1 <= self.last <= MANY:
            raise ValueError(
                f"fill_forward: last must be a number of messages from 1 to {MANY:,}, got {self.last!r}"
            )

    def filled(self, place: pl.Expr) -> pl.Expr:
        """The filled column, given each row's position among the messages."""
        own = pl.col(self.column)
        known = pl.all_horizontal(pl.col(name).is_not_null() for name in self.by)
        source = pl.when(own.is_not_null()).then(place).forward_fill().over(*self.by)
        near = known & (place - source < self.last)
        return pl.when(near).then(own.forward_fill().over(*self.by)).otherwise(own).alias(self.column)

    def apply(self, frame: pl.LazyFrame, carried: tuple[str, ...] = ()) -> pl.LazyFrame:
        """Fill nulls from the rows of `frame` itself."""
        numbered = frame.with_row_index(_ROW)
        return numbered.with_columns(self.filled(pl.col(_ROW).cast(pl.Int64))).drop(_ROW)

    def definition(self) -> list[Any]:
        """As plain JSON: the verb, the column, its keys, the number of messages."""
        return [self.verb, json.dumps(self.column), f"by={json.dumps(list(self.by))}", f"last={self.last}"]
