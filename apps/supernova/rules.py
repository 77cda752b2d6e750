"""Rules of this field: report a candidate once, and alerts near watched positions."""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import quote

from ...operators.rules.alert import Alert
from ...operators.rules.row import Row
from ...operators.rules.rule import Rule, RuleState
from ...operators.rules.value_with_bounds import Figure, answer_at, figure_of
from ...operators.windows.durations import Duration
from .places import Places

_SHOWN = ("ra", "dec", "age", "rate", "rb", "drb", "matches", "host", "host_distance", "host_z")
"""The values of an alert that reasons mention."""
_DETAILS = (
    *("mag", "error", "limit", *_SHOWN),
    *("match", "match_type", "match_distance", "match_in"),
)
"""The values of an alert for programs, in addition to its band."""


class Event(NamedTuple):
    """An event in a row: its key, its figure, the limit, and the reason for the report.

    `details` are added to the details that every row has.
    """

    key: tuple[Any, ...]
    figure: Figure
    limit: float
    why: str
    details: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class Once(Rule):
    """A rule whose events are reported once for each key; each kind defines the events of a row (`events`).

    value
        The answer that contains a row's magnitude.
    forget
        A key without an event for this long is reported again. Reported keys are remembered until then.
    """

    value: str = field(default="", kw_only=True)
    forget: Duration = field(default="365d", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.value, str) or not self.value:
            raise ValueError(f"{self._where}: value must name an answer of the stream, got {self.value!r}")
        if not self._duration("forget"):
            raise ValueError(f"{self._where}: forget must be a duration such as '365d', got {self.forget!r}")

    @property
    def over_at_once(self) -> bool:
        """See `Rule`."""
        return True

    def paths(self) -> Iterable[str]:
        """See `Rule`."""
        return self.value, *_DETAILS

    @abstractmethod
    def events(self, row: Row, magnitude: Figure) -> Iterator[Event]:
        """The events of a row that has a magnitude."""

    def window(
        self, state: RuleState, rows: Sequence[Row], start_us: int, end_us: int, step_us: int
    ) -> Iterator[Alert]:
        """See `Rule`."""
        keys = state["keys"]
        for row in self.concerned(rows):
            magnitude = figure_of(*answer_at(row.answers, self.value))
            for event in self.events(row, magnitude) if magnitude is not None else ():
                key = json.dumps(event.key, ensure_ascii=False, separators=(",", ":"))
                last = keys.get(key)
                keys[key] = row.at_us if last is None else max(last, row.at_us)
                if last is None or row.at_us - last > self._duration("forget"):
                    at = row.start_us, row.at_us
                    alert = self._alert("fired", key, *at, event.figure, event.limit, event.why)
                    yield replace(alert, details={**_details(row), **event.details})

    def advance(self, state: RuleState, time_us: int, step_us: int) -> Iterator[Alert]:
        """See `Rule`."""
        # Twice as long, as alerts may come long after their night.
        oldest = time_us - 2 * self._duration("forget")
        for key in [key for key, last in state["keys"].items() if last < oldest]:
            del state["keys"][key]
        yield from ()


@dataclass(frozen=True)
class Candidate(Once):
    """An object has an alert that passed the cuts, and is brighter than `below`.

    Its value is the magnitude of alerts that passed, and null for others. `cuts` names the set in the
    reported reason. Objects that the file `known` names, or within `radius` arcseconds of a position there,
    are not candidates. It never states the type of a candidate. `page` is the address of the server with the
    candidates' pages: alerts then end with a link. `scores` are further answers to include in alerts. Raises
    `OSError` or `ValueError` for a file that can't be read, and `ValueError` for an address that isn't one.

    >>> rule = Candidate("candidate", value="candidate", below=19.8, cuts="bts")
    >>> answers = {"candidate": 18.2, "ra": 185.7288, "dec": 15.8236, "age": 4.06}
    >>> rows = [Row({"object": "ZTF20aaelulu", "band": "r"}, at, at, answers) for at in (0, 1)]
    >>> [alert.why for alert in rule.window(rule.begin(), rows, 0, 1, 0)]
    ['r 18.20 at 185.72880 +15.82360, passed bts: below 19.8; age 4.1 d']
    """

    below: float = field(default=99.0, kw_only=True)
    cuts: str = field(default="", kw_only=True)
    known: str = field(default="", kw_only=True)
    radius: float = field(default=2.0, kw_only=True)
    page: str = field(default="", kw_only=True)
    scores: Sequence[str] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.known:
            _ = self._places.all
        if self.page and not re.match(r"https?://[^/\s]+", self.page):
            raise ValueError(
                f"{self._where}: page must be the address of the page's server, such as http://desk:8055, "
                f"got {self.page!r}"
            )

    @cached_property
    def _places(self) -> Places:
        return Places(self.known, self.radius)

    def paths(self) -> Iterable[str]:
        """See `Rule`."""
        return *super().paths(), *self.scores

    def events(self, row: Row, magnitude: Figure) -> Iterator[Event]:
        """See `Once`."""
        if magnitude.value < self.below and not (self.known and self._is_known(row)):
            passed = f"passed {self.cuts}: " if self.cuts else ""
            why = f"{_seen(row, magnitude)}, {passed}below {self.below:g}{_described(row)}"
            name = row.key["object"]
            scores = {path: score for path in self.scores if (score := row.answers.get(path)) is not None}
            why += "".join(f", {path} {score:.3g}" for path, score in scores.items())
            if not self.page:
                yield Event((name,), magnitude, self.below, why, scores)
                return
            page = f"{self.page.rstrip('/')}/apps/supernova/objects/{quote(str(name), safe='')}.html"
            yield Event((name,), magnitude, self.below, f"{why}; {page}", {"page": page, **scores})

    def _is_known(self, row: Row) -> bool:
        at, places = _place(row), self._places
        return row.key["object"] in places.names or (at is not None and any(True for _ in places.within(*at)))


@dataclass(frozen=True)
class Watch(Once):
    """An alert is within the cone of a watched place; an object is reported once for each place.

    The file `places` lists the places; `radius`, in arcseconds, applies to places without a radius of their
    own. Alerts report the distance. Raises `OSError` or `ValueError` for a file that can't be read.
    """

    places: str = field(default="", kw_only=True)
    radius: float = field(default=2.0, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.places:
            raise ValueError(f"{self._where}: places is not given; name a file with name, ra and dec")
        _ = self._watched.all

    @cached_property
    def _watched(self) -> Places:
        return Places(self.places, self.radius)

    def events(self, row: Row, magnitude: Figure) -> Iterator[Event]:
        """See `Once`."""
        at = _place(row)
        for place, apart in self._watched.within(*at) if at is not None else ():
            near = f"{apart:.2f}″ from {place.name}: within {place.radius:g}″"
            why = f"{_seen(row, magnitude)}, {near}{_described(row)}"
            yield Event((row.key["object"], place.name), Figure.exactly(apart), place.radius, why)


def _details(row: Row) -> dict[str, Any]:
    """Return the details of an alert, by name."""
    answers = {"band": row.key.get("band"), **{name: row.answers.get(name) for name in _DETAILS}}
    return {name: value for name, value in answers.items() if value is not None}


def _place(row: Row) -> tuple[float, float] | None:
    ra, dec = row.answers.get("ra"), row.answers.get("dec")
    return None if ra is None or dec is None else (ra, dec)


def _seen(row: Row, magnitude: Figure) -> str:
    at = _place(row)
    where = f" at {at[0]:.5f} {at[1]:+.5f}" if at is not None else ""
    return f"{row.key.get('band') or 'magnitude'} {magnitude.value:.2f}{where}"


def _described(row: Row) -> str:
    answers = row.answers
    parts = [
        (answers.get("age"), "age {:.1f} d"),
        (answers.get("rate"), "{:+.2f} mag/d"),
        (answers.get("rb"), "rb {:.2f}"),
        (answers.get("drb"), "drb {:.2f}"),
    ]
    words = ", ".join(text.format(value) for value, text in parts if value is not None)
    return "".join(f"; {part}" for part in (words, *_nearby(answers)) if part)


def _nearby(answers: Mapping[str, Any]) -> Iterator[str]:
    """Describe the matches in extracts of catalogues."""
    if (matches := answers.get("matches")) is not None:
        yield f"matches {matches}"
    if (host := answers.get("host")) is not None:
        z = answers.get("host_z")
        redshift = "" if z is None else f", z {z:.4g}"
        yield f"host {host} {answers.get('host_distance', 0):.2f}″ away{redshift}"
