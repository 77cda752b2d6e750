"""Sketching a stream's rows once without Polars, whose threads would not survive a fork."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ...sketches.core.lazy import pl
from ..definition.stream import Stream
from ..grouping.arrow_columns import inline_strings
from ..sketching.panes import Sketches
from ..sketching.window_rows import rows_class
from ..table.schema import schema_of

_ROWS = 4096


@dataclass(frozen=True)
class SketchingKinds:
    """Everything that determines which kernels a stream's rows need as columns; it unpickles without Polars.

    `types` are the types of the rows' columns.

    >>> from streamgauge.operators.definition.aggregates import count
    >>> rows = Stream.from_schema({"lang": pl.String, "at": pl.Datetime("us")}, time="at")
    >>> SketchingKinds.of(rows.group_by("lang").tumbling("1m").agg(posts=count())).types["lang"]
    DataType(large_string)
    """

    schema: pa.Schema
    window: Any
    types: Mapping[str, pa.DataType]

    @classmethod
    def of(cls, stream: Stream) -> SketchingKinds:
        """Those of a stream."""
        row = stream.columns.to_frame().to_arrow(compat_level=pl.CompatLevel.oldest()).schema
        return cls(schema_of(stream), stream.complete().window, dict(zip(row.names, row.types)))

    def rehearse(self) -> pa.Table:
        """Sketch made-up rows, in one window, as in most batches, and in several; returns the table."""
        kind: Any = rows_class(self.window)
        sketches: Sketches = kind(self.schema, self.window)
        numbers = np.arange(_ROWS, dtype=np.int64)
        columns = {name: _column(kind) for name, kind in self.types.items()}
        inline_strings(np.zeros(16, np.uint8), 0, 1)
        for times in (np.zeros_like(numbers), numbers * 86_400_000_000):
            sketches.add_columns(columns, times)
        return sketches.drain()


def _column(kind: pa.DataType) -> pa.Array:
    """A column of this type; all null if numbers can't be converted to it."""
    if pa.types.is_large_list(kind):
        return pa.LargeListArray.from_arrays(np.arange(_ROWS + 1), _column(kind.value_type))
    try:
        return pa.array(np.arange(_ROWS) % 1000).cast(kind)
    except pa.ArrowException:
        return pa.nulls(_ROWS, kind)
