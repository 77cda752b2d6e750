"""How far moving things are from their routes: lines on the earth, by GTFS shapes, GeoJSON or CSV."""

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

_EARTH = 6_371_008.8
"""Metres, the mean radius."""
_MOST = 500_000
"""Segments of all routes."""
_AT_ONCE = 1 << 17
"""Pairs of a place and a segment that are looked at together: a column of them fits in the cache."""
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
    """The segments of each route (n × 4: longitude and latitude of both ends, degrees), and a digest of all.

    A segment is the straight line between its ends on a map around the place that is held against it. Of
    segments of up to 5 km, at latitudes of up to 65°, that line is within a metre or two of the shortest way
    between the ends; the earth is taken for a sphere, which is wrong by 0.6 % of the distance at most.
    """

    segments: Mapping[str, np.ndarray]
    digest: str

    @classmethod
    def of(cls, lines: Mapping[str, Sequence[Line]], where: str) -> Routes:
        """Of lines by the names of their routes. Raises `ValueError` for a line that is none."""
        found, told = {}, hashlib.sha256()
        for name, parts in sorted(lines.items()):
            pairs = [(*one, *other) for part in parts for one, other in pairwise(part)]
            ends = np.unique(np.array(pairs, np.float64).reshape(-1, 4), axis=0)
            if not len(ends):
                raise ValueError(f"{where}: the route {name!r} has one point only; a line has two or more")
            if not (np.abs(ends) <= (180.0, 90.0, 180.0, 90.0)).all():  # which NaN is not, either
                raise ValueError(
                    f"{where}: the route {name!r} has a point that is not on the earth; longitudes are from "
                    "-180 to 180, latitudes from -90 to 90, in degrees"
                )
            found[name] = ends
            told.update(name.encode() + b"\0" + ends.tobytes())
        if not found:
            raise ValueError(f"{where}: there is no route in it; {_FORMS}")
        if (many := sum(map(len, found.values()))) > _MOST:
            raise ValueError(f"{where}: it has {many:,} segments; simplify its lines to {_MOST:,} at most")
        return cls(found, told.hexdigest()[:16])

    def metres(self, longitude: np.ndarray, latitude: np.ndarray, names: Sequence[str | None]) -> np.ndarray:
        """The distance of each place from the route of its name; NaN for a name that no route has."""
        found = np.full(len(longitude), np.nan)
        numbers = {name: number for number, name in enumerate(self.segments)}
        which = np.array([numbers.get(name or "", -1) for name in names], np.int64)
        for name, number in numbers.items():
            rows = np.flatnonzero(which == number)
            if len(rows):
                found[rows] = nearest(longitude[rows], latitude[rows], self.segments[name])
        return found

    def metres_from_any(self, longitude: np.ndarray, latitude: np.ndarray) -> np.ndarray:
        """The distance of each place from the nearest of all routes."""
        return nearest(longitude, latitude, np.concatenate(list(self.segments.values())))


def nearest(longitude: np.ndarray, latitude: np.ndarray, segments: np.ndarray) -> np.ndarray:
    """Metres from places to the nearest of some segments.

    >>> equator = np.array([[8.0, 0.0, 9.0, 0.0]])
    >>> nearest(np.array([8.5, 9.0]), np.array([0.01, 0.0]), equator).round(2).tolist()
    [1111.95, 0.0]
    """
    found = np.empty(len(longitude))
    step = max(1, _AT_ONCE // len(segments))
    for low in range(0, len(longitude), step):
        rows = slice(low, low + step)
        found[rows] = _nearest(longitude[rows, None], latitude[rows, None], segments.T)
    return found


def _nearest(longitude: np.ndarray, latitude: np.ndarray, segments: np.ndarray) -> np.ndarray:
    east1, north1, east2, north2 = segments
    # The second end is reckoned from the first, so that no segment goes around the earth.
    across1 = _around(east1 - longitude)
    across2 = across1 + _around(east2 - east1)
    x1, y1 = _on_map(across1, latitude, north1)
    x2, y2 = _on_map(across2, latitude, north2)
    dx, dy = x2 - x1, y2 - y1
    length = dx * dx + dy * dy
    along = np.clip(-(x1 * dx + y1 * dy) / np.where(length > 0, length, 1.0), 0.0, 1.0)
    return np.hypot(x1 + along * dx, y1 + along * dy).min(axis=1)


def _on_map(across: np.ndarray, latitude: np.ndarray, north: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Metres to the east and to the north of a place."""
    shrunk = np.cos(np.radians((latitude + north) / 2))
    return _EARTH * np.radians(across) * shrunk, _EARTH * np.radians(north - latitude)


def _around(degrees: np.ndarray) -> np.ndarray:
    return (degrees + 180.0) % 360.0 - 180.0


def with_distance(rows: Stream, routes: Routes, named: bool) -> Stream:
    """Rows with `off_route`, metres from the route that is their `group`, or from any unless `named`.

    Null without a place, and for a group that no route is named.
    """
    function = partial(_measured, routes, routes.digest, named)
    return rows.map_batches(function, {**rows.columns, "off_route": pl.Float64()})


def _measured(routes: Routes, digest: str, named: bool, rows: pl.DataFrame) -> pl.DataFrame:
    places = rows.select("longitude", "latitude", "group").with_row_index("row")
    places = places.filter(pl.col("longitude").is_finite() & pl.col("latitude").is_finite())
    at = places["longitude"].to_numpy(), places["latitude"].to_numpy()
    metres = routes.metres(*at, places["group"].to_list()) if named else routes.metres_from_any(*at)
    found = np.full(rows.height, np.nan)
    found[places["row"].to_numpy()] = metres
    return rows.with_columns(pl.Series("off_route", found).fill_nan(None))


def routes_in(path: str, group: str = "") -> Routes:
    """The routes of a file.

    Of GTFS's shapes.txt, with its trips.txt beside it, the lines of a route or a trip are its shapes, if
    `group` is ``route`` or ``trip``; else each shape is a route of its own. Raises `ValueError` for what
    can't be read.
    """
    where, file = f"--set routes={path}", Path(path)
    try:
        head = file.read_bytes()[:1_000].lstrip(b"\xef\xbb\xbf \t\r\n")
        if head[:1] == b"{":
            return Routes.of(_of_geojson(file), where)
        names = head.split(b"\n", 1)[0].decode().strip().replace('"', "").split(",")
        if set(_SHAPES) <= set(names):
            return Routes.of(_of_gtfs(file, group, where), where)
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
    found: dict[str, list[Line]] = {}
    for feature in whole["features"] if whole["type"] == "FeatureCollection" else [whole]:
        name, shape = str(feature["properties"]["name"]), feature["geometry"]
        lines = {"LineString": [shape["coordinates"]], "MultiLineString": shape["coordinates"]}[shape["type"]]
        found.setdefault(name, []).extend([(float(x), float(y)) for x, y, *_ in line] for line in lines)
    return found


def _of_csv(path: Path) -> dict[str, list[Line]]:
    return {name: [line] for name, line in _lines(_read(path), *_PLAIN)}


def _of_gtfs(path: Path, group: str, where: str) -> dict[str, list[Line]]:
    points = _read(path).with_columns(pl.col("shape_pt_sequence").cast(pl.Int64))
    ordered = points.sort("shape_id", "shape_pt_sequence")
    shapes = dict(_lines(ordered, "shape_id", "shape_pt_lat", "shape_pt_lon"))
    if group not in ("route", "trip"):
        return {name: [line] for name, line in shapes.items()}
    trips = path.with_name("trips.txt")
    if not trips.is_file():
        raise ValueError(
            f"{where}: which {group} has which shape is said by trips.txt, which is not beside it; put it "
            "there, both are in the same archive of GTFS"
        )
    found: dict[str, list[Line]] = {}
    pairs = _read(trips).select(f"{group}_id", "shape_id").unique(maintain_order=True)
    for name, shape in pairs.iter_rows():
        if shape in shapes and name:
            found.setdefault(name, []).append(shapes[shape])
    return found


def _read(path: Path) -> pl.DataFrame:
    """A CSV file as text."""
    found = pl.read_csv(path, infer_schema=False)
    return found.rename({name: name.strip() for name in found.columns})


def _lines(rows: pl.DataFrame, name: str, latitude: str, longitude: str) -> Iterator[tuple[str, Line]]:
    """The points of each name, in the order of rows; what is no number is not on the earth."""
    given = rows.select(
        pl.col(name),
        *(pl.col(one).str.strip_chars().cast(pl.Float64, strict=False) for one in (longitude, latitude)),
    ).fill_null(math.nan)
    for (key,), part in given.partition_by(name, as_dict=True, maintain_order=True).items():
        yield str(key), part.select(longitude, latitude).rows()
