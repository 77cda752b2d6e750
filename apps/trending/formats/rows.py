"""The columns that posts of every network have.

`id`, `author`, `lang`, `text`, `tags` and `links` (each once), `words` and pairs
of them, `place` (a name) and `spot` ("latitude,longitude"), `repost`, `n` (how many posts a row stands for),
`about` (what the whole recording is a crawl of) and `muted`. What a network doesn't say is null.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from ....operators.definition.stream import Stream
from ...app import Settings
from .stop_words import STOP_WORDS

USUAL = {"muted": "", "words": "2", "about": ""}
"""`muted`: words and tags, with commas between, whose posts are in no trend. `words`: up to how many in a
row are counted together, 0 for none. `about`: what a recording is a crawl of, such as earthquake."""

TIME = pl.Datetime("us", "UTC")
TEXTS = pl.List(pl.String)
_LONGEST = 30
"""Characters of a word: what is longer is no word."""


def rows(stream: Stream, settings: Settings, **known: pl.Expr) -> Stream:
    """The columns of every format, of those that this one has. Raises `ValueError` for a setting."""
    kinds: dict[str, Any] = {
        **dict.fromkeys(("id", "author", "lang", "text", "place", "spot"), pl.String),
        "tags": TEXTS,
        "links": TEXTS,
        "repost": pl.Boolean,
    }
    columns = {name: known.get(name, pl.lit(None)).cast(kind) for name, kind in kinds.items()}
    selected = stream.select(
        **columns, n=known.get("n", pl.lit(1)).cast(pl.Int64), about=pl.lit(settings["about"])
    )
    selected = selected.with_columns(
        tags=_each_once(pl.col("tags").list.eval(_folded(pl.element()))),
        links=_each_once(pl.col("links")),
        words=_words(pl.col("text")),
        repost=pl.col("repost").fill_null(False),
    )
    return selected.with_columns(words=_together(settings)).with_columns(muted=_muted(settings))


def of_lists(column: pl.Expr, inner: str) -> pl.Expr:
    """A member of each object of a list."""
    return column.list.eval(pl.element().struct.field(inner))


def spot(latitude: pl.Expr, longitude: pl.Expr) -> pl.Expr:
    """A place on the map as text; null unless both are known."""
    return pl.format("{},{}", latitude.round(4), longitude.round(4))


def _each_once(column: pl.Expr) -> pl.Expr:
    return column.list.eval(
        pl.element().filter(pl.element().is_not_null() & (pl.element() != ""))
    ).list.unique(maintain_order=True)


def _folded(text: pl.Expr) -> pl.Expr:
    return text.str.to_lowercase()


def _words(text: pl.Expr) -> pl.Expr:
    """Words in lower case, without links, names of accounts and tags, and those that every text has."""
    plain = _folded(text).str.replace_all(r"https?://\S+|www\.\S+|[@#]\S+", " ")
    words = plain.str.extract_all(r"[\p{L}\p{N}][\p{L}\p{N}'’_-]*")
    word = pl.element()
    long = word.str.len_chars().is_between(2, _LONGEST)
    return words.list.eval(word.filter(long & ~word.is_in(STOP_WORDS) & ~word.str.contains(r"^\p{N}+$")))


def _together(settings: Settings) -> pl.Expr:
    """Words and those that stand in a row, each once a post."""
    choice = settings["words"]
    if choice not in ("0", "1", "2", "3"):
        raise ValueError(f"--set words must be a number of words in a row from 0 to 3, got {choice}")
    words, most = pl.col("words"), int(choice)
    if not most:
        return words.list.head(0)
    terms = words
    for length in range(2, most + 1):
        row = [pl.element().shift(-place) for place in range(length)]
        run = words.list.eval(pl.concat_str(row, separator=" ").drop_nulls())
        terms = pl.concat_list(terms, run)
    return terms.list.unique(maintain_order=True)


def _muted(settings: Settings) -> pl.Expr:
    """Whether a post has one of the muted words or tags."""
    muted = [word.strip().lower().lstrip("#") for word in settings["muted"].split(",") if word.strip()]
    if not muted:
        return pl.lit(False)
    lists = [pl.col(name).list.set_intersection(muted).list.len() > 0 for name in ("tags", "words")]
    return pl.any_horizontal(*(one.fill_null(False) for one in lists))
