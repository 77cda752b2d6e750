"""What people ask of posts."""

from __future__ import annotations

import random
from collections.abc import Iterator

import polars as pl

from ...operators.definition.aggregates import count, distinct, mean
from ...operators.definition.aggregates import max as max_
from ...operators.definition.stream import Stream
from .scenario import Row, at, in_order, scenario

POSTS = {
    "at": pl.Datetime("us"),
    "user": pl.String,
    "followers": pl.Int64,
    "text": pl.String,
    "link": pl.String,
    "city": pl.String,
    "product": pl.String,
    "sentiment": pl.Float64,
}


def _posts(seed: int, begin: float, end: float, a_minute: float, **same: object) -> Iterator[Row]:
    """Posts of many people, at random times; `same` are the columns that all of them have."""
    dice = random.Random(seed)
    for _ in range(round((end - begin) * a_minute)):
        user = dice.randrange(100_000)
        yield {
            "at": at(dice.uniform(begin, end)),
            "user": f"user{user}",
            "followers": user % 900,
            "text": "good morning",
            **same,
        }


def _videos() -> Iterator[Row]:
    usual = [_posts(seed, 0, 240, 0.8, link=f"https://example.com/{seed}") for seed in range(4)]
    return in_order(*usual, _posts(9, 182, 215, 12, link="https://example.com/cat"))


@scenario(
    "social",
    POSTS,
    _videos,
    rules="""
        [[rule]]
        name = "viral"
        kind = "burst"
        value = "people"
        above = 8
        least = 20
        release = "30m"
    """,
    alerts=[("fired", "https://example.com/cat"), ("cleared", "https://example.com/cat")],
)
def viral_video(posts: Stream) -> Stream:
    """A link to a video goes viral."""
    links = posts.filter(pl.col("link").is_not_null())
    return links.group_by("link").tumbling("5m").agg(posts=count(), people=distinct("user"))


def _shaking() -> Iterator[Row]:
    others = _posts(1, 0, 180, 3)
    talk = _posts(2, 0, 180, 0.05, text="an earthquake drill at school today")
    felt = _posts(3, 100.3, 104, 40, text="earthquake!! the whole house moved")
    return in_order(others, talk, felt, _posts(4, 104, 130, 5, text="did you feel the earthquake?"))


@scenario(
    "social",
    POSTS,
    _shaking,
    rules="""
        [[rule]]
        name = "earthquake"
        kind = "stalta"
        value = "posts"
        at_least = 1
        clear = 0.5
        short = "1m"
        long = "1h"
        support = { people = 10 }
    """,
    alerts=[("fired", None), ("cleared", None)],
)
def earthquake_posts(posts: Stream) -> Stream:
    """A burst of posts about an earthquake."""
    shaking = pl.col("text").str.contains("(?i)earthquake|sismo|temblor|terremoto|deprem|gempa|地震")
    return posts.filter(shaking).tumbling("1m").agg(posts=count(), people=distinct("user"))


def _opinions() -> Iterator[Row]:
    for seed, product in enumerate(("kettle", "lamp", "phone")):
        dice = random.Random(seed)
        for row in _posts(seed, 0, 720, 1, product=product):
            turned = product == "phone" and row["at"] >= at(420)
            yield {**row, "sentiment": round(dice.gauss(-0.6 if turned else 0.3, 0.3), 3)}


@scenario(
    "social",
    POSTS,
    lambda: in_order(_opinions()),
    rules="""
        [[rule]]
        name = "disliked"
        kind = "threshold"
        value = "sentiment"
        below = -0.2
        clear = 0.1
        support = { posts = 20 }
    """,
    alerts=[("fired", "phone")],
)
def product_sentiment(posts: Stream) -> Stream:
    """People turn against one of a company's products."""
    about = posts.filter(pl.col("product").is_not_null())
    return about.group_by("product").tumbling("1h").agg(posts=count(), sentiment=mean("sentiment"))


def _mentions() -> Iterator[Row]:
    famous = {"user": "star", "followers": 2_400_000}
    yield from in_order(
        _posts(5, 0, 60, 4),
        _posts(6, 0, 60, 1, text="my Acme kettle arrived"),
        _posts(7, 10, 20, 0.1, text="nice weather", **famous),
        _posts(8, 30, 31, 1, text="what has ACME done to its kettles?", **famous),
    )


@scenario(
    "social",
    POSTS,
    _mentions,
    rules="""
        [[rule]]
        name = "popular"
        kind = "threshold"
        value = "followers"
        at_least = 100000
        every = true
    """,
    readings=True,
    alerts=[("fired", "star")],
)
def popular_account(posts: Stream) -> Stream:
    """A popular account writes about me."""
    mentions = posts.filter(pl.col("text").str.contains("(?i)acme"))
    return mentions.group_by("user", "at").tumbling("1m").agg(followers=max_("followers"))


def _flooded() -> Iterator[Row]:
    help_wanted = [
        _posts(3, 61, 90, 9, city="Lisbon", text="help, our street is under water"),
        _posts(4, 90, 100, 1, city="Lisbon", text="the flood is going down"),
    ]
    usual = [_posts(seed, 0, 150, 1, city=city) for seed, city in enumerate(("Lisbon", "Porto"))]
    return in_order(*usual, *help_wanted)


@scenario(
    "social",
    POSTS,
    _flooded,
    rules="""
        [[rule]]
        name = "emergency"
        kind = "threshold"
        value = "people"
        at_least = 25
        clear = 8
        release = "15m"

        [rule.command]
        topic = "dispatch"
        fired = { city = "$key", units = "on alert" }
        cleared = { city = "$key", units = "stand down" }
    """,
    alerts=[("fired", "Lisbon"), ("cleared", "Lisbon")],
    commands=[
        ("dispatch", {"city": "Lisbon", "units": "on alert"}),
        ("dispatch", {"city": "Lisbon", "units": "stand down"}),
    ],
)
def emergency_services(posts: Stream) -> Stream:
    """Emergency services are put on alert when a city calls for help."""
    urgent = pl.col("text").str.contains(r"(?i)\b(help|trapped|flood|fire)\b")
    calling = posts.filter(pl.col("city").is_not_null()).with_columns(caller=pl.when(urgent).then("user"))
    return calling.group_by("city").tumbling("5m").agg(people=distinct("caller"))


def _complaints() -> Iterator[Row]:
    usual = [
        _posts(seed, 0, 1_500, 0.05, product=product, sentiment=-0.8)
        for seed, product in enumerate(("kettle", "lamp"))
    ]
    return in_order(*usual, _posts(7, 1_200, 1_260, 0.8, product="kettle", sentiment=-0.9))


@scenario(
    "social",
    POSTS,
    _complaints,
    rules="""
        [[rule]]
        name = "complaints"
        kind = "change"
        value = "complaints"
        against = "mean"
        over = 24
        by = "poisson"
        above = 6
        warm = 6
        absent = 0
        every = true

        [rule.command]
        topic = "reviews"
        fired = { product = "$key", review = "scheduled" }
    """,
    alerts=[("fired", "kettle")],
    commands=[("reviews", {"product": "kettle", "review": "scheduled"})],
)
def quality_review(posts: Stream) -> Stream:
    """A quality-control review is scheduled when complaints rise."""
    unhappy = posts.filter(pl.col("product").is_not_null(), pl.col("sentiment") < -0.5)
    return unhappy.group_by("product").tumbling("1h").agg(complaints=count())
