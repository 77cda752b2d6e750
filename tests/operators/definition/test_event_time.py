"""What a stream takes for its event time, in which unit, and what it refuses."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_series_equal

from streamgauge.operators.definition.event_time import in_utc
from streamgauge.operators.definition.stream import Stream

from ...cases import each


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
def test_numbers_are_times_once_their_unit_is_said(unit: str) -> None:
    value = 1_767_225_601 * {"s": 1, "ms": 10**3, "us": 10**6}[unit]
    stream = Stream.from_schema({"at": pl.Int64}, time=pl.from_epoch("at", time_unit=unit))
    result = in_utc(pl.DataFrame({"at": [value, 0, None]}).select(stream.time).to_series())
    assert result.to_physical().to_list() == [1_767_225_601_000_000, 0, None]


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (pl.Datetime("ms"), "2026-01-01T00:00:01"),
        (pl.Datetime("us", "UTC"), "2026-01-01T00:00:01Z"),
        (pl.Datetime("ns", "Europe/Berlin"), "2026-01-01T01:00:01+01:00"),
        (pl.String, "2026-01-01T00:00:01.000Z"),
        (pl.String, "2026-01-01T02:00:01+02:00"),
    ],
)
def test_every_way_to_write_a_time_gives_the_same_microseconds(dtype, value: str) -> None:
    column = pl.Series("at", [value])
    if dtype != pl.String:
        zone = dtype.time_zone
        column = column.str.to_datetime(time_unit=dtype.time_unit, time_zone=zone)
    result = column.to_frame().select(Stream.from_schema({"at": dtype}, time="at").time).to_series()
    assert in_utc(result).to_physical().to_list() == [1_767_225_601_000_000]


@each("unit", ["ms", "us", "ns"])
@each("zone", [None, "UTC", "Europe/Berlin", "America/New_York"])
def test_times_are_the_microseconds_that_polars_itself_gives(unit, zone: str | None) -> None:
    instants = np.random.default_rng(3).integers(-(10**12), 10**12, 1000)
    times = pl.Series([*instants.tolist(), -1, 0, 999, -1001, None], dtype=pl.Int64).cast(pl.Datetime(unit))
    zoned = times.dt.replace_time_zone("UTC")
    given = times if zone is None else zoned.dt.convert_time_zone(zone)
    assert_series_equal(in_utc(given), zoned.dt.cast_time_unit("us"))
