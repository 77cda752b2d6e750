"""Cuts that separate real detections from artefacts."""

from __future__ import annotations

import polars as pl

from .cut import Cut, CutSet, wants

PURITY = CutSet(
    "purity",
    "a relatively pure sample of detections",
    "F. Masci, IPAC; https://zwickytransientfacility.github.io/ztf-avro-alert/filtering.html",
    (
        Cut("real", "real/bogus score at least 0.65", wants(pl.col("rb") >= 0.65)),
        Cut("clean", "no bad pixels", wants(pl.col("nbad") == 0)),
        Cut("sharp", "full width at half maximum at most 5 pixels", wants(pl.col("fwhm") <= 5)),
        Cut("round", "elongation at most 1.2", wants(pl.col("elong") <= 1.2)),
        Cut("point", "aperture and PSF magnitude within 0.1", wants(pl.col("magdiff").abs() <= 0.1)),
    ),
)

QUALITY = CutSet(
    "quality",
    "valid detections, as brokers take them",
    "Möller et al. 2021 (Fink); Matheson et al. 2021 (ANTARES)",
    (
        Cut("real", "real/bogus score at least 0.55", wants(pl.col("rb") >= 0.55)),
        Cut("clean", "no bad pixels", wants(pl.col("nbad") == 0)),
    ),
)
