"""Posts of people who feel the ground shake: which they are, when they set in, and where they come from.

Sources: T. Sakaki, M. Okazaki, Y. Matsuo, "Earthquake shakes Twitter users: real-time event detection by
social sensors", WWW 2010 (keywords, short texts, location from the posters'); P. Earle, D. Bowden, M. Guy,
"Twitter earthquake detection: earthquake monitoring in a social world", Annals of Geophysics 54 (2012)
(STA/LTA on counts, no links, no retweets).
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import asin, cos, radians, sin, sqrt
from typing import Any

import polars as pl

from ...operators.definition.aggregates import first, sample
from ...operators.definition.aggregates import sum as total
from ...operators.definition.stream import Stream
from ...operators.rules.row import Row
from ...operators.rules.rule import Measured
from ...operators.rules.sta_lta import StaLta
from ...operators.rules.value_with_bounds import Figure

KEYWORDS = (
    "earthquake quake tremor terremoto temblor temblando tembló tiembla sismo gempa deprem lindol séisme "
    "erdbeben σεισμός землетрясение 地震 揺れた 지진 भूकंप"
)
"""What people write who feel one, in the languages of places that shake."""

_LONGEST_WORDS = 12
_EARTH_KM = 6371.0


def felt() -> pl.Expr:
    """Which posts they are: short, own words, without a link; or all, of a crawl of earthquakes."""
    words = r"(?i)" + "|".join(KEYWORDS.split())
    text = pl.col("text")
    short = text.str.count_matches(r"\S+") <= _LONGEST_WORDS
    linked = text.str.contains(r"https?://") | (pl.col("links").list.len() > 0).fill_null(False)
    own = text.str.contains(words) & short & ~linked & ~pl.col("repost")
    return (pl.col("about") == "earthquake") | own.fill_null(False)


def shaking(rows: Stream) -> Stream:
    """Those posts, second by second."""
    # Hours may pass without such a post: the first ones after them are the news, and must be believed.
    return rows.tumbling("1s", delay="10s").agg(
        posts=total("n"), spots=sample("spot", k=20), first=first("text")
    )


@dataclass(frozen=True)
class Earthquake(StaLta):
    """STA/LTA that reports, with an onset, where its posts come from: the median of their places.

    Of the spread, half of the places are nearer to the median than it says.
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
    """Where posts come from, in words.

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
