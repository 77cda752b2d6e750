"""Cones over millions of positions: in zones of declination, by right ascension in each.

Source: Gray, Nieto-Santisteban & Szalay 2006, "The zones algorithm for finding points-near-a-point or
cross-matching spatial datasets" (arXiv:cs/0701171).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

_ZONES_A_DEGREE = 60
_ARCSECONDS = 3600.0
_SLACK = 1e-8
"""Degrees, 0.04 mas: more than the rounding of keys. Rows that are too far are dropped by their distance."""

_POLAR = 1e-3
"""Degrees: cones this close to a pole are searched all around it, as the arc sine is inexact there."""

Doubles = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Zones:
    """Positions in the order of their zones: 20 bytes each.

    A key is the zone's number times 360 plus the right ascension, so in each zone that a cone reaches, it is
    one run of keys, or two if it crosses 0°.
    """

    keys: Doubles
    declinations: Doubles
    rows: npt.NDArray[np.uint32]

    @classmethod
    def of(cls, ra: Doubles, dec: Doubles) -> Zones:
        """Index positions in degrees; right ascensions may be any angle, declinations are from −90 to 90."""
        return cls.sort(zone_keys(ra, dec), dec)

    @classmethod
    def sort(cls, keys: Doubles, dec: Doubles) -> Zones:
        """Index positions by their keys, which are sorted in place."""
        order = np.argsort(keys)
        keys.sort()
        return cls(keys, dec[order], order.astype(np.uint32))

    def within(self, ra: Doubles, dec: Doubles, arcseconds: float) -> tuple[Numbers, Numbers, Doubles]:
        """Find all pairs within a distance: the cone's number, the row's, and the distance in arcseconds.

        Pairs are in the order of the cones, then by distance, then by row. Cones with an unknown centre (NaN)
        have none.
        """
        radius = arcseconds / _ARCSECONDS
        cones = np.flatnonzero(np.isfinite(ra) & np.isfinite(dec))
        centre, height = np.mod(ra[cones], 360.0), dec[cones]
        low, high = _zone(height - radius - _SLACK), _zone(height + radius + _SLACK)
        reached = high - low + 1
        at = np.repeat(np.arange(len(cones)), reached)
        zone = np.repeat(low, reached) + _ranks(reached)
        # In right ascension, a cone is wider nearer to a pole, and a whole turn if it contains one.
        polar = np.abs(height) + radius >= 90.0 - _POLAR
        ratio = np.sin(np.radians(radius)) / np.cos(np.radians(np.where(polar, 0.0, height)))
        wide = np.where(polar, 180.0, np.degrees(np.arcsin(np.minimum(ratio, 1.0))) + _SLACK)
        begin, end = centre[at] - wide[at], centre[at] + wide[at]
        whole = wide[at] >= 180.0
        begin[whole], end[whole] = 0.0, 360.0
        # The part below 0° or above 360° is a run of its own at the other end of the zone.
        before, behind = begin < 0.0, end > 360.0
        runs = (
            np.concatenate([at, at[before], at[behind]]),
            np.concatenate([zone, zone[before], zone[behind]]) * 360.0,
            np.concatenate([np.maximum(begin, 0.0), begin[before] + 360.0, np.zeros(behind.sum())]),
            np.concatenate([np.minimum(end, 360.0), np.full(before.sum(), 360.0), end[behind] - 360.0]),
        )
        at, offset, begin, end = runs
        first = np.searchsorted(self.keys, offset + begin, "left")
        # 360° has the same key as 0° in the next zone.
        last = np.searchsorted(self.keys, np.nextafter(offset + end, 0.0), "right")
        sizes = np.maximum(last - first, 0)
        cone, place = np.repeat(at, sizes), np.repeat(first, sizes) + _ranks(sizes)
        right = np.mod(self.keys[place], 360.0)
        apart = _degrees_apart(centre[cone], height[cone], right, self.declinations[place]) * _ARCSECONDS
        near = np.flatnonzero(apart <= arcseconds)
        cone, row, apart = cone[near], self.rows[place[near]].astype(np.int64), apart[near]
        order = np.lexsort((row, apart, cone))
        cone, row, apart = cones[cone[order]], row[order], apart[order]
        return cone, row, apart


def zone_keys(ra: Doubles, dec: Doubles) -> Doubles:
    """Return the keys of positions in degrees."""
    keys = np.mod(ra, 360.0)
    # A tiny negative angle is rounded up to a whole turn.
    keys[keys >= 360.0] = 0.0
    zones = _zone(dec) * 360.0
    return np.minimum(keys + zones, np.nextafter(zones + 360.0, 0.0))


def _zone(dec: Doubles) -> Numbers:
    """Return the number of a declination's zone; beyond a pole, the last zone's."""
    zones = np.floor((np.clip(dec, -90.0, 90.0) + 90.0) * _ZONES_A_DEGREE).astype(np.int64)
    return np.minimum(zones, 180 * _ZONES_A_DEGREE - 1)


def _ranks(sizes: Numbers) -> Numbers:
    """Return 0, 1, … for each run, one run after the other."""
    ends = np.cumsum(sizes)
    return np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - sizes, sizes)


def _degrees_apart(ra: Doubles, dec: Doubles, other_ra: Doubles, other_dec: Doubles) -> Doubles:
    """Like `sky.degrees_apart`, for arrays."""
    lon, a, b = np.radians(other_ra - ra), np.radians(dec), np.radians(other_dec)
    east = np.cos(b) * np.sin(lon)
    north = np.cos(a) * np.sin(b) - np.sin(a) * np.cos(b) * np.cos(lon)
    along = np.sin(a) * np.sin(b) + np.cos(a) * np.cos(b) * np.cos(lon)
    apart: Doubles = np.degrees(np.arctan2(np.hypot(east, north), along))
    return apart
