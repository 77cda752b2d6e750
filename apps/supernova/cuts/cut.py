"""A cut, an ordered set of cuts, and the cut in a set that rejects an alert.

A cut keeps the alerts for which its expression holds. A missing value is never evidence: a cut that requires
a condition rejects the alert (`wants`), and one that excludes a condition keeps it (`unless`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import polars as pl

PASSED = "passed"
"""Takes the place of a cut's name for an alert that no cut rejects."""


@dataclass(frozen=True, eq=False)
class Cut:
    """A named condition; `meaning` describes in words what it keeps."""

    name: str
    meaning: str
    keeps: pl.Expr


@dataclass(frozen=True, eq=False)
class CutSet:
    """Published cuts in their order. Alerts that pass are brighter than the magnitude `faintest`."""

    name: str
    meaning: str
    source: str
    cuts: Sequence[Cut]
    faintest: float = 99.0

    def then(self, cuts: Sequence[Cut]) -> CutSet:
        """Return the set with further cuts after its own."""
        return replace(self, cuts=(*self.cuts, *cuts))

    @property
    def felled_at(self) -> pl.Expr:
        """The number of the first cut that rejects an alert, from 1; the number of cuts plus one if none
        does."""
        steps = [pl.when(~cut.keeps).then(at) for at, cut in enumerate(self.cuts, 1)]
        return pl.coalesce(*steps, len(self.cuts) + 1).cast(pl.Int64)

    @property
    def fate(self) -> pl.Expr:
        """A struct of the `set`, the `step` and the `cut` that rejected an alert, or `PASSED`."""
        names = [pl.when(~cut.keeps).then(pl.lit(cut.name)) for cut in self.cuts]
        cut = pl.coalesce(*names, pl.lit(PASSED))
        return pl.struct(pl.lit(self.name).alias("set"), self.felled_at.alias("step"), cut.alias("cut"))

    @property
    def passed(self) -> pl.Expr:
        """Whether all cuts keep an alert."""
        return self.felled_at > len(self.cuts)


def wants(condition: pl.Expr) -> pl.Expr:
    """Keep alerts if a condition is known to hold."""
    return condition.fill_null(False)


def unless(*conditions: pl.Expr) -> pl.Expr:
    """Keep alerts if none of the conditions is known to hold."""
    return ~reduce(lambda one, other: one | other, [each.fill_null(False) for each in conditions])
