"""A cut, a set of cuts in their order, and where in it an alert falls.

A cut keeps the alerts for which its expression holds. What isn't known speaks for nothing: a cut that wants
something of an alert fells it where that is missing (`wants`), and one that excludes what lies near it does
not (`unless`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import polars as pl

PASSED = "passed"
"""What stands in place of a cut's name for an alert that none fells."""


@dataclass(frozen=True, eq=False)
class Cut:
    """A condition under a name; `meaning` says in words what it keeps."""

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
        """The set with further cuts behind its own."""
        return replace(self, cuts=(*self.cuts, *cuts))

    @property
    def felled_at(self) -> pl.Expr:
        """The number of the first cut that fells an alert, from 1; one more than there are if none does."""
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
        """Whether all of them keep an alert."""
        return self.felled_at > len(self.cuts)


def wants(condition: pl.Expr) -> pl.Expr:
    """Keeps where a condition is known to hold."""
    return condition.fill_null(False)


def unless(*conditions: pl.Expr) -> pl.Expr:
    """Keeps where none of the conditions is known to hold."""
    return ~reduce(lambda one, other: one | other, [each.fill_null(False) for each in conditions])
