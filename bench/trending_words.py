"""What words, tags and emoji of posts cost: a post's rows of the app's trends, before anything is counted."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import polars as pl

from bench.measure import line, medians
from streamgauge.apps.app import Feed
from streamgauge.apps.jobs.job import Job
from streamgauge.apps.registry import app_of
from streamgauge.operators.steps.row_steps import RowSteps

POSTS = 20_000
LATIN = [
    *("breaking", "news", "from", "the", "harbour", "tonight", "people", "are", "saying", "that", "another"),
    *("storm", "will", "reach", "our", "coast", "before", "sunday", "morning", "and", "nobody", "seems"),
    *(
        "to",
        "know",
        "whether",
        "trains",
        "are",
        "running",
        "also",
        "por",
        "qué",
        "no",
        "viene",
        "mañana",
        "café",
    ),
]
JAPANESE = (
    "台風が近づいています今日は大雨で電車が止まって帰れない東京の空はまだ明るいけれど風が強くなってきた"
)
EMOJI = ("😂", "👍🏽", "👩‍🚀", "🔥")


def latin(dice: random.Random) -> str:
    """A post in Latin letters of 18 words, one in ten with a hashtag."""
    words = dice.choices(LATIN, k=18)
    return " ".join([*words, "#storm"] if dice.random() < 0.1 else words)


def japanese(dice: random.Random) -> str:
    """A post of 40 characters with no space between them."""
    start = dice.randrange(len(JAPANESE))
    return (JAPANESE + JAPANESE)[start : start + 40]


def frame(texts: list[str]) -> pl.DataFrame:
    """Posts as the format decodes them."""
    n = len(texts)
    authors = [f"a{number % 5_000}" for number in range(n)]
    return pl.DataFrame(
        {
            "id": [str(number) for number in range(n)],
            "kind": ["post"] * n,
            "author": authors,
            "lang": ["en"] * n,
            "text": texts,
            "created_at": pl.Series(np.zeros(n, np.int64)).cast(pl.Datetime("us", "UTC")),
            "tags": [["storm"]] * n,
        }
    )


def main() -> list[dict[str, Any]]:
    """One line a kind of post; of a mixed stream a tenth of the posts is Japanese or has an emoji."""
    dice = random.Random(1)
    kinds = {
        "Latin letters": [latin(dice) for _ in range(POSTS)],
        "with an emoji": [f"{latin(dice)} {dice.choice(EMOJI)}" for _ in range(POSTS)],
        "Japanese": [japanese(dice) for _ in range(POSTS)],
        "a mixed stream": [
            japanese(dice) if n % 10 == 0 else latin(dice) + " 🔥" * (n % 10 == 1) for n in range(POSTS)
        ],
    }
    steps = RowSteps(Job.of(app_of("trending"), "posts").streams(Feed("posts", "localhost:1"))["trends"])
    frames = [frame(texts) for texts in kinds.values()]

    def run(rows: pl.DataFrame) -> int:
        def refuse(numbers: np.ndarray, reason: str) -> None:
            raise ValueError(reason)

        return steps.apply(rows, refuse).frame.height

    rows = [run(one) for one in frames]
    seconds = medians(*[lambda one=one: run(one) for one in frames])
    return [
        line(f"a post: {kind}", f"{1e6 * spent / POSTS:.1f} µs", "", f"{count / POSTS:.1f} rows")
        for kind, spent, count in zip(kinds, seconds, rows)
    ]
