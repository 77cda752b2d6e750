"""Areas of the earth from a small GeoJSON file, and tests of whether a place lies in them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

_EARTH = 6_371_008.8
"""Metres, the mean radius."""
_MOST_EDGES = 2_000
INSIDE = pl.List(pl.Struct({"fence": pl.String, "inside": pl.Int64}))

Point = tuple[float, float]
"""Longitude and latitude in degrees, as GeoJSON has them."""


@dataclass(frozen=True)
class Fence:
    """A named area: the rings of one or more polygons, or a circle around a point (metres)."""

    name: str
    rings: tuple[tuple[Point, ...], ...] = ()
    middle: Point | None = None
    radius: float = 0.0

    def holds(self, longitude: pl.Expr, latitude: pl.Expr) -> pl.Expr:
        """Whether a place lies in the area; null without a place.

        Edges are treated as straight lines in degrees, which is accurate to metres for areas the size of a
        city. A place on an edge may be on either side.
        """
        if self.middle is not None:
            return _distance(longitude, latitude, self.middle) <= self.radius
        crossed = [
            ((min(y1, y2) <= latitude) & (latitude < max(y1, y2)))
            & (longitude < (x2 - x1) * (latitude - y1) / (y2 - y1) + x1)
            for (x1, y1), (x2, y2) in self.edges()
            if y1 != y2
        ]
        # A ray from a point inside to the east crosses an odd number of edges, holes and islands included.
        return pl.sum_horizontal(*(one.cast(pl.Int64) for one in crossed), ignore_nulls=False) % 2 == 1

    def edges(self) -> Iterator[tuple[Point, Point]]:
        """Return the edges of all rings."""
        for ring in self.rings:
            yield from zip(ring, (*ring[1:], ring[0]))


def inside(fences: tuple[Fence, ...]) -> pl.Expr:
    """Return for each fence whether a row's `longitude` and `latitude` are in it: 1, 0, or null without a
    place."""
    if not fences:
        return pl.lit(None, INSIDE)
    longitude, latitude = pl.col("longitude"), pl.col("latitude")
    return pl.concat_list(
        pl.struct(fence=pl.lit(one.name), inside=one.holds(longitude, latitude).cast(pl.Int64))
        for one in fences
    )


def fences_in(path: str) -> tuple[Fence, ...]:
    """Read the fences of a GeoJSON file; none without a path.

    They are features of the types Polygon and MultiPolygon, and Points with a property `radius` in metres;
    the property `name` is the name. Raises `ValueError` for anything else.
    """
    if not path:
        return ()
    where = f"--set fences={path}"
    try:
        parsed = json.loads(Path(path).read_text(encoding="utf-8"))
        features = parsed["features"] if parsed["type"] == "FeatureCollection" else [parsed]
    except OSError as error:
        raise ValueError(f"{where}: {error.strerror}") from None
    except (ValueError, TypeError, KeyError):
        raise ValueError(f"{where}: it is not GeoJSON with features") from None
    fences = tuple(
        _fence(feature, f"{where}, feature {number}") for number, feature in enumerate(features, 1)
    )
    names = [one.name for one in fences]
    if double := [name for name in names if names.count(name) > 1]:
        raise ValueError(
            f"{where}: two features are named {double[0]!r}; their alerts are distinguished by name"
        )
    if (edges := sum(1 for one in fences for _ in one.edges())) > _MOST_EDGES:
        raise ValueError(f"{where}: its areas have {edges:,} edges; simplify them to {_MOST_EDGES:,} at most")
    return fences


def _fence(feature: Any, where: str) -> Fence:
    try:
        properties, shape = feature.get("properties") or {}, feature["geometry"]
        kind, points = shape["type"], shape["coordinates"]
        name = str(properties.get("name") or feature.get("id") or "")
        if not name:
            raise ValueError(f"{where}: give it a property 'name'")
        if kind == "Point":
            return Fence(name, middle=_point(points), radius=_radius(properties, where))
        polygons = {"Polygon": [points], "MultiPolygon": points}[kind]
        return Fence(name, tuple(tuple(map(_point, ring)) for polygon in polygons for ring in polygon))
    except (KeyError, TypeError, IndexError, AttributeError):
        raise ValueError(
            f"{where}: it is not a Polygon, a MultiPolygon, or a Point with a property 'radius' in metres"
        ) from None


def _point(given: Any) -> Point:
    longitude, latitude = float(given[0]), float(given[1])
    return longitude, latitude


def _radius(properties: Mapping[str, Any], where: str) -> float:
    radius = properties["radius"]
    if isinstance(radius, bool) or not isinstance(radius, int | float) or not 0 < radius < 1e7:
        raise ValueError(f"{where}: its radius must be a number of metres above 0, got {radius!r}")
    return float(radius)


def _distance(longitude: pl.Expr, latitude: pl.Expr, to: Point) -> pl.Expr:
    """Compute metres along a great circle (haversine)."""
    east, north = math.radians(to[0]), math.radians(to[1])
    up = ((latitude.radians() - north) / 2).sin().pow(2)
    across = ((longitude.radians() - east) / 2).sin().pow(2)
    part = up + latitude.radians().cos() * math.cos(north) * across
    return 2 * _EARTH * part.clip(0.0, 1.0).sqrt().arcsin()
