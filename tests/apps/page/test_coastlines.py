"""The land of maps: from TopoJSON, small, and where land is."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from streamgauge.apps.page.coastlines import FILE, module, packed, rings_of

ROOT = Path(__file__).resolve().parents[3]


def topology() -> dict[str, Any]:
    """Two squares: one of two arcs, of which the second is walked backwards, and one that is an arc alone."""
    square = [[0, 0], [10, 0], [0, 10], [-10, 0], [0, -10]]
    return {
        "transform": {"scale": [0.5, 0.25], "translate": [-180, -90]},
        "arcs": [[[0, 0], [4, 0], [0, 4]], [[0, 0], [0, 4], [4, 0]], square],
        "objects": {
            "land": {
                "type": "GeometryCollection",
                "geometries": [
                    {"type": "MultiPolygon", "arcs": [[[0, -2]]]},
                    {"type": "Polygon", "arcs": [[2]]},
                ],
            }
        },
    }


def test_rings_are_made_of_arcs_either_way() -> None:
    rings = list(rings_of(topology()))
    assert rings[0] == [(-180, -90), (-178, -90), (-178, -89), (-180, -89), (-180, -90)]
    assert rings[1] == [(-180, -90), (-175, -90), (-175, -87.5), (-180, -87.5), (-180, -90)]
    text = module(topology())
    assert text.endswith("`;\n") and packed(rings[0]) == "-18000 -9000 200 0 0 100 -200 0 0 -100"
    assert packed(rings[0]) in text


def test_a_ring_goes_on_beyond_the_date_line_and_is_closed_at_the_pole() -> None:
    made = {**topology(), "transform": {"scale": [1, 1], "translate": [-180, -90]}}
    made["objects"]["land"] = {"type": "Polygon", "arcs": [[0]]}
    made["arcs"] = [[[359, 90], [-357, 0], [357, 4], [0, -4]]]
    assert list(rings_of(made)) == [[(179, 0), (182, 0), (179, 4), (179, 0)]]
    made["arcs"] = [[[0, 20], [120, 1], [120, 1], [120, -2]]]
    pole = [(180, -90), (-180, -90), (-180, -70)]
    assert list(rings_of(made)) == [[(-180, -70), (-60, -69), (60, -68), (180, -70), *pole]]


def shipped() -> list[list[tuple[float, float]]]:
    """The rings of the file, read as the page reads them."""
    rings = []
    for line in FILE.read_text().split("`")[1].strip().split("\n"):
        numbers, x, y, ring = list(map(int, line.split())), 0, 0, []
        for east, north in zip(numbers[::2], numbers[1::2]):
            x, y = x + east, y + north
            ring.append((x / 100, y / 100))
        rings.append(ring)
    return rings


def inside(place: tuple[float, float], ring: list[tuple[float, float]]) -> bool:
    """Whether a line to the east crosses the ring an odd number of times."""
    (x, y), crossed = place, False
    for (x0, y0), (x1, y1) in zip(ring, [*ring[1:], ring[0]]):
        if (y0 > y) != (y1 > y) and x < (x1 - x0) * (y - y0) / (y1 - y0) + x0:
            crossed = not crossed
    return crossed


@pytest.mark.parametrize(
    ("place", "land"),
    [
        ((10.4, 51.2), True),  # Germany
        ((-84.1, 9.9), True),  # Costa Rica
        ((138.3, 36.2), True),  # Honshu
        ((0.0, -89.0), True),  # Antarctica
        ((178.0, 67.0), True),  # Chukotka, on both sides of the date line
        ((-175.0, 67.0), True),
        ((-30.0, 40.0), False),  # the Atlantic
        ((-140.0, 0.0), False),  # the Pacific
        ((51.0, 42.0), False),  # the Caspian, a hole in the land
    ],
)
def test_the_file_has_land_where_land_is(place: tuple[float, float], land: bool) -> None:
    x, y = place
    around = sum(inside((x + turn, y), ring) for ring in shipped() for turn in (-360, 0, 360))
    assert bool(around % 2) == land


def test_the_file_is_small_closed_and_says_whose_it_is() -> None:
    assert FILE.stat().st_size < 100_000
    rings = shipped()
    assert len(rings) > 100 and all(ring[0] == ring[-1] for ring in rings)
    assert all(abs(x) <= 540 and abs(y) <= 90 for ring in rings for x, y in ring)
    # No ring jumps to the other end of the map.
    steps = [abs(b[0] - a[0]) for ring in rings for a, b in pairwise(ring) if b[1] > -90]
    assert max(steps) < 30
    assert (
        "Made with Natural Earth" in FILE.read_text()[:600]
        and "Natural Earth" in (ROOT / "NOTICE").read_text()
    )
