"""The sentiment of posts by VADER's lexicon and rules, from its own package.

Source: C. Hutto, E. Gilbert, "VADER: a parsimonious rule-based model for sentiment analysis of social media
text", ICWSM 2014. It is for English: posts in other languages have no score.
"""

from __future__ import annotations

import importlib.util
from functools import cache
from typing import Any

import polars as pl

from ...operators.definition.aggregates import count, kll_quantiles
from ...operators.definition.stream import Stream
from ..app import Settings

SCHEMA = {
    "kind": pl.String,
    "term": pl.String,
    "score": pl.Float64,
}


def wanted(settings: Settings) -> bool:
    """Whether posts are scored: if the package is installed, unless ``--set sentiment=`` says otherwise.

    Raises `ValueError` for an invalid setting, and if the package is requested but missing.
    """
    choice = settings["sentiment"]
    if choice not in ("auto", "on", "off"):
        raise ValueError(f"--set sentiment must be auto, on or off, got {choice}")
    there = importlib.util.find_spec("vaderSentiment") is not None
    if choice == "on" and not there:
        raise ValueError(
            "--set sentiment=on needs VADER's lexicon; install streamgauge with its extra 'sentiment'"
        )
    return there and choice != "off"


def scored(rows: pl.DataFrame) -> pl.DataFrame:
    """Add the compound scores of texts to rows, from -1 (all negative) to 1; null without a text."""
    analyser = _analyser()
    score = [None if text is None else analyser.polarity_scores(text)["compound"] for text in rows["text"]]
    return rows.select("kind", "term", score=pl.Series(score, dtype=pl.Float64))


@cache
def _analyser() -> Any:
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

    return SentimentIntensityAnalyzer()


def sentiment(rows: Stream) -> Stream:
    """The distribution of scores for all posts, each tag and each place, in windows of 15 minutes."""
    english = pl.col("lang").str.starts_with("en").fill_null(True)
    term = pl.element()
    every = pl.lit([{"kind": "all", "term": "posts"}])
    tags = pl.col("tags").list.eval(pl.struct(pl.lit("tag").alias("kind"), term.alias("term")))
    place = pl.when(pl.col("place").is_not_null()).then(
        pl.concat_list(pl.struct(pl.lit("place").alias("kind"), pl.col("place").alias("term")))
    )
    lists = [every, *(one.fill_null([]) for one in (tags, place))]
    return (
        rows.filter(english & pl.col("text").is_not_null() & ~pl.col("muted"))
        .select("text", term=pl.concat_list(lists))
        .explode("term")
        .with_columns(kind=pl.col("term").struct.field("kind"), term=pl.col("term").struct.field("term"))
        .map_batches(scored, SCHEMA)
        .filter(pl.col("score").is_not_null())
        .group_by("kind", "term")
        .tumbling("15m", delay="1m")
        .agg(posts=count(), score=kll_quantiles("score"))
    )
