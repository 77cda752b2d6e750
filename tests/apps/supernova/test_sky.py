"""Cells of equal area, against numbers of astropy-healpix and against what equal area means."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from streamgauge.apps.supernova.sky import NSIDE, cell, degrees_apart

# From astropy_healpix.HEALPix(nside, order="ring").lonlat_to_healpix.
POSITIONS = [
    (225.034, 89.5),
    (322.997, -89.9),
    (279.247, 41.0),
    (81.075, -42.5),
    (108.06, 14.144),
    (314.479, 77.938),
    (1.896, -34.707),
    (295.642, -42.811),
    (286.945, 13.008),
    (168.457, -65.799),
    (109.092, -68.224),
    (100.233, 1.706),
    (91.753, -3.875),
    (160.227, 56.547),
]
CELLS = {
    1: [2, 11, 3, 8, 5, 3, 4, 11, 7, 9, 9, 5, 5, 1],
    64: [2, 49151, 8519, 41144, 18637, 603, 38273, 41543, 19276, 46969, 47328, 23751, 26049, 4040],
    1024: [
        247,
        12582907,
        2163817,
        10537558,
        4750541,
        139786,
        9869333,
        10568170,
        4875456,
        12029492,
        12133186,
        6102132,
        6712340,
        1042409,
    ],
}


def cells(ra: np.ndarray, dec: np.ndarray, nside: int) -> np.ndarray:
    return (
        pl.DataFrame({"ra": ra, "dec": dec})
        .select(cell(pl.col("ra"), pl.col("dec"), nside))
        .to_series()
        .to_numpy()
    )


@pytest.mark.parametrize("nside", [1, 64, 1024])
def test_cells_are_healpix_s(nside: int) -> None:
    ra, dec = (np.array(column) for column in zip(*POSITIONS))
    assert cells(ra, dec, nside).tolist() == CELLS[nside]


def test_cells_have_equal_areas_and_are_all_of_them() -> None:
    rng = np.random.default_rng(4)
    ra, dec = rng.random(400_000) * 360, np.degrees(np.arcsin(rng.random(400_000) * 2 - 1))
    counts = np.bincount(cells(ra, dec, 8), minlength=768)
    assert len(counts) == 768
    chi = ((counts - 400_000 / 768) ** 2 / (400_000 / 768)).sum()
    assert 600 < chi < 940  # 767 degrees of freedom, within 4.4 standard deviations


def test_the_edges_of_the_sky_have_cells() -> None:
    ra = np.array([0.0, 360.0, 0, 359.999999999, 90, 270])
    dec = np.array([90.0, 90.0, -90, -90, 0, 0])
    result = cells(ra, dec, NSIDE)
    assert result.min() == 0 and result.max() == 12 * NSIDE**2 - 1 and result[0] == result[1]


def test_angles_are_exact_where_they_are_small_and_where_they_are_not() -> None:
    assert degrees_apart(0, 90, 180, 90) == pytest.approx(0, abs=1e-12)
    assert degrees_apart(359.9999, 0, 0.0001, 0) == pytest.approx(0.0002)
    assert degrees_apart(10, 20, 190, -20) == pytest.approx(180)
    assert degrees_apart(0, 0, 0, 1e-9) == pytest.approx(1e-9, rel=1e-6)
