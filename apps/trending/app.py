"""Questions of people who watch social streams."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from ...operators.definition.aggregates import distinct, first, sample, top_k
from ...operators.definition.aggregates import sum as total
from ...operators.definition.stream import Stream
from ...operators.rules.command import Command
from ...operators.rules.kinds.change import Change
from ...operators.rules.rule import Rule
from ..app import App, AppPart, Settings, number
from ..panels import LinesPanel, NumberPanel, RankedPanel, SamplesPanel
from .earthquake import Earthquake, shaking
from .example import EXAMPLE
from .formats.jetstream import JETSTREAM
from .formats.mastodon import MASTODON
from .formats.numbers import COUNTS, IDS
from .formats.posts import POSTS
from .formats.twitter_v1 import TWITTER_V1
from .formats.twitter_v2 import TWITTER_V2
from .sentiment import sentiment, wanted
from .trend import Trend
from .volume_surge import VolumeSurge

_WINDOWS_A_DAY = 288
_TERMS = {"tag": "tags", "link": "links", "words": "words", "emoji": "emoji"}
"""The kinds of trending terms, and their columns."""


def _volume(rows: Stream) -> Stream:
    """The number of posts and of authors, in windows of five minutes."""
    return rows.tumbling("5m", delay="1m").agg(
        posts=total("n"), events=distinct("id"), authors=distinct("author"), sample=sample("text", k=3)
    )


def _trends(rows: Stream) -> Stream:
    """The posts and authors of each tag, link, word and emoji, in windows of five minutes."""
    rows = rows.filter(~pl.col("muted"))
    lists = {kind: pl.col(column).fill_null([]) for kind, column in _TERMS.items()}
    kinds = [pl.lit(kind).repeat_by(terms.list.len()) for kind, terms in lists.items()]
    return (
        rows.select(
            "id", "author", "text", kind=pl.concat_list(kinds), term=pl.concat_list(list(lists.values()))
        )
        .explode("kind", "term")
        .filter(pl.col("term").is_not_null())
        .group_by("kind", "term")
        .tumbling("5m", delay="1m")
        .agg(
            posts=distinct("id"), authors=distinct("author"), first=first("text"), sample=sample("text", k=5)
        )
    )


def _top(rows: Stream) -> Stream:
    """The most frequent terms of each kind in an hour."""
    return (
        rows.filter(~pl.col("muted"))
        .tumbling("1h", delay="1m")
        .agg(
            posts=total("n"),
            authors=distinct("author"),
            tags=top_k("tags", k=10),
            links=top_k("links", k=10),
            words=top_k("words", k=20),
            emoji=top_k("emoji", k=10),
            languages=top_k("lang", k=10),
        )
    )


def _volume_rules(settings: Settings) -> Sequence[Rule]:
    return [
        VolumeSurge(
            "volume",
            kind="volume",
            value="posts",
            against="ewma",
            over=7 * _WINDOWS_A_DAY,
            by="z",
            above=number(settings, "surge"),
            clear=1,
            release="6h",
            cooldown="12h",
            warm=_WINDOWS_A_DAY,
            least=number(settings, "support"),
            absent=0,
        )
    ]


def _trend_rules(settings: Settings) -> Sequence[Rule]:
    return [
        Trend(
            "trend",
            kind="trend",
            value="authors",
            above=number(settings, "burst"),
            clear=2,
            least=number(settings, "support"),
            over=48,
            warm=3,
            cooldown="1h",
            report=["posts", "first"],
            texts="sample",
        )
    ]


def _earthquake_rules(settings: Settings) -> Sequence[Rule]:
    share = number(settings, "share")
    if not 0 < share <= 1:
        raise ValueError(
            f"--set share must be the share of all posts, above 0 and up to 1, got {settings['share']}"
        )
    return [
        Earthquake(
            "earthquake",
            kind="emergency",
            value="posts",
            at_least=1,
            clear=number(settings, "rearm"),
            release=settings["release"],
            cooldown=settings["cooldown"],
            times=5,
            offset=2 * share,
            report=["first"],
            command=_emergency(settings),
        )
    ]


def _sentiment_rules(settings: Settings) -> Sequence[Rule]:
    return [
        Change(
            "swing",
            kind="sentiment",
            value="score.p50",
            against="ewma",
            over=24,
            by="distance",
            above=number(settings, "swing"),
            clear=number(settings, "swing") / 2,
            warm=4,
            hold="30m",
            support={"posts": 3 * number(settings, "support")},
            cooldown="1h",
        )
    ]


def _emergency(settings: Settings) -> Sequence[Command]:
    """Send a message to the topic of commands, if set, when an earthquake begins and when it is over."""
    if not settings["emergency"]:
        return ()
    begun, over = {"emergency": "earthquake"}, {"emergency": "none"}
    return [Command(topic=settings["emergency"], fired=begun, cleared=over)]


APP = App(
    name="trending",
    title="Social streams: trends, surges, earthquakes, and how posts sound",
    formats=(JETSTREAM, TWITTER_V1, TWITTER_V2, MASTODON, POSTS, IDS, COUNTS),
    parts=(
        AppPart("volume", _volume, _volume_rules),
        AppPart("trends", _trends, _trend_rules, most=("authors", 10)),
        AppPart("top", _top),
        AppPart("earthquakes", shaking, _earthquake_rules, shown=False, of=pl.col("felt")),
        AppPart("sentiment", sentiment, _sentiment_rules, wanted=wanted, most=("posts", 10)),
    ),
    kinds={"earthquake": Earthquake, "surge": VolumeSurge, "trend": Trend},
    settings={
        "support": "10",
        "burst": "6",
        "surge": "6",
        "swing": "0.4",
        "share": "1",
        "rearm": "0.2",
        "release": "10m",
        "cooldown": "6h",
        "emergency": "",
        "sentiment": "auto",
    },
    event=("id",),
    commands=lambda settings, rule: _emergency(settings) if rule.name == "earthquake" else (),
    panels=(
        LinesPanel("Posts in five minutes", "volume", "posts", unit="posts"),
        NumberPanel("Posts", "volume", "posts", unit="posts"),
        NumberPanel("Authors", "volume", "authors", unit="people"),
        RankedPanel(
            "Most written about",
            "trends",
            "authors",
            by="term",
            unit="people",
            samples="sample",
        ),
        RankedPanel("Tags", "top", "tags", unit="posts"),
        RankedPanel("Words", "top", "words", unit="posts"),
        RankedPanel("Emoji", "top", "emoji", unit="posts"),
        RankedPanel("Links", "top", "links", unit="posts"),
        RankedPanel("Languages", "top", "languages", unit="posts"),
        LinesPanel("Earthquake posts per second", "earthquakes", "posts", unit="posts"),
        LinesPanel("Sentiment of posts, from -1 to 1", "sentiment", "score.p50", by="term", most=6),
        SamplesPanel("Sample of posts", "volume", "sample"),
    ),
    example=EXAMPLE,
)
