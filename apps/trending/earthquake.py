"""Posts of people who feel an earthquake: how to recognise them, when they begin, and where they come from.

Sources: T. Sakaki, M. Okazaki, Y. Matsuo, "Earthquake shakes Twitter users: real-time event detection by
social sensors", WWW 2010 (keywords, short texts, location from the posters'); P. Earle, D. Bowden, M. Guy,
"Twitter earthquake detection: earthquake monitoring in a social world", Annals of Geophysics 54 (2012)
(STA/LTA on counts, no links, no retweets).
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from math import asin, cos, radians, sin, sqrt
from typing import Any

import polars as pl

from ...operators.definition.aggregates import first, sample
from ...operators.definition.aggregates import sum as total
from ...operators.definition.stream import Stream
from ...operators.rules.kinds.sta_lta import StaLta
from ...operators.rules.row import Row
from ...operators.rules.rule import Measured
from ...operators.rules.value_with_bounds import Figure
from .words import SPACELESS

KEYWORDS = (
    "earthquake*, quake, quakes, tremor, tremors, aftershock, aftershocks, terremoto*, temblor*, temblando, "
    "tembló, temblo, tiembla, tiemblan, sismo, sismos, gempa*, deprem*, lindol, lumilindol, séisme, séismes, "
    "seisme, tremblement de terre, erdbeben*, cutremur*, potres*, zemljotres*, σεισμός, σεισμος, σεισμό, "
    "σεισμο, землетрясени*, 지진*, भूकंप*, भुकम्प*, động đất, زلزال, الزلزال, زلزله, 地震, 揺れた, 揺れてる, "
    "揺れている, แผ่นดินไหว"
)
"""Words of people who feel an earthquake, in languages of earthquake regions; * stands for any ending."""

EXCLUDED = (
    "quake champions, quake live, quakecon, quake con, quake ii, quake iii, quake iv, quake remastered, "
    "quake arena, quake engine, quake mod, quake mods, quake wars, earthquake drill*, shakeout, "
    "simulacro de, simulacro nacional, simulacros, deprem tatbikat*, essential tremor*, hand tremor*, "
    "terremoto político, political earthquake, 지진아, 地震計, 避難訓練, 地震訓練, 防災訓練"
)
"""Words and phrases that mark a post as being about something else: games, drills, illnesses, politics."""

_LONGEST_WORDS = 12
_EARTH_KM = 6371.0
_BEGINS_TAGS, _IN_TAGS = 5, 9
"""The minimum length of a keyword that matches the start of a longer tag, like #sismoCDMX, and of one that
matches anywhere in it, like #PrayForTerremoto. Shorter ones are parts of other words, as in narcisismo."""


def felt(settings: Mapping[str, str]) -> pl.Expr:
    """Select these posts: short, not repeated, without a link; or all posts, in a crawl about earthquakes.

    Raises `ValueError` for an empty list of words.
    """
    text = pl.col("text")
    words = settings["keywords"] or KEYWORDS
    excluded = ", ".join(one for one in (EXCLUDED, settings["excluded"]) if one)
    # Posts in scripts without spaces, whose words can't be counted like this, usually pass.
    short = text.str.count_matches(r"\S+") <= _LONGEST_WORDS
    linked = text.str.contains(r"https?://") | (pl.col("links").list.len() > 0).fill_null(False)
    says = partial(_says, words=pattern_of(words), excluded=pattern_of(excluded, tags=False))
    about = text.map_batches(says, pl.Boolean, is_elementwise=True)
    own = about & short & ~linked & ~pl.col("repost")
    return (pl.col("about") == "earthquake") | own.fill_null(False)


def _says(texts: pl.Series, words: str, excluded: str) -> pl.Series:
    """Whether texts match the first pattern and not the second, which is tried only on matches."""
    about = texts.str.contains(words)
    rows = about.arg_true()
    return about.scatter(rows.filter(texts.gather(rows).str.contains(excluded)), False)


def pattern_of(listed: str, tags: bool = True) -> str:
    """Return a regular expression for comma-separated words and phrases, whole unless they end in ``*``.

    Words in scripts without spaces match anywhere. With `tags`, a tag may continue before or after the word.
    Raises `ValueError` for an empty list.

    >>> import polars as pl
    >>> texts = pl.Series(["Narcisismo puro", "un sismo!", "#SismoCDMX", "今地震だ", "depremde"])
    >>> texts.str.contains(pattern_of("sismo, 地震, deprem*")).to_list()
    [False, True, True, True, True]
    """
    phrases = [phrase.strip().lower() for phrase in listed.split(",")]
    whole, anywhere, begun, inside = [], [], [], []
    for phrase in phrases:
        stem, any_ending = phrase.removesuffix("*"), phrase.endswith("*")
        if not stem:
            continue
        text = r"\s*".join(map(_escaped, stem.split()))
        if re.search(f"[{SPACELESS}]", stem):
            anywhere.append(text)
            continue
        # Frightened people often repeat the last letter.
        whole.append(text + (r"\w*" if any_ending else f"{_escaped(stem[-1])}*"))
        if len(stem) >= _BEGINS_TAGS:
            begun.append(text)
        if len(stem) >= _IN_TAGS:
            inside.append(rf"\w*{text}")
    if not whole and not anywhere:
        raise ValueError(f"words must be separated by commas, as in quake, sismo; got {listed!r}")
    # Without \b, which makes texts that aren't pure ASCII ten times slower.
    parts = [rf"(?:^|\W)(?:{'|'.join(whole)})(?:\W|$)"] if whole else []
    if begun and tags:
        parts.append(rf"[#＃](?:{'|'.join([*begun, *inside])})")
    return "(?i)" + "|".join([*parts, *anywhere])


def _escaped(word: str) -> str:
    # Escapes only characters with a meaning in a pattern; Python's own function escapes others, too.
    return re.sub(r"([\\.+*?()|\[\]{}^$#&~-])", r"\\\1", word)


def shaking(rows: Stream) -> Stream:
    """The number of these posts, second by second."""
    # Hours may pass without such a post: the first ones afterwards are the news, and must count.
    return rows.tumbling("1s", delay="10s").agg(
        posts=total("n"), spots=sample("spot", k=20), first=first("text")
    )


@dataclass(frozen=True)
class Earthquake(StaLta):
    """STA/LTA that also reports where the posts come from: the median of their places.

    Half of the places are nearer to the median than the reported radius.
    """

    spots: str = field(default="spots.values", kw_only=True)

    def paths(self) -> Iterable[str]:
        """See `Rule`."""
        return (*super().paths(), self.spots)

    def measure(self, memory: dict[str, Any], row: Row, figure: Figure) -> Measured:
        """See `LimitRule`; spots are remembered for as long as the short average looks back."""
        measured = super().measure(memory, row, figure)
        name, _, part = self.spots.partition(".")
        kept: list[list[Any]] = memory.setdefault("spots", [])
        kept += [[row.at_us, spot] for spot in (row.answers.get(name) or {}).get(part) or ()]
        oldest = row.at_us - self._duration("short")
        memory["spots"] = kept = [one for one in kept if one[0] > oldest]
        place = located([spot for _, spot in kept])
        return measured._replace(description=f"{measured.description}, {place}")


def located(spots: Iterable[str]) -> str:
    """A description of where posts come from.

    >>> located(["9.9,-84.1", "10.0,-84.2", "10.1,-85.6", "48.1,11.6"])
    'from around 10.05, -84.15 (4 places, half within 18 km)'
    """
    points = [tuple(map(float, spot.split(","))) for spot in spots]
    if not points:
        return "places unknown"
    latitude, longitude = (statistics.median(point[axis] for point in points) for axis in (0, 1))
    far = statistics.median_low(_km(latitude, longitude, *point) for point in points)
    places = f"{len(points)} place{'s' * (len(points) > 1)}"
    return f"from around {latitude:.4g}, {longitude:.4g} ({places}, half within {far:.0f} km)"


def _km(latitude: float, longitude: float, other_latitude: float, other_longitude: float) -> float:
    """The great circle between two points, by haversines."""
    up, across = radians(other_latitude - latitude), radians(other_longitude - longitude)
    half = sin(up / 2) ** 2 + cos(radians(latitude)) * cos(radians(other_latitude)) * sin(across / 2) ** 2
    return 2 * _EARTH_KM * asin(sqrt(half))
