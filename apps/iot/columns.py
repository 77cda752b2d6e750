"""The columns that readings of every format have.

`at` is when it was measured, `sensor` by what, `value` what; `group` is the fleet, room or kind that sensors
are put together by, `arrived` when its message came to Kafka, `latitude` and `longitude` (degrees) are where
it was. `fences` says of each area of ``--set fences=…`` whether it lies in it. With ``--set routes=…``,
`off_route` is how many metres it is from its route.
"""

from __future__ import annotations

import polars as pl

from ...operators.definition.stream import Stream
from ..app import Settings
from .fences import fences_in, inside
from .routes import routes_in, with_distance

ARRIVED = {"arrived": "timestamp"}
"""What a format's stream takes from its messages for the column of this name."""

_KINDS = {
    "at": pl.Datetime("us", "UTC"),
    "sensor": pl.String(),
    "value": pl.Float64(),
    "group": pl.String(),
    "latitude": pl.Float64(),
    "longitude": pl.Float64(),
    "arrived": pl.Datetime("us", "UTC"),
}


def in_columns(rows: Stream, settings: Settings, keep: pl.Expr | None = None, **given: pl.Expr) -> Stream:
    """Rows in the columns of every format; those that are not given are null. A format may have further ones.

    A row with neither a value nor a place is filtered, unless it is one to `keep`. Raises `ValueError` for
    fences and routes that can't be read.
    """
    columns = {name: given.get(name, pl.lit(None)).cast(kind) for name, kind in _KINDS.items()}
    more = {name: column for name, column in given.items() if name not in columns}
    rows = rows.select(**columns, **more).with_columns(fences=inside(fences_in(settings["fences"])))
    if settings["routes"]:
        group = settings.get("group", "")
        rows = with_distance(rows, routes_in(settings["routes"], group), named=bool(group))
    has_reading = (pl.col("value").is_not_null() & pl.col("value").is_not_nan()) | pl.col(
        "latitude"
    ).is_not_null()
    return rows.filter(has_reading if keep is None else has_reading | keep)
