"""Alerts as rows: the same columns for all surveys, with the results of the cuts."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from ...operators.definition.stream import Stream
from .catalogs.cross_match import MATCHED, Crossing
from .cuts.sets import SETS, cut_set
from .packets.scores import Score
from .pictures import with_pictures
from .sky import cell

_ZERO_FLUX = 23.9
"""The AB magnitude of one microjansky, the unit of fluxes."""

_APART = 0.02
"""Half an hour, in days: looks that are closer than this count as one."""

_past = pl.col("past")
_each = {
    name: pl.element().struct.field(name)
    for name in ("at", "ago", "band", "same", "mag", "error", "limit", "positive")
}
_seen = _each["positive"] & _each["mag"].is_not_null()


def _any(condition: pl.Expr) -> pl.Expr:
    return _past.list.eval(condition.fill_null(False)).list.any().fill_null(False)


def _count(condition: pl.Expr) -> pl.Expr:
    return _past.list.eval(condition.fill_null(False)).list.sum().fill_null(0)


_HISTORY = {
    # After that, a moving object is gone.
    "repeated": _any(_seen & (_each["ago"].abs() > _APART)),
    "faint_lately": _any((_each["ago"].abs() < 0.75) & (_each["mag"] >= 19)),
    "bright_before": _count(
        _seen & _each["ago"].is_between(0.75, 30, "none") & _each["mag"].is_between(0, 19.8, "none")
    ),
    "peak": pl.min_horizontal(
        pl.col("mag"), _past.list.eval(_each["mag"].filter(_each["same"].fill_null(False))).list.min()
    ),
    "before": _past.list.eval(
        pl.element().filter((_seen & _each["same"] & (_each["ago"] > _APART)).fill_null(False))
    ).list.first(),
}
"""Columns from the earlier looks; `before` is the latest detection in the band, in another exposure."""

_OWN = pl.struct("at", "band", "mag", "error", "limit", own=True, forced=False)
_EARLIER = _past.list.eval(
    pl.struct(
        _each["at"],
        _each["band"],
        pl.when(_seen.fill_null(False)).then(_each["mag"]).alias("mag"),
        pl.when(_seen.fill_null(False)).then(_each["error"]).alias("error"),
        _each["limit"],
        own=False,
        forced=False,
    )
)
_FORCED = pl.col("forced").list.eval(
    pl.struct(
        *(_each[name] for name in ("at", "band", "mag", "error", "limit")),
        own=False,
        forced=True,
    )
)

COLUMNS = (
    *("object", "alert", "at", "night", "ra", "dec", "cell", "band", "mag", "error", "limit", "age", "rate"),
    *("detections", "rb", "drb", "passed", "candidate", "tracked", "looked_at", "fates", "points"),
    *("science", "template", "difference"),
    *(name for name in MATCHED if name != "excluded"),
)
"""Of every format. `rate` is in mag/d, negative while it brightens, from the latest detection in the band.
`passed` is 1 for alerts that all requested cuts keep; only these have a `candidate` (the magnitude), a
`tracked` flux (µJy) and pictures. `fates` says for each set of cuts which of them rejected the alert, and
`points` are its light curve: the alert and, if it passed, forced photometry and the looks before it."""


def alerts(
    packets: Stream,
    survey: str,
    cuts: str,
    everything: bool,
    crossing: Crossing,
    scores: Sequence[Score] = (),
) -> Stream:
    """Return the rows of packets from `packets.decoder`, with the matches of `crossing` at their positions.

    `cuts` names the set of cuts for candidates, which precedes the cuts on `scores`; with `everything`, rules
    see the other alerts, too. Raises `ValueError` for a set that the survey doesn't have.
    """
    further = (*(cut for score in scores if (cut := score.cut) is not None), *crossing.cuts)
    cut_set_ = cut_set(survey, cuts).then(further)
    rows = packets.with_columns(**_HISTORY).with_columns(
        rate=(pl.col("mag") - pl.col("before").struct.field("mag")) / pl.col("before").struct.field("ago"),
        cell=cell(pl.col("ra"), pl.col("dec")),
        **{score.column: pl.col("scores").list.get(at, null_on_oob=True) for at, score in enumerate(scores)},
    )
    rows = crossing.add(rows)
    rows = rows.with_columns(
        passing=cut_set_.passed, fates=pl.concat_list([one.then(further).fate for one in SETS[survey]])
    )
    passing = pl.col("passing")
    rows = rows.with_columns(
        at=pl.col("at").cast(pl.Datetime("us", "UTC")),
        passed=passing.cast(pl.Int64),
        candidate=pl.when(passing).then(pl.col("mag")),
        tracked=pl.when(passing).then(10.0 ** ((_ZERO_FLUX - pl.col("mag")) / 2.5)),
        looked_at=passing | pl.lit(everything),
        points=pl.when(passing)
        .then(pl.concat_list(_FORCED, pl.concat_list(_OWN), _EARLIER))
        .otherwise(pl.concat_list(_OWN)),
    )
    return rows.map_batches(with_pictures, dict(rows.columns)).select(
        *COLUMNS, *(score.column for score in scores)
    )
