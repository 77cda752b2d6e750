"""The constellations of sky maps: lines from GeoJSON, small, and where the stars are."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import accumulate, pairwise

import pytest

from streamgauge.apps.page.constellations import FILE, lines_of, module


def drawn(*lines: list[list[float]]) -> dict[str, object]:
    return {"features": [{"id": "Xxx", "geometry": {"type": "MultiLineString", "coordinates": lines}}]}


def test_a_line_that_crosses_twelve_hours_continues_beyond_180_degrees() -> None:
    assert list(lines_of(drawn([[170, 10], [-175, 12], [-170, 14]], [[-170, 0], [175, 1]]))) == [
        [(170, 10), (185, 12), (190, 14)],
        [(-170, 0), (-185, 1)],
    ]


def test_the_module_has_a_line_for_each_stroke_and_the_licence() -> None:
    text = module(
        drawn([[10, 50], [10.5, 50.25]], [[-3, -4.5], [2, 1]]), "Copyright (c) 2015, X\n\nAll of it.\n"
    )
    assert text.endswith("export const LINES = `\n1000 5000 50 25\n-300 -450 500 550`;\n")
    assert "// Copyright (c) 2015, X\n//\n// All of it.\n" in text


def stored() -> Iterator[list[tuple[float, float]]]:
    """The lines of the bundled file, in degrees."""
    for line in FILE.read_text().split("`")[1].strip().split("\n"):
        numbers = [int(number) for number in line.split(" ")]
        yield [(x / 100, y / 100) for x, y in zip(accumulate(numbers[::2]), accumulate(numbers[1::2]))]


_STARS = {
    "Mintaka": (83.00, -0.30),
    "Alnilam": (84.05, -1.20),
    "Alnitak": (85.19, -1.94),
    "Dubhe": (165.93, 61.75),
    "Polaris": (37.95, 89.26),
    "Acrux": (186.65, -63.10),
    "Alpheratz": (2.10, 29.09),
    "Deneb": (310.36, 45.28),
}
"""Right ascension and declination (J2000) of stars whose figures everybody knows."""


@pytest.mark.parametrize("star", _STARS)
def test_a_figure_passes_through_its_star(star: str) -> None:
    ra, dec = _STARS[star]
    narrow = math.cos(math.radians(dec))
    away = [abs((x - ra + 180) % 360 - 180) * narrow + abs(y - dec) for line in stored() for x, y in line]
    assert min(away) < 0.1


def test_the_file_is_small_and_no_stroke_runs_around_the_sky() -> None:
    lines = list(stored())
    assert len(lines) > 88 and FILE.stat().st_size < 16_000
    assert max(abs(x - before) for line in lines for (before, _), (x, _) in pairwise(line)) <= 180
