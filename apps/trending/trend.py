"""Trends, with one alert per event, named by the longest phrase that most of its authors use."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from ...operators.rules.alert import Alert
from ...operators.rules.kinds.burst import Burst
from ...operators.rules.row import Row
from ...operators.rules.rule import RuleState, key_text
from ...operators.windows.durations import Duration
from .words import SPACELESS

_SPACELESS = re.compile(f"[{SPACELESS}]")
_NAMED = 8
"""The number of an event's other terms that its alert lists."""


class BurstingTerm(NamedTuple):
    """A bursting term: its key, its number of authors, and some of the texts that contain it."""

    key: tuple[Any, ...]
    text: str
    value: float
    samples: tuple[str, ...]

    def about(self, other: BurstingTerm) -> bool:
        """Whether texts with this term mostly contain the other one.

        A phrase contains its own words. Otherwise samples of the texts decide: more than half of at least
        three.
        """
        if _holds(self.text, other.text):
            return True
        holding = sum(_holds(text, other.text) for text in self.samples)
        return len(self.samples) >= 3 and 2 * holding > len(self.samples)

    def phrase_of_most(self, other: BurstingTerm) -> bool:
        """Whether this is a phrase with the other's words that more than half of the other's authors use."""
        return 2 * self.value > other.value and _holds(self.text, other.text)


@dataclass(frozen=True)
class Trend(Burst):
    """Keys that have far more than usual, reported once for each event.

    The terms of one event burst together: a phrase, its words, and other words of the same posts. Within a
    window, a key belongs to another key with at least as many authors if it is a longer phrase with the
    other's words, or if most of its posts contain the other one. The words of a phrase belong together if
    most of the authors of each word write the phrase. Of the keys that belong together, only the longest that
    more than half of the largest key's authors use is reported, and its alert names the others. A key that
    begins within `within` of an event and belongs to it is part of that event. `Burst` describes everything
    else.

    `texts` names an answer with samples of the posts; without it, only phrases and their words belong
    together.

    >>> trend = Trend("trend", value="authors", above=5, least=10, warm=1)
    >>> minute, state = 60_000_000, trend.begin()
    >>> having = [{"台風": 120, "接近": 80, "台風接近": 70} if at == 5 else {} for at in range(6)]
    >>> alerts = []
    >>> for at, counts in enumerate(having):
    ...     begin, end = at * minute, (at + 1) * minute
    ...     keys = [{"kind": "words", "term": term} for term in counts]
    ...     rows = [Row(key, begin, end, {"authors": counts[key["term"]]}) for key in keys]
    ...     alerts += trend.window(state, rows, begin, end, minute)
    >>> [(alert.key[1], alert.why.rpartition("; ")[2]) for alert in alerts if alert.state == "fired"]
    [('台風接近', 'also: 台風, 接近')]
    """

    texts: str = field(default="", kw_only=True)
    within: Duration = field(default="30m", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._duration("within")

    def paths(self) -> Iterable[str]:
        """See `Rule`."""
        return (*super().paths(), *([self.texts] if self.texts else ()))

    def begin(self) -> RuleState:
        """See `Rule`."""
        return {**super().begin(), "events": {}, "parts": {}}

    def window(
        self, state: RuleState, rows: Sequence[Row], start_us: int, end_us: int, step_us: int
    ) -> Iterator[Alert]:
        """See `Rule`."""
        before = set(state["keys"])
        alerts = list(super().window(state, rows, start_us, end_us, step_us))
        fired = {key_text(alert.key) for alert in alerts if alert.state == "fired"}
        also: dict[str, list[str]] = {}
        if fired:
            known = fired | before
            terms = [one for one in self._terms(rows) if key_text(one.key) in known]
            for event in _events(terms):
                also |= self._assign(state, event, fired, end_us)
        for alert in self._without_parts(state, alerts):
            others = also.get(key_text(alert.key)) if alert.state == "fired" else None
            yield replace(alert, why=f"{alert.why}; also: {', '.join(others[:_NAMED])}") if others else alert

    def advance(self, state: RuleState, time_us: int, step_us: int) -> Iterator[Alert]:
        """See `Rule`."""
        yield from self._without_parts(state, super().advance(state, time_us, step_us))

    def _assign(
        self, state: RuleState, event: list[BurstingTerm], fired: set[str], end_us: int
    ) -> dict[str, list[str]]:
        """Assign new terms to their event: the key that reports it, with the others, if it is a new one."""
        new = [one for one in event if key_text(one.key) in fired]
        keys = {key_text(one.key) for one in event} - fired
        begun = [state[known][key] for known in ("events", "parts") for key in keys if key in state[known]]
        recent = [at for at in begun if end_us - at <= self._duration("within")]
        teller = None if recent else _teller(new) if new else None
        for one in new:
            if one is teller:
                state["events"][key_text(one.key)] = end_us
            else:
                state["parts"][key_text(one.key)] = min(recent, default=end_us)
        if teller is None:
            return {}
        return {key_text(teller.key): [one.text for one in new if one.text != teller.text]}

    def _without_parts(self, state: RuleState, alerts: Iterable[Alert]) -> Iterator[Alert]:
        """Alerts without those about parts of events, whose beginnings were not reported."""
        for alert in alerts:
            key = key_text(alert.key)
            part = key in state["parts"]
            if alert.state == "cleared":
                state["events"].pop(key, None)
                state["parts"].pop(key, None)
            if not part:
                yield alert

    def _terms(self, rows: Sequence[Row]) -> Iterator[BurstingTerm]:
        for row in self.concerned(rows):
            figure = next((figure for _, figure in self.figures(row)), None)
            if figure is not None:
                sampled = (row.answers[self.texts] or {}).get("values") if self.texts else None
                samples = tuple(_plain(str(text)) for text in sampled or ())
                text = _plain(str(row.key.get("term") or next(iter(row.key.values()))))
                yield BurstingTerm(tuple(row.key.values()), text, figure.value, samples)


def _events(terms: Iterable[BurstingTerm]) -> list[list[BurstingTerm]]:
    """Group terms that belong together, each with the most used term first."""
    events: list[list[BurstingTerm]] = []
    for term in sorted(terms, key=lambda one: (-one.value, len(one.text), one.text)):
        joined = [event for event in events if any(term.about(other) for other in event)]
        if not joined:
            events.append([term])
            continue
        # Words whose authors mostly write this phrase belong together, whatever their samples say.
        for event in [one for one in joined[1:] if any(term.phrase_of_most(other) for other in one)]:
            events.remove(event)
            joined[0] += event
        joined[0].append(term)
    return events


def _teller(terms: list[BurstingTerm]) -> BurstingTerm:
    """Return the longest term that more than half of the largest's authors use; a link only if all are
    links."""
    most = max(one.value for one in terms)
    return max(
        (one for one in terms if 2 * one.value > most),
        key=lambda one: ("://" not in one.text, len(one.text), one.value),
    )


def _holds(text: str, term: str) -> bool:
    """Whether a text has all words of a term, or the term somewhere if its script has no spaces.

    Words of a phrase need not be neighbours in the text: very frequent ones between them are skipped.

    >>> _holds("a bridge in ohio", "bridge ohio"), _holds("keyboard", "key"), _holds("台風接近", "台風")
    (True, False, True)
    """
    if _SPACELESS.search(term) or not term[:1].isalnum():
        return term in text
    return all(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) for word in term.split())


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text.replace("’", "'")).lower()
