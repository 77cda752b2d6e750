"""Cones among positions, against every pair by itself: over the poles, across 0°, at the edges of zones."""

from __future__ import annotations

import math

import numpy as np

from streamgauge.apps.supernova.catalogs.zones import Zones
from streamgauge.apps.supernova.sky import degrees_apart

from ....cases import each


def pairs(zones: Zones, ra: list[float], dec: list[float], arcseconds: float) -> list[tuple[int, int]]:
    cones, rows, apart = zones.within(np.array(ra), np.array(dec), arcseconds)
    assert (apart <= arcseconds).all()
    return list(zip(cones.tolist(), rows.tolist(), strict=True))


def plain(
    others: list[tuple[float, float]], centres: list[tuple[float, float]], arcseconds: float
) -> list[list[int]]:
    """Those of each cone, the nearest first; what lies on the edge within rounding is left to either."""
    result = []
    for ra, dec in centres:
        apart = [(degrees_apart(ra, dec, *other) * 3600, row) for row, other in enumerate(others)]
        assert not any(abs(distance - arcseconds) < 1e-7 for distance, _ in apart)
        result.append([row for distance, row in sorted(apart) if distance <= arcseconds])
    return result


@each("arcseconds", [0.5, 2.0, 30.0, 600.0, 3600.0])
@each(
    ("ra", "dec"),
    [(0.0, 0.0), (359.9999, 45.0), (180, 89.9999), (77, -89.99), (10, 90), (0, -90), (5, 1 / 60)],
)
def test_cones_hold_what_every_pair_by_itself_says(ra: float, dec: float, arcseconds: float) -> None:
    dice = np.random.default_rng(int(arcseconds * 10))
    size = 2 * arcseconds / 3600

    def drawn(count: int) -> list[tuple[float, float]]:
        """Around the place, at any distance from it, by moving along great circles."""
        turn, far = dice.uniform(0, 2 * math.pi, count), np.radians(dice.uniform(0, size, count))
        low = math.radians(dec)
        height = np.arcsin(math.sin(low) * np.cos(far) + math.cos(low) * np.sin(far) * np.cos(turn))
        east = np.arctan2(
            np.sin(turn) * np.sin(far) * math.cos(low), np.cos(far) - math.sin(low) * np.sin(height)
        )
        return list(zip((ra + np.degrees(east)).tolist(), np.degrees(height).tolist(), strict=True))

    others, centres = drawn(300), drawn(60)
    zones = Zones.of(*(np.array(column) for column in zip(*others, strict=True)))
    wanted = plain(others, centres, arcseconds)
    result = pairs(zones, *(list(column) for column in zip(*centres, strict=True)), arcseconds)
    assert sorted(result) == sorted((at, row) for at, rows in enumerate(wanted) for row in rows)
    assert [cone for cone, _ in result] == sorted(cone for cone, _ in result)
    assert len(result) > 100


def test_every_object_is_in_the_cone_around_itself_once() -> None:
    dice = np.random.default_rng(3)
    # The edges of zones, of a turn, and the poles among them.
    edges = [-360.0, -1e-14, 0.0, 1e-14, 359.99999999999994, 360.0]
    heights = [-90.0, -89.99999999999999, -1 / 60, 0.0, 1 / 60, 89.98333333333333, 90.0]
    ra = np.concatenate([np.repeat(edges, len(heights)), dice.uniform(-360, 360, 500)])
    dec = np.concatenate([np.tile(heights, len(edges)), dice.uniform(-90, 90, 500)])
    zones = Zones.of(ra, dec)
    for arcseconds in (1e-3, 3600.0):
        result = pairs(zones, ra.tolist(), dec.tolist(), arcseconds)
        assert {(at, at) for at in range(len(ra))} <= set(result) and len(set(result)) == len(result)


def test_nothing_is_near_what_has_no_position_or_among_no_objects() -> None:
    zones = Zones.of(np.array([10.0]), np.array([20.0]))
    assert pairs(zones, [math.nan, 10.0, 10.0], [20.0, math.nan, 20.0], 1) == [(2, 0)]
    assert pairs(zones, [], [], 1) == []
    assert pairs(Zones.of(np.array([]), np.array([])), [10.0], [20.0], 3600) == []
