"""A rule about terms that were never seen before."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...rendering.names import visible_name
from ...windows.durations import Duration, duration_text
from ..alert import Alert
from ..row import Row
from ..rule import Rule, RuleState, key_text
from ..value_with_bounds import Figure, answer_at, figure_of

_SHOWN = 10
"""The number of terms that a digest lists."""


@dataclass(frozen=True)
class NewTerm(Rule):
    """A key, or an item of a list, is seen for the first time; fired once, and never cleared.

    learn
        The learning period after the very first row: nothing fires, and all terms in it are known.
    forget
        How long a term is known after its last row; by default for ever, if there is room.
    most
        The number of terms that are stored. If there are more, those not seen for the longest time are
        dropped and fire again if they return; `why` then has the number dropped.
    value, least
        An answer of the stream, and its smallest value for which a row's term counts.
    cap, digest
        The number of terms that are reported separately in each `digest` of time; the others are reported
        together at its end, in one alert without a key. Without a cap, each term is reported separately.
    each
        The value is a list, such as a `top_k`: each item is a term of its own, beside the key.

    Its state takes about 40 bytes and the text of each term. Raises `ValueError` or `TypeError`, naming the
    rule and the field, for an invalid field.

    Source: the "new terms" rules of security analytics.

    >>> import streamgauge as sg
    >>> new, hour = sg.rules.NewTerm("new agent", learn="2h"), 3_600_000_000
    >>> rows = [Row({"agent": name}, at * hour, at * hour + hour, {}) for at, name in enumerate("abcab")]
    >>> [(alert.key, alert.why) for alert in new.window(new.begin(), rows, 0, 5 * hour, hour)]
    [(('c',), 'first seen, after 2h of learning')]
    """

    learn: Duration = field(default="", kw_only=True)
    forget: Duration = field(default="0s", kw_only=True)
    most: int = field(default=10_000, kw_only=True)
    value: str = field(default="", kw_only=True)
    least: float = field(default=1, kw_only=True)
    each: bool = field(default=False, kw_only=True)
    cap: int = field(default=0, kw_only=True)
    digest: Duration = field(default="1d", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self._duration("learn"):
            raise ValueError(f"{self._where}: learn must be a duration such as '1d', got {self.learn!r}")
        if 0 < self._duration("forget") <= self._duration("learn"):
            raise ValueError(
                f"{self._where}: forget is {self.forget!r}, so terms are forgotten before learning ends; "
                f"write one that is longer than learn, {self.learn!r}"
            )
        if type(self.most) is not int or self.most < 1:
            raise ValueError(f"{self._where}: most must be an integer ≥ 1, got {self.most!r}")
        if type(self.cap) is not int or self.cap < 0:
            raise ValueError(f"{self._where}: cap must be an integer ≥ 1, or 0 for none, got {self.cap!r}")
        if not self._duration("digest"):
            raise ValueError(f"{self._where}: digest must be a duration such as '1d', got {self.digest!r}")
        if not isinstance(self.value, str):
            raise TypeError(f"{self._where}: value must name an answer of the stream, got {self.value!r}")
        if isinstance(self.least, bool) or not isinstance(self.least, int | float) or not self.least > 0:
            raise ValueError(f"{self._where}: least must be a number above 0, got {self.least!r}")
        if not isinstance(self.each, bool):
            raise TypeError(f"{self._where}: each must be True or False, got {self.each!r}")
        if not self.value and (self.each or self.least != 1):
            raise ValueError(f"{self._where}: each and least are about a value; name it, as in value='posts'")

    @property
    def over_at_once(self) -> bool:
        """See `Rule`."""
        return True

    def paths(self) -> Iterable[str]:
        """See `Rule`."""
        return (self.value,) if self.value else ()

    def key_names(self, keys: Sequence[str]) -> Sequence[str]:
        """See `Rule`: an item of a list is named after the answer that has the list."""
        return [*keys, self.value] if self.each else keys

    def begin(self) -> RuleState:
        """See `Rule`. `keys` has the time at which each term was last seen, the earliest first."""
        return {"keys": {}, "forgotten": 0}

    def window(
        self, state: RuleState, rows: Sequence[Row], start_us: int, end_us: int, step_us: int
    ) -> Iterator[Alert]:
        """See `Rule`."""
        known = state["keys"]
        for row in self.concerned(rows):
            yield from self._summary(state, row.at_us)
            begin = state.setdefault("begin", row.start_us)
            self._age(state, row.start_us)
            for more, figure in self._terms(row):
                key = key_text([*row.key.values(), *more])
                new = known.pop(key, None) is None
                known[key] = row.at_us
                if new and row.start_us - begin >= self._duration("learn"):
                    if self._waits(state, key, row.at_us):
                        continue
                    why = self._why(figure, state["forgotten"])
                    yield self._alert("fired", key, row.start_us, row.at_us, figure, None, why)
            while len(known) > self.most:
                del known[next(iter(known))]
                state["forgotten"] += 1

    def advance(self, state: RuleState, time_us: int, step_us: int) -> Iterator[Alert]:
        """See `Rule`."""
        self._age(state, time_us)
        yield from self._summary(state, time_us)

    def _waits(self, state: RuleState, key: str, at_us: int) -> bool:
        """Whether a new term is left to the digest; records it."""
        if not self.cap:
            return False
        state["reported"] = state.get("reported", 0) + 1
        state.setdefault("until", at_us - at_us % self._duration("digest") + self._duration("digest"))
        if state["reported"] <= self.cap:
            return False
        if state["reported"] <= self.cap + _SHOWN:
            state.setdefault("others", []).append(key)
        return True

    def _summary(self, state: RuleState, time_us: int) -> Iterator[Alert]:
        """The digest of a period that is over by now."""
        if time_us < state.get("until", time_us + 1):
            return
        until, count, others = state.pop("until"), state.pop("reported") - self.cap, state.pop("others", [])
        if count > 0:
            shown = "; ".join(", ".join(map(visible_name, json.loads(key))) for key in others)
            why = f"{count} more, first seen in {duration_text(self._duration('digest'))}: {shown}"
            more = "; …" * (count > len(others))
            start_us = until - self._duration("digest")
            yield self._alert("fired", "[]", start_us, until, Figure.exactly(float(count)), None, why + more)

    def _age(self, state: RuleState, time_us: int) -> None:
        known, forget = state["keys"], self._duration("forget")
        while forget and known and time_us - known[next(iter(known))] > forget:
            del known[next(iter(known))]

    def _terms(self, row: Row) -> Iterator[tuple[tuple[Any, ...], Figure | None]]:
        """The terms in a row: its key, or its key and each item, each with its figure."""
        if not self.value:
            yield (), None
            return
        answer = answer_at(row.answers, self.value)
        items = [((item["item"],), figure_of(item)) for item in answer[0] or ()] if self.each else None
        for more, figure in [((), figure_of(*answer))] if items is None else items:
            if figure is not None and figure.value >= self.least:
                yield more, figure

    def _why(self, figure: Figure | None, forgotten: int) -> str:
        description = "" if figure is None else f"{self.value} is {figure}, "
        since = f" for {duration_text(self._duration('forget'))}" if self._duration("forget") else ""
        lost = f"; {forgotten:,} terms beyond {self.most:,} were forgotten" if forgotten else ""
        learned = duration_text(self._duration("learn"))
        return f"{description}first seen{since}, after {learned} of learning{lost}"
