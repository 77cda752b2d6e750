"""What people ask of sensors and vehicles."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import polars as pl

from ...operators.definition.aggregates import distinct, last, quantiles
from ...operators.definition.aggregates import sum as sum_
from ...operators.definition.stream import Stream
from .scenario import Row, at, in_order, scenario

READINGS = {"at": pl.Datetime("us"), "device": pl.String, "value": pl.Float64, "state": pl.String}


def _lights() -> Iterator[Row]:
    for minute in range(0, 60, 5):
        state = "ON" if 20 <= minute < 40 else "OFF"
        yield {"at": at(minute), "device": "hall light", "state": state}
        yield {"at": at(minute), "device": "kitchen light", "state": "OFF"}


@scenario(
    "things",
    READINGS,
    _lights,
    rules="""
        [[rule]]
        name = "light"
        kind = "threshold"
        value = "lit"
        at_least = 1
    """,
    readings=True,
    alerts=[("fired", "hall light"), ("cleared", "hall light")],
)
def light_turns_on(readings: Stream) -> Stream:
    """A light turns on."""
    lit = readings.with_columns(lit=(pl.col("state") == "ON").cast(pl.Int64))
    return lit.group_by("device", "at").tumbling("1m").agg(lit=last("lit"))


def _rain() -> Iterator[Row]:
    for minute in range(0, 240, 5):
        mm = 0.4 if 90 <= minute < 120 or minute == 135 else 0.0
        yield {"at": at(minute), "device": "garden", "value": mm}


@scenario(
    "things",
    READINGS,
    _rain,
    rules="""
        [[rule]]
        name = "rain"
        kind = "threshold"
        value = "mm"
        above = 0
        release = "30m"
        unit = "mm"
    """,
    alerts=[("fired", "garden"), ("cleared", "garden")],
)
def rain_starts(readings: Stream) -> Stream:
    """It starts to rain."""
    return readings.group_by("device").tumbling("5m").agg(mm=sum_("value"))


def _temperature(name: str, low: float, high: float) -> Iterator[Row]:
    """A day that warms up until the fifth hour and cools down again."""
    for minute in range(0, 600, 10):
        share = 1 - abs(minute - 300) / 300
        yield {"at": at(minute), "device": name, "value": round(low + (high - low) * share, 2)}


@scenario(
    "things",
    READINGS,
    lambda: in_order(_temperature("greenhouse", 18, 33), _temperature("cellar", 11, 14)),
    rules="""
        [[rule]]
        name = "hot"
        kind = "threshold"
        value = "value"
        at_least = 30
        clear = 29
        unit = "°C"
    """,
    readings=True,
    alerts=[("fired", "greenhouse"), ("cleared", "greenhouse")],
)
def temperature_reached(readings: Stream) -> Stream:
    """The temperature reaches 30 °C."""
    return readings.group_by("device", "at").tumbling("1m").agg(value=last("value"))


@scenario(
    "things",
    READINGS,
    lambda: in_order(_temperature("office", 20, 27)),
    rules="""
        [[rule]]
        name = "cool"
        kind = "threshold"
        value = "value"
        below = 22
        clear = 25
        hold = "10m"

        [rule.command]
        topic = "commands"
        fired = { device = "$key", ac = "off" }
        cleared = { device = "$key", ac = "on" }
    """,
    readings=True,
    alerts=[("fired", "office"), ("cleared", "office"), ("fired", "office")],
    commands=[
        ("commands", {"device": "office", "ac": "off"}),
        ("commands", {"device": "office", "ac": "on"}),
        ("commands", {"device": "office", "ac": "off"}),
    ],
)
def air_conditioning_off(readings: Stream) -> Stream:
    """The air conditioning is switched off when the room has been cool for ten minutes."""
    return readings.group_by("device", "at").tumbling("1m").agg(value=last("value"))


PLACES = {
    "at": pl.Datetime("us"),
    "vehicle": pl.String,
    "latitude": pl.Float64,
    "longitude": pl.Float64,
    "segment": pl.String,
    "km_per_hour": pl.Float64,
}


def _bus() -> Iterator[Row]:
    for minute in range(30):
        yield {
            "at": at(minute),
            "vehicle": "bus 5",
            "latitude": 60.17 + minute / 1000,
            "longitude": 24.94 - minute / 1000,
        }


def _positions(windows: pl.DataFrame) -> Any:
    return list(windows.sort("window_start").select("latitude", "longitude").iter_rows())


@scenario(
    "things",
    PLACES,
    _bus,
    answer=_positions,
    answers=[(60.17 + m / 1000, 24.94 - m / 1000) for m in (9, 19, 29)],
)
def vehicle_position(places: Stream) -> Stream:
    """Where a vehicle is."""
    latest = {name: last(name) for name in ("latitude", "longitude")}
    return places.group_by("vehicle").tumbling("10m").agg(**latest)


def _traffic() -> Iterator[Row]:
    dice = random.Random(12)
    for minute in range(120):
        for segment in ("bridge", "tunnel"):
            jam = segment == "bridge" and 40 <= minute < 80
            for car in range(4):
                yield {
                    "at": at(minute + car / 5),
                    "vehicle": f"car {dice.randrange(400)}",
                    "segment": segment,
                    "km_per_hour": round(max(dice.gauss(9 if jam else 48, 5), 0.5), 1),
                }


@scenario(
    "things",
    PLACES,
    lambda: in_order(_traffic()),
    rules="""
        [[rule]]
        name = "slow road"
        kind = "threshold"
        value = "speed.p50"
        below = 15
        clear = 30
        hold = "5m"
        support = { vehicles = 5 }

        [rule.command]
        topic = "routes"
        fired = { avoid = "$key" }
        cleared = { use = "$key" }
    """,
    alerts=[("fired", "bridge"), ("cleared", "bridge")],
    commands=[("routes", {"avoid": "bridge"}), ("routes", {"use": "bridge"})],
)
def another_route(places: Stream) -> Stream:
    """Another route is taken while one is slow."""
    by_segment = places.filter(pl.col("segment").is_not_null()).group_by("segment").tumbling("5m")
    return by_segment.agg(vehicles=distinct("vehicle"), speed=quantiles("km_per_hour"))
