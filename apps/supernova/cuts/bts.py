"""The cuts of the Bright Transient Survey, for objects that may be worth a spectrum.

Source: Perley et al. 2020 (ApJ 904, 35), Fremling et al. 2020 (ApJ 895, 32), the survey's own filter
(https://zenodo.org/records/4054129), and its present form in Fink (`fink-filters`, transient_complete), whose
numbers these are: they are stricter in `drb` and reach 19.8 instead of 19 magnitudes.
"""

from __future__ import annotations

import polars as pl

from .cut import Cut, CutSet, unless, wants

FAINTEST = 19.8

_mag, _age, _rb, _drb = (pl.col(name) for name in ("mag", "age", "rb", "drb"))
_score, _distance = pl.col("sgscore1"), pl.col("distpsnr1")
_gaia, _gaia_mag = pl.col("neargaia"), pl.col("maggaia")
_magnr, _distnr = pl.col("magnr"), pl.col("distnr")


def _magnitude(name: str) -> pl.Expr:
    """Return a catalogue's magnitude; null if it has none, which 0 or less also means."""
    return pl.when(pl.col(name) > 0).then(pl.col(name))


_r, _i, _g, _z = (_magnitude(f"s{band}mag1") for band in "rigz")
_ps1 = pl.coalesce(*(pl.when(mag < 30).then(mag) for mag in (_r, _i, _g)))
"""The magnitude of the nearest Pan-STARRS source, in r, or else in i or g."""
_ps1_brightest = pl.min_horizontal(_r, _i, _g, _z)
_old = _age > 90


def _brighter(r: float, i: float, z: float) -> pl.Expr:
    return (_r < r) | (_i < i) | (_z < z)


_rb_near_stars = (
    (_rb < 0.35) & (_gaia < 1) & (_gaia_mag < 17),
    (_rb < 0.35) & (_distance < 1) & (_score > 0.49) & _brighter(17, 17, 16.5),
    (_rb < 0.45) & (_gaia < 1.5) & (_gaia_mag < 15.5),
    (_rb < 0.45) & (_distance < 1.5) & (_score > 0.49) & _brighter(15.5, 15.5, 15),
)
_drb_near_stars = (
    (_drb < 0.9) & (_distance < 3) & (_ps1 < 16) & _old,
    (_drb < 0.9) & (_distance < 1.1) & (_ps1 < 18) & _old,
    (_drb < 0.95) & (_distance < 1.5) & (_ps1 < 15.5) & _old,
    (_drb < 0.95) & (_distance < 0.8) & (_ps1 < 17.5) & _old,
)
_star_underneath = (
    (_score > 0.76) & (_distance < 2.5),
    (_score > 0.2) & (_distance < 1) & (_r - _z > 3),
    (_score > 0.2) & (_distance < 1) & (_r - _i > 3),
)
_bright_neighbour = (
    (pl.col("neargaiabright") < 20) & (pl.col("maggaiabright") < 12),
    *(
        (pl.col(f"distpsnr{n}") < 20) & (_magnitude(f"srmag{n}") < 14) & (pl.col(f"sgscore{n}") > 0.9)
        for n in (1, 2, 3)
    ),
    (_distance < 20) & (_i < 14) & (_score > 0.9),
    (_distance < 10) & (_z < 14) & (_score > 0.9),
)
_at_peak = _mag <= pl.col("peak")
_passes = pl.when(_age > 360).then(1).otherwise(2)
"""How often an old object must have been bright without having been classified: less for older ones."""
_on_reference = (
    ((_distnr < 0.4) & (_magnr < 19.5))
    | ((_distnr < 0.8) & (_magnr < 17.5))
    | ((_distnr < 1.2) & (_magnr < 15.5))
)
_reference = _magnr > 0
_on_gaia = _gaia_mag > 0
_variable = (
    _old
    & (pl.col("detections") > 30)
    & (pl.col("bright_before") >= _passes)
    & _reference
    & ~(_at_peak & (_mag < 18.5))
    & _on_reference,
    _on_gaia & (_gaia < 0.35) & (_gaia_mag < 17) & (_age > 30),
    _on_gaia & (_gaia < 0.35) & (_gaia_mag < 19) & (_age > 300) & (_mag > 18.5),
    _on_gaia & (_gaia < 0.2) & (_gaia_mag < 18) & _old,
    (_score > 0.25) & (_distance < 3) & _old & (_ps1_brightest < 16),
    (_score == 0.5) & (_distance < 0.5) & _old & (_ps1_brightest < 17),
    _reference & (_magnr < _mag - 1) & _old & (_distnr < 0.5) & ~_at_peak,
    pl.col("detections") > 200,
)
_asteroid = (
    pl.col("roid") != 0,
    (pl.col("ssdistnr") >= 0) & (pl.col("ssdistnr") < 12) & (pl.col("ssmagnr") < 20),
)

BTS = CutSet(
    "bts",
    "bright transients that may be worth a spectrum",
    "Perley et al. 2020, ApJ 904, 35; fink-filters, transient_complete",
    (
        Cut("positive", "brighter than the reference image", wants(pl.col("positive"))),
        Cut("bright", f"brighter than {FAINTEST}", wants(_mag < FAINTEST)),
        Cut("lasting", "not at 19 or fainter within 0.75 d", unless(pl.col("faint_lately"))),
        Cut(
            "real",
            "rb above 0.2 and drb at least 0.8, more near bright stars",
            wants((_rb > 0.2) & (_drb >= 0.8)) & unless(*_rb_near_stars, *_drb_near_stars),
        ),
        Cut("no star underneath", "not on a star of Pan-STARRS", unless(*_star_underneath)),
        Cut("no bright neighbour", "no bright star within 20″", unless(*_bright_neighbour)),
        Cut("not variable", "no old, much-seen source on a catalogued one", unless(*_variable)),
        Cut("stationary", "a positive detection more than 0.02 d apart", wants(pl.col("repeated"))),
        Cut("no asteroid", "no known body of the solar system", unless(*_asteroid)),
    ),
    FAINTEST,
)
