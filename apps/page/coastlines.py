"""The land on the page's maps, made from Natural Earth's 1:110m land in npm's `world-atlas`.

``npm pack world-atlas@2.0.2``, unpack it, and ``python -m streamgauge.apps.page.coastlines land-110m.json``
writes `files/land.js` again. Natural Earth is in the public domain.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent / "files" / "land.js"
_HUNDREDTHS = 100
_HEAD = """\
// All land, a ring a line: longitude and latitude in hundredths of a degree, each less the one before; what
// lies on both sides of the date line goes on beyond 180.
// Made with Natural Earth, free vector and raster map data @ naturalearthdata.com: 1:110m land, in the
// public domain. By apps/page/coastlines.py, which says how.

export const LAND = `
"""


def rings_of(topology: Mapping[str, Any]) -> Iterator[list[tuple[float, float]]]:
    """Return the rings of the object `land` of a TopoJSON, in degrees.

    Source: https://github.com/topojson/topojson-specification, version 1.0.
    """
    (x_scale, y_scale), (x_first, y_first) = (topology["transform"][name] for name in ("scale", "translate"))
    arcs = []
    for arc in topology["arcs"]:
        xs, ys = (accumulate(step) for step in zip(*arc))
        arcs.append([(x * x_scale + x_first, y * y_scale + y_first) for x, y in zip(xs, ys)])
    for polygon in _polygons(topology["objects"]["land"]):
        for ring in polygon:
            points: list[tuple[float, float]] = []
            for number in ring:
                arc = arcs[number] if number >= 0 else arcs[~number][::-1]
                points += arc[1:] if points else arc  # the first point is the last one of the previous arc
            yield _unrolled(points)


def _unrolled(ring: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Continue a ring beyond the date line; close a ring around the south pole there."""
    points = [ring[0]]
    for x, y in ring[1:]:
        last = points[-1][0]
        points.append((x - 360 * round((x - last) / 360), y))
    if round(points[-1][0] - points[0][0]):
        points += [(points[-1][0], -90.0), (points[0][0], -90.0), points[0]]
    return points


def _polygons(shape: Mapping[str, Any]) -> Iterator[Sequence[Sequence[int]]]:
    if shape["type"] == "GeometryCollection":
        for one in shape["geometries"]:
            yield from _polygons(one)
    elif shape["type"] == "MultiPolygon":
        yield from shape["arcs"]
    elif shape["type"] == "Polygon":
        yield shape["arcs"]


def packed(ring: Sequence[tuple[float, float]]) -> str:
    """Encode a ring as a line of numbers.

    >>> packed([(10.0, 50.0), (10.5, 50.25), (10.5, 50.25), (10.0, 50.0)])
    '1000 5000 50 25 -50 -25'
    """
    numbers: list[int] = []
    last = 0, 0
    for x, y in ring:
        point = round(x * _HUNDREDTHS), round(y * _HUNDREDTHS)
        if not numbers or point != last:
            numbers += [point[0] - last[0], point[1] - last[1]]
        last = point
    return " ".join(map(str, numbers))


def module(topology: Mapping[str, Any]) -> str:
    """Return the text of `files/land.js`."""
    return _HEAD + "\n".join(packed(ring) for ring in rings_of(topology)) + "`;\n"


if __name__ == "__main__":
    FILE.write_text(module(json.loads(Path(sys.argv[1]).read_text())))
