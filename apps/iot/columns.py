"""The columns that readings of every format have.

`at` is when it was measured, `sensor` by what, `value` what; `group` is the fleet, room or kind that sensors
are put together by, `latitude` and `longitude` (degrees) are where it was. `fences` says of each area of
``--set fences=…`` whether it lies in it.
"""

from __future__ import annotations

import polars as pl

from ...operators.definition.stream import Stream
from ..app import Settings
from .fences import fences_in, inside

_KINDS = {
    "at": pl.Datetime("us", "UTC"),
    "sensor": pl.String(),
    "value": pl.Float64(),
    "group": pl.String(),
    "latitude": pl.Float64(),
    "longitude": pl.Float64(),
}


def in_columns(rows: Stream, settings: Settings, **given: pl.Expr) -> Stream:
    """Rows in the columns of every format; those that are not given are null.

    A row with neither a value nor a place is filtered. Raises `ValueError` for fences that can't be read.
    """
    found = {name: given.get(name, pl.lit(None)).cast(kind) for name, kind in _KINDS.items()}
    rows = rows.select(**found).with_columns(fences=inside(fences_in(settings["fences"])))
    return rows.filter(
        (pl.col("value").is_not_null() & pl.col("value").is_not_nan()) | pl.col("latitude").is_not_null()
    )
