"""What people ask of telescopes and their alerts."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import polars as pl

from ...operators.definition.aggregates import count, last
from ...operators.definition.aggregates import min as min_
from ...operators.definition.stream import Stream
from .scenario import Row, at, scenario

EXPOSURES = {"at": pl.Datetime("us"), "telescope": pl.String, "field": pl.Int64}


def _exposures() -> Iterator[Row]:
    for number in range(40):
        yield {"at": at(number), "telescope": "T1", "field": 512 if number < 25 else 617}
        yield {"at": at(number + 0.2), "telescope": "T2", "field": 88}


@scenario(
    "astronomy",
    EXPOSURES,
    _exposures,
    rules="""
        [[rule]]
        name = "moved"
        kind = "change"
        value = "field"
        against = "last"
        by = "distance"
        above = 0
        every = true
    """,
    readings=True,
    alerts=[("fired", "T1")],
)
def telescope_moves(exposures: Stream) -> Stream:
    """The telescope moves to another field."""
    return exposures.group_by("telescope", "at").tumbling("1m").agg(field=last("field"))


DETECTIONS = {
    "at": pl.Datetime("us"),
    "object": pl.String,
    "ra": pl.Float64,
    "dec": pl.Float64,
    "magnitude": pl.Float64,
    "flux": pl.Float64,
    "score": pl.Float64,
    "to_star": pl.Float64,
}
"""`score` is the real-bogus classifier's, `to_star` the distance to the nearest known star (arc seconds)."""


def _flux() -> Iterator[Row]:
    dice = random.Random(2)
    for minute in range(120):
        for name in ("S1", "S2"):
            flare = 60.0 * (0.7 ** (minute - 70)) if name == "S2" and minute >= 70 else 0.0
            yield {"at": at(minute), "object": name, "flux": round(100 + dice.gauss(0, 2) + flare, 2)}


@scenario(
    "astronomy",
    DETECTIONS,
    _flux,
    rules="""
        [[rule]]
        name = "flash"
        kind = "change"
        value = "flux"
        against = "mean"
        over = 60
        by = "z"
        above = 7
        warm = 20
        cooldown = "1h"
    """,
    readings=True,
    alerts=[("fired", "S2"), ("cleared", "S2")],
)
def source_flashes(detections: Stream) -> Stream:
    """A source flashes."""
    return detections.group_by("object", "at").tumbling("1m").agg(flux=last("flux"))


_NIGHT = 1_440


def _nights() -> Iterator[Row]:
    dice = random.Random(8)
    for night in range(9):
        objects = {
            "SN": 19.5 - 0.25 * night,
            "variable": 18 + 0.4 * (night % 2),
            "bogus": 20 - 0.3 * night,
            "at a star": 19 - 0.3 * night,
        }
        for number, (name, magnitude) in enumerate(objects.items()):
            yield {
                "at": at(night * _NIGHT + number),
                "object": name,
                "magnitude": round(magnitude + dice.gauss(0, 0.03), 3),
                "score": 0.2 if name == "bogus" else 0.95,
                "to_star": 0.3 if name == "at a star" else 9.0,
            }


@scenario(
    "astronomy",
    DETECTIONS,
    _nights,
    rules="""
        [[rule]]
        name = "rising"
        kind = "slope"
        value = "magnitude"
        below = -0.1
        over = "10d"
        rate = "1d"
        least = 5
        surely = true
        unit = "mag"
    """,
    alerts=[("fired", "SN")],
)
def possible_supernovae(detections: Stream) -> Stream:
    """Possible supernovae: real, away from stars, and brighter from night to night."""
    real = detections.filter(pl.col("score") > 0.8, pl.col("to_star") > 2)
    return real.group_by("object").tumbling("1d").agg(seen=count(), magnitude=min_("magnitude"))


def _asteroid() -> Iterator[Row]:
    for minute in range(0, 180, 5):
        yield {"at": at(minute), "object": "2026 AB", "ra": 150 + minute / 100, "dec": 2 - minute / 400}
        yield {"at": at(minute + 1), "object": "star", "ra": 80.0, "dec": -5.0}


def _track(windows: pl.DataFrame) -> Any:
    """Where the asteroid was last in each half hour."""
    rows = windows.filter(pl.col("object") == "2026 AB").sort("window_start")
    return [(ra, dec) for ra, dec in rows.select("ra", "dec").iter_rows()]


@scenario(
    "astronomy",
    DETECTIONS,
    _asteroid,
    answer=_track,
    answers=[(150 + m / 100, 2 - m / 400) for m in (25, 55, 85, 115, 145, 175)],
)
def tracked_object(detections: Stream) -> Stream:
    """An object is tracked across the sky."""
    return detections.group_by("object").tumbling("30m").agg(ra=last("ra"), dec=last("dec"))


def _nearby() -> Iterator[Row]:
    for minute in range(60):
        yield {"at": at(minute), "object": "faint", "ra": 10.0, "dec": 20.0, "magnitude": 19.0}
    yield {"at": at(60), "object": "bright", "ra": 210.8, "dec": 54.35, "magnitude": 12.4}
    yield {"at": at(70), "object": "faint", "ra": 10.0, "dec": 20.0, "magnitude": 19.1}


@scenario(
    "astronomy",
    DETECTIONS,
    _nearby,
    rules="""
        [[rule]]
        name = "bright"
        kind = "threshold"
        value = "magnitude"
        below = 14

        [rule.command]
        topic = "pointing"
        fired = { target = "$key", exposure = "300s" }
    """,
    readings=True,
    alerts=[("fired", ["bright", 210.8, 54.35])],
    commands=[("pointing", {"target": ["bright", 210.8, 54.35], "exposure": "300s"})],
)
def telescope_sent(detections: Stream) -> Stream:
    """The telescope is sent to an important object."""
    each = detections.group_by("object", "ra", "dec", "at")
    return each.tumbling("1m").agg(magnitude=min_("magnitude"))


def _candidates() -> Iterator[Row]:
    for minute in range(720):
        few = 240 <= minute < 480
        if minute % (45 if few else 6) == 0:
            yield {"at": at(minute), "object": f"c{minute}", "score": 0.95}


@scenario(
    "astronomy",
    DETECTIONS,
    _candidates,
    rules="""
        [[rule]]
        name = "few candidates"
        kind = "threshold"
        value = "candidates"
        below = 4
        clear = 8
        absent = 0

        [rule.command]
        topic = "settings"
        fired = { least_score = 0.7 }
        cleared = { least_score = 0.9 }
    """,
    alerts=[("fired", None), ("cleared", None)],
    commands=[("settings", {"least_score": 0.7}), ("settings", {"least_score": 0.9})],
)
def lowered_threshold(detections: Stream) -> Stream:
    """The filter's threshold is lowered while few candidates come."""
    return detections.filter(pl.col("score") >= 0.9).tumbling("1h").agg(candidates=count())
