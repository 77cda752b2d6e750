"""Objects that are new and rising, from what every survey's packets have."""

from __future__ import annotations

import polars as pl

from .cut import Cut, CutSet, unless, wants

FAINTEST = 24.0

RISING = CutSet(
    "rising",
    "new and rising",
    "fink-filters for Rubin, extragalactic_new_candidate: its cuts on time, sampling and rate",
    (
        Cut("positive", "brighter than the template", wants(pl.col("positive"))),
        Cut("new", "first seen less than 5 d ago", wants(pl.col("age") < 5)),
        Cut("bright", f"brighter than {FAINTEST:g}", wants(pl.col("mag") < FAINTEST)),
        Cut("twice", "two detections in the band", wants(pl.col("in_band") >= 2)),
        Cut("rising", "faster than −0.2 mag/d", wants(pl.col("rate") < -0.2)),
        Cut("not moving", "not of the solar system", unless(pl.col("moving"))),
    ),
    FAINTEST,
)
