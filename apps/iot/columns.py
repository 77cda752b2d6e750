"""The columns of readings in every format.

`at` is the time of measurement, `sensor` the sensor's name, `value` the measured value; `group` is the fleet,
room or kind by which sensors are grouped, `arrived` the time when the message came to Kafka, `latitude` and
`longitude` (degrees) the place. `fences` says for each area of ``--set fences=…`` whether the place lies in
it. With ``--set routes=…``, `off_route` is the distance from the route in metres.
"""

from __future__ import annotations

import polars as pl

from ...operators.definition.stream import Stream
from ..app import Settings
from .fences import fences_in, inside
from .routes import routes_in, with_distance

ARRIVED = {"arrived": "timestamp"}
"""The message field that a format's stream reads for the column of this name."""

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
    """Convert rows to the common columns; missing ones are null. A format may have further columns.

    A row with neither a value nor a place is filtered, unless `keep` selects it. Raises `ValueError` for
    unreadable fences and routes.
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
