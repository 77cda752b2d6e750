"""The sky in cells of equal area (HEALPix, ring order), as an expression.

Source: Górski et al. 2005 (ApJ 622, 759), section 4.1; the numbers are those of `healpy.ang2pix` and
`astropy_healpix`.
"""

from __future__ import annotations

import math

import polars as pl

NSIDE = 64
"""49,152 cells of 0.84 square degrees, 55′ across."""


def cell(ra: pl.Expr, dec: pl.Expr, nside: int = NSIDE) -> pl.Expr:
    """Return the cell of a position in degrees (ICRS), a number from 0 to 12·nside² − 1.

    >>> pl.select(cell(pl.lit(185.7288), pl.lit(15.8236))).item()
    17668
    """
    z = dec.radians().sin()
    turn = (ra % 360.0) / 90.0
    return (
        pl.when(z.abs() <= 2 / 3).then(_belt(z, turn, nside)).otherwise(_cap(z, turn, nside)).cast(pl.Int64)
    )


def _belt(z: pl.Expr, turn: pl.Expr, nside: int) -> pl.Expr:
    """Return the cell around the equator, where rings have 4·nside cells."""
    along, across = nside * (0.5 + turn), nside * 0.75 * z
    up, down = (along - across).floor(), (along + across).floor()
    ring = nside + 1 + up - down
    shift = 1 - ring % 2
    place = ((up + down - nside + shift + 1) / 2).floor() % (4 * nside)
    return 2 * nside * (nside - 1) + (ring - 1) * 4 * nside + place


def _cap(z: pl.Expr, turn: pl.Expr, nside: int) -> pl.Expr:
    """Return the cell around the poles, where ring n has 4·n cells."""
    part = turn - turn.floor()
    width = nside * (3 * (1 - z.abs())).sqrt()
    up, down = (part * width).floor(), ((1 - part) * width).floor()
    ring = up + down + 1
    place = (turn * ring).floor() % (4 * ring)
    north = 2 * ring * (ring - 1) + place
    return pl.when(z > 0).then(north).otherwise(12 * nside * nside - 2 * ring * (ring + 1) + place)


def degrees_apart(ra: float, dec: float, other_ra: float, other_dec: float) -> float:
    """Return the angle between two positions, in degrees; also exact for small angles (Vincenty's formula).

    >>> round(degrees_apart(10.0, 60.0, 10.0 + 2 / 3600, 60.0) * 3600, 6)
    1.0
    """
    lon = math.radians(other_ra - ra)
    a, b = math.radians(dec), math.radians(other_dec)
    east = math.cos(b) * math.sin(lon)
    north = math.cos(a) * math.sin(b) - math.sin(a) * math.cos(b) * math.cos(lon)
    along = math.sin(a) * math.sin(b) + math.cos(a) * math.cos(b) * math.cos(lon)
    return math.degrees(math.atan2(math.hypot(east, north), along))
