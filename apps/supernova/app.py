"""Questions of those who look for supernovae: which objects are worth a spectrum, and why."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from ...operators.definition.aggregates import count, distinct, frequency, last, quantiles, top_k
from ...operators.definition.aggregates import max as max_
from ...operators.definition.aggregates import min as min_
from ...operators.definition.aggregates import sum as sum_
from ...operators.definition.stream import Stream
from ...operators.rules.kinds.beyond import Beyond
from ...operators.rules.rule import Rule
from ..app import App, AppPart, Settings, number
from ..panels import (
    FunnelPanel,
    LinesPanel,
    MapPanel,
    NumberPanel,
    ObjectPanel,
    RankedPanel,
    RowsPanel,
    SpreadPanel,
)
from .cuts.sets import SETS
from .example import EXAMPLE
from .formats import FORMATS
from .packets.scores import PREFIX, scores_of
from .rules import Candidate, Watch
from .tns import tns_outlets
from .voevent import voevent_outlets

_MATCHES = ("match", "match_type", "match_distance", "match_in", "host", "host_distance", "host_z")
_FAINTEST = {one.name: one.faintest for sets in SETS.values() for one in sets}


def _nights(rows: Stream) -> Stream:
    return (
        rows.group_by("night")
        .tumbling("1d")
        .agg(
            alerts=count(),
            passed=sum_("passed"),
            objects=distinct("object"),
            magnitudes=quantiles("mag", relative_accuracy=0.001),
            densest=top_k("cell", k=5),
            sky=frequency("cell"),
        )
    )


def _funnel(rows: Stream) -> Stream:
    """How many alerts each cut rejected among those that passed the cuts before it."""
    fates = rows.explode("fates").with_columns(pl.col("fates").struct.unnest())
    return fates.group_by("set", "step", "cut").tumbling("1d").agg(alerts=count(), objects=distinct("object"))


def _objects(rows: Stream) -> Stream:
    return (
        rows.group_by("object")
        .tumbling("1d")
        .agg(
            alerts=count(),
            passed=sum_("passed"),
            brightest=min_("mag"),
            age=max_("age"),
            rate=last("rate"),
            ra=last("ra"),
            dec=last("dec"),
            **{name: last(name) for name in (*_MATCHES, *_scores(rows))},
        )
    )


def _scores(rows: Stream) -> list[str]:
    """The columns of classifiers' scores."""
    return [name for name in rows.columns if name.startswith(PREFIX)]


def _curves(rows: Stream) -> Stream:
    """Each look at an object: its alerts and, for candidates, the earlier looks with their limits."""
    own = pl.col("own")
    ours = (
        "candidate",
        "tracked",
        "ra",
        "dec",
        "age",
        "rate",
        "rb",
        "drb",
        *_MATCHES,
        *_scores(rows),
        "matches",
        "science",
        "template",
        "difference",
    )
    looks = (
        rows.filter(pl.col("looked_at"))
        .select("object", "points", *ours)
        .explode("points")
        .with_columns(pl.col("points").struct.unnest())
        .with_columns(at=pl.col("at").cast(pl.Datetime("us", "UTC")))
        .with_columns(*(pl.when(own).then(pl.col(name)).alias(name) for name in ours))
        .with_columns(seen=pl.when(own).then(pl.col("mag")), forced=pl.col("forced").cast(pl.Int64))
    )
    return (
        looks.group_by("object", "band", "at")
        .tumbling("1m")
        .agg(**{name: last(name) for name in ("mag", "error", "limit", "forced", "seen", *ours)})
    )


def _rules(settings: Settings) -> Sequence[Rule]:
    cuts, radius = settings["cuts"], number(settings, "radius")
    rules: list[Rule] = [
        Candidate(
            "candidate",
            value="candidate",
            below=_FAINTEST.get(cuts, 99.0),
            cuts=cuts,
            known=settings["known"],
            radius=radius,
            page=settings["page"],
            scores=[score.column for score in scores_of(settings)],
        ),
        # One magnitude is a factor of 2.5 in flux; each band has its own past.
        Beyond(
            "flash",
            kind="flash",
            value="tracked",
            q=0.9,
            above=number(settings, "flash"),
            warm=5,
            every=True,
        ),
    ]
    if settings["watch"]:
        rules.append(Watch("watch", value="seen", places=settings["watch"], radius=radius))
    return rules


OBJECT = ObjectPanel(
    "Object",
    "curves",
    "object",
    "mag",
    error="error",
    limit="limit",
    band="band",
    forced="forced",
    images={"science": "science", "template": "template", "difference": "difference"},
    facts={
        "ra": "RA (°)",
        "dec": "Dec (°)",
        "candidate": "magnitude",
        "age": "age (d)",
        "rate": "mag/d",
        "rb": "rb",
        "drb": "drb",
        "match": "match",
        "match_type": "its type",
        "match_distance": "match, ″",
        "match_in": "catalogue",
        "host": "nearest host",
        "host_distance": "host, ″",
        "host_z": "host's z",
    },
)
"""A candidate on the page, and as a page of its own."""

APP = App(
    name="supernova",
    title="Supernova candidates: objects worth a spectrum, and what each cut rejected",
    formats=FORMATS,
    parts=(
        AppPart("nights", _nights),
        AppPart("funnel", _funnel),
        AppPart("objects", _objects),
        AppPart("curves", _curves, _rules, at="at", shown=False),
    ),
    kinds={"candidate": Candidate, "watch": Watch},
    panels=(
        RowsPanel(
            "Objects",
            "objects",
            {
                "object": "object",
                "passed": "alerts that passed",
                "alerts": "alerts",
                "brightest": "brightest",
                "age": "age (d)",
                "rate": "mag/d",
                "ra": "RA",
                "dec": "Dec",
                "match": "match",
                "match_type": "its type",
                "match_distance": "″ away",
                "host": "host",
                "host_distance": "host, ″ away",
            },
            order="-passed",
        ),
        OBJECT,
        MapPanel("Sky", "objects", "ra", "dec", "object", value="passed", sky=True),
        FunnelPanel("Cuts", "funnel", value="alerts", by="cut", order="step", each="set"),
        NumberPanel("Alerts", "nights", "alerts"),
        NumberPanel("Alerts that passed", "nights", "passed"),
        NumberPanel("Distinct objects", "nights", "objects"),
        LinesPanel("Alerts per night", "nights", "alerts"),
        SpreadPanel("Magnitudes", "nights", "magnitudes", unit="mag"),
        RankedPanel("Densest cells of the sky", "nights", "densest", k=5),
    ),
    settings={
        "known": "",
        "watch": "",
        "radius": "2",
        "flash": "2.5",
        "catalog": "",
        "catalog_radius": "2",
        "exclude": "",
        "host": "",
        "page": "",
        "scores": "",
        "voevent": "",
        "voevent_author": "",
        "voevent_role": "observation",
        "tns": "",
        "tns_reporter": "",
        "tns_group": "",
    },
    outlets=lambda settings: [*voevent_outlets(settings), *tns_outlets(settings)],
    event=("object", "alert", "at"),
    example=EXAMPLE,
)
