"""Distances of vehicles from their routes: lines on the earth, from GTFS shapes, GeoJSON or CSV."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl

from ...operators.definition.stream import Stream
from ...sketches.core.compilation.jit import lean

_EARTH = 6_371_008.8
"""Metres, the mean radius."""
_MOST = 500_000
"""The most segments of all routes together."""
_SHAPES = ("shape_id", "shape_pt_lat", "shape_pt_lon", "shape_pt_sequence")
_PLAIN = ("route", "latitude", "longitude")
_FORMS = (
    f"it is CSV with the columns {', '.join(_PLAIN)}, a row a point, GTFS's shapes.txt, or GeoJSON with "
    "LineStrings that have a property 'name'"
)

Line = Sequence[tuple[float, float]]
"""Points in degrees, longitude first."""


@dataclass(frozen=True)
class Routes:
    """Lines by name, the lines of each route, and a digest of all.

    A line is an array of segments (n × 4: longitude and latitude of both ends, degrees). A segment is
    straight on a map centred on the compared place. For segments of up to 5 km, at latitudes of up to 65°,
    this is within a metre or two of the shortest path between the ends; the earth is treated as a sphere,
    which causes an error of at most 0.6 % of the distance.
    """

    lines: Mapping[str, np.ndarray]
    of_route: Mapping[str, Sequence[str]]
    digest: str

    @classmethod
    def of(
        cls,
        lines: Mapping[str, Sequence[Line]],
        where: str,
        of_route: Mapping[str, Sequence[str]] | None = None,
    ) -> Routes:
        """Make routes from lines in one or more parts; each line is its own route unless `of_route` says
        which.

        Raises `ValueError` for a line that is not a segment.
        """
        segments = {}
        for name, parts in sorted(lines.items()):
            pairs = [(*one, *other) for part in parts for one, other in pairwise(part)]
            ends = np.unique(np.array(pairs, np.float64).reshape(-1, 4), axis=0)
            if not len(ends):
                raise ValueError(f"{where}: the line {name!r} has one point only; a line has two or more")
            if not (np.abs(ends) <= (180.0, 90.0, 180.0, 90.0)).all():  # also catches NaN
                raise ValueError(
                    f"{where}: the line {name!r} has a point that is not on the earth; longitudes are from "
                    "-180 to 180, latitudes from -90 to 90, in degrees"
                )
            segments[name] = ends
        routes = {name: (name,) for name in segments} if of_route is None else dict(sorted(of_route.items()))
        if not routes:
            raise ValueError(f"{where} has no route; {_FORMS}")
        if (many := sum(map(len, segments.values()))) > _MOST:
            raise ValueError(f"{where}: it has {many:,} segments; simplify its lines to {_MOST:,} at most")
        digest = hashlib.sha256(json.dumps([list(segments), list(routes.items())]).encode())
        for ends in segments.values():
            digest.update(ends.tobytes())
        return cls(segments, routes, digest.hexdigest()[:16])

    def segments(self, route: str) -> np.ndarray:
        """Return the segments of all lines of a route."""
        return np.concatenate([self.lines[line] for line in self.of_route[route]])

    def metres(self, longitude: np.ndarray, latitude: np.ndarray, routes: Sequence[str | None]) -> np.ndarray:
        """Return the distance of each place from its route in metres; NaN for an unknown route."""
        metres = np.full(len(longitude), np.nan)
        rows: dict[str, list[int]] = {}
        for row, route in enumerate(routes):
            if route is not None and route in self.of_route:
                rows.setdefault(route, []).append(row)
        for route, own in rows.items():
            metres[own] = nearest(longitude[own], latitude[own], self.segments(route))
        return metres

    def metres_from_any(self, longitude: np.ndarray, latitude: np.ndarray) -> np.ndarray:
        """Return the distance of each place from the nearest line in metres."""
        return nearest(longitude, latitude, np.concatenate(list(self.lines.values())))


def nearest(longitude: np.ndarray, latitude: np.ndarray, segments: np.ndarray) -> np.ndarray:
    """Return the metres from places to the nearest segment.

    >>> equator = np.array([[8.0, 0.0, 9.0, 0.0]])
    >>> nearest(np.array([8.5, 9.0]), np.array([0.01, 0.0]), equator).round(2).tolist()
    [1111.95, 0.0]
    """
    distances = np.empty(len(longitude))
    _fill_nearest(np.ascontiguousarray(longitude), np.ascontiguousarray(latitude), segments, distances)
    return distances


@lean
def _fill_nearest(longitude, latitude, segments, distances):
    """Fill `distances` with the metres from each place to the nearest segment."""
    radian = math.pi / 180.0
    for i in range(len(longitude)):
        best = np.inf
        for j in range(len(segments)):
            north1, north2 = segments[j, 1] - latitude[i], segments[j, 3] - latitude[i]
            # A segment is no nearer than its nearer end in north-south direction.
            if north1 * north2 > 0:
                apart = min(abs(north1), abs(north2)) * radian
                if apart * apart >= best:
                    continue
            # The second end is relative to the first, so that no segment goes around the earth.
            east1 = (segments[j, 0] - longitude[i] + 180.0) % 360.0 - 180.0
            east2 = east1 + (segments[j, 2] - segments[j, 0] + 180.0) % 360.0 - 180.0
            x1 = east1 * radian * math.cos((latitude[i] + north1 / 2) * radian)
            x2 = east2 * radian * math.cos((latitude[i] + north2 / 2) * radian)
            y1, y2 = north1 * radian, north2 * radian
            dx, dy = x2 - x1, y2 - y1
            length = dx * dx + dy * dy
            along = 0.0 if length == 0.0 else min(1.0, max(0.0, -(x1 * dx + y1 * dy) / length))
            x, y = x1 + along * dx, y1 + along * dy
            best = min(best, x * x + y * y)
        distances[i] = _EARTH * math.sqrt(best)


def with_distance(rows: Stream, routes: Routes, named: bool) -> Stream:
    """Add `off_route`, the metres from the route named by `group`, or from any route unless `named`.

    Null without a place, and for a group without a route.
    """
    function = partial(_measured, routes, routes.digest, named)
    return rows.map_batches(function, {**rows.columns, "off_route": pl.Float64()})


def _measured(routes: Routes, digest: str, named: bool, rows: pl.DataFrame) -> pl.DataFrame:
    places = rows.select("longitude", "latitude", "group").with_row_index("row")
    places = places.filter(pl.col("longitude").is_finite() & pl.col("latitude").is_finite())
    at = places["longitude"].to_numpy(), places["latitude"].to_numpy()
    metres = routes.metres(*at, places["group"].to_list()) if named else routes.metres_from_any(*at)
    distances = np.full(rows.height, np.nan)
    distances[places["row"].to_numpy()] = metres
    return rows.with_columns(pl.Series("off_route", distances).fill_nan(None))


def routes_in(path: str, group: str = "") -> Routes:
    """Read the routes of a file.

    For GTFS's shapes.txt, with trips.txt beside it, the lines of a route or a trip are its shapes if `group`
    is ``route`` or ``trip``; else each shape is its own route. Raises `ValueError` for unreadable files.
    """
    where, file = f"--set routes={path}", Path(path)
    try:
        head = file.read_bytes()[:1_000].lstrip(b"\xef\xbb\xbf \t\r\n")
        if head[:1] == b"{":
            return Routes.of(_of_geojson(file), where)
        names = head.split(b"\n", 1)[0].decode().strip().replace('"', "").split(",")
        if set(_SHAPES) <= set(names):
            return _of_gtfs(file, group, where)
        if set(_PLAIN) <= set(names):
            return Routes.of(_of_csv(file), where)
    except OSError as error:
        raise ValueError(f"{where}: {error.strerror}") from None
    except (KeyError, TypeError, IndexError, AttributeError, UnicodeDecodeError, json.JSONDecodeError):
        raise ValueError(f"{where}: it can't be read; {_FORMS}") from None
    except pl.exceptions.PolarsError as error:
        raise ValueError(f"{where}: {str(error).splitlines()[0]}") from None
    raise ValueError(f"{where}: it can't be read; {_FORMS}")


def _of_geojson(path: Path) -> dict[str, list[Line]]:
    whole = json.loads(path.read_text(encoding="utf-8-sig"))
    by_route: dict[str, list[Line]] = {}
    for feature in whole["features"] if whole["type"] == "FeatureCollection" else [whole]:
        name, shape = str(feature["properties"]["name"]), feature["geometry"]
        lines = {"LineString": [shape["coordinates"]], "MultiLineString": shape["coordinates"]}[shape["type"]]
        by_route.setdefault(name, []).extend([(float(x), float(y)) for x, y, *_ in line] for line in lines)
    return by_route


def _of_csv(path: Path) -> dict[str, list[Line]]:
    return {name: [line] for name, line in _lines(_read(path), *_PLAIN)}


def _of_gtfs(path: Path, group: str, where: str) -> Routes:
    points = _read(path).with_columns(pl.col("shape_pt_sequence").str.strip_chars().cast(pl.Int64))
    ordered = points.sort("shape_id", "shape_pt_sequence")
    shapes = {name: [line] for name, line in _lines(ordered, "shape_id", "shape_pt_lat", "shape_pt_lon")}
    if group not in ("route", "trip"):
        return Routes.of(shapes, where)
    trips = path.with_name("trips.txt")
    if not trips.is_file():
        raise ValueError(
            f"{where}: trips.txt, which names the shape of each {group}, is missing; put it beside this "
            "file, both are in the same GTFS archive"
        )
    by_route: dict[str, list[str]] = {}
    pairs = _read(trips).select(f"{group}_id", "shape_id").unique(maintain_order=True)
    for name, shape in pairs.iter_rows():
        if shape in shapes and name:
            by_route.setdefault(name, []).append(shape)
    return Routes.of(shapes, where, by_route)


def _read(path: Path) -> pl.DataFrame:
    """Read a CSV file as text."""
    frame = pl.read_csv(path, infer_schema=False)
    return frame.rename({name: name.strip() for name in frame.columns})


def _lines(rows: pl.DataFrame, name: str, latitude: str, longitude: str) -> Iterator[tuple[str, Line]]:
    """Return the points of each name, in row order; values that aren't numbers become invalid points."""
    given = rows.select(
        pl.col(name),
        *(pl.col(one).str.strip_chars().cast(pl.Float64, strict=False) for one in (longitude, latitude)),
    ).fill_null(math.nan)
    for (key,), part in given.partition_by(name, as_dict=True, maintain_order=True).items():
        yield str(key), part.select(longitude, latitude).rows()
