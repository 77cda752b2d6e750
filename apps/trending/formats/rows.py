"""The common columns of posts of all networks.

These are `id`, `author`, `lang` (named by the post, or else detected), `text`, `tags` (the network's and
those in the text; shares' symbols have a $), distinct `links` and `emoji`, `words` and pairs of them, `place`
(a name) and `spot` ("latitude,longitude"), `repost`, `n` (the number of posts in a row), `about` (the topic
of a crawl), `muted`, and whether an earthquake is `felt`. Columns that a network doesn't have are null; lists
of tags, links and emoji are then empty.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import polars as pl

from ....operators.definition.stream import Stream
from ....sketches.core.extras import check_extra
from ...app import Settings
from ..earthquake import felt
from ..lists import TEXTS
from ..words import words_of
from .languages import languages_of
from .marks import emoji_of, tags_of

USUAL = {"muted": "", "words": "2", "about": "", "keywords": "", "excluded": ""}
"""`muted`: comma-separated words, tags and emoji whose posts are left out of trends. `words`: the maximum
number of consecutive words that are counted together, 0 for none. `about`: the topic of a crawl, such as
earthquake. `keywords` and `excluded`: words of posts about an earthquake, and words that rule it out."""

TIME = pl.Datetime("us", "UTC")


def rows(stream: Stream, settings: Settings, **known: pl.Expr) -> Stream:
    """Make the common columns from a format's known ones. Raises `ValueError` for an invalid setting."""
    for package in ("icu4py", "py3langid"):
        check_extra(package)
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
        lang=pl.struct("lang", "text").map_batches(languages_of, pl.String, is_elementwise=True),
        tags=_tags(),
        emoji=pl.col("text").map_batches(emoji_of, TEXTS, is_elementwise=True),
        links=_each_once(pl.col("links")),
        words=_words(pl.col("text"), settings),
        repost=pl.col("repost").fill_null(False),
    )
    return selected.with_columns(muted=_muted(settings), felt=felt(settings))


def of_lists(column: pl.Expr, inner: str) -> pl.Expr:
    """Return a member of each object in a list."""
    return column.list.eval(pl.element().struct.field(inner))


def spot(latitude: pl.Expr, longitude: pl.Expr) -> pl.Expr:
    """Format a position on the map; null unless both coordinates are known."""
    return pl.format("{},{}", latitude.round(4), longitude.round(4))


def _each_once(column: pl.Expr) -> pl.Expr:
    return column.list.eval(
        pl.element().filter(pl.element().is_not_null() & (pl.element() != ""))
    ).list.unique(maintain_order=True)


def _tags() -> pl.Expr:
    """Return the tags that the network names and those in the text, in lower case."""
    written = pl.col("text").map_batches(tags_of, TEXTS, is_elementwise=True)
    both = pl.concat_list(pl.col("tags").fill_null([]), written.fill_null([]))
    return _each_once(both.list.eval(pl.element().str.to_lowercase()))


def _words(text: pl.Expr, settings: Settings) -> pl.Expr:
    choice = settings["words"]
    if choice not in ("0", "1", "2", "3"):
        raise ValueError(f"--set words must be a number of words in a row from 0 to 3, got {choice}")
    if choice == "0":
        return pl.lit([], TEXTS)
    return text.map_batches(partial(words_of, most=int(choice)), TEXTS, is_elementwise=True)


def _muted(settings: Settings) -> pl.Expr:
    """Whether a post contains a muted word, tag or emoji."""
    muted = [word.strip().lower().lstrip("#") for word in settings["muted"].split(",") if word.strip()]
    if not muted:
        return pl.lit(False)
    lists = [pl.col(name).list.set_intersection(muted).list.len() > 0 for name in ("tags", "words", "emoji")]
    return pl.any_horizontal(*(one.fill_null(False) for one in lists))
