"""Objects that are new and changing fast, by fields that every survey's packets have."""

from __future__ import annotations

import polars as pl

from .cut import Cut, CutSet, unless, wants

FAINTEST = 24.0
_RATE = pl.col("rate")
_RISING = (_RATE < -0.2) & (pl.col("age") < 3)
_FADING = (pl.col("band").is_in(["r", "i"]) & (_RATE > 0.2)) | (
    pl.col("band").is_in(["g", "u"]) & (_RATE > 0.5)
)

RISING = CutSet(
    "rising",
    "new, and rising or fading fast",
    "fink-filters 7.40 of 2026-08-11, extragalactic_new_candidate: its cuts on time, sampling and rate",
    (
        Cut("positive", "brighter than the template", wants(pl.col("positive"))),
        Cut("new", "first seen less than 5 d ago", wants(pl.col("age") < 5)),
        Cut("bright", f"brighter than {FAINTEST:g}", wants(pl.col("mag") < FAINTEST)),
        Cut("twice", "two detections in the band", wants(pl.col("in_band") >= 2)),
        Cut(
            "rate",
            "rising faster than 0.2 mag/d, seen for less than 3 d, or fading: faster than 0.2 mag/d "
            "in r and i, 0.5 in g and u",
            wants(_RISING | _FADING),
        ),
        Cut("not moving", "not of the solar system", unless(pl.col("moving"))),
    ),
    FAINTEST,
)
