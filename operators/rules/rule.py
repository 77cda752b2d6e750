"""The base of every rule: a fold over windows in their order, with plain JSON as its state.

A kind of rule defines how it evaluates a row (`LimitRule.measure`); this module handles limits, hysteresis,
holds and cooldown, and reports each event once. Your own kinds are subclasses.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..formats.jsonable import jsonable
from ..windows.durations import Duration, duration_text, microseconds
from .alert import Alert, State
from .command import Command, commands_of
from .event_state import Holds, due, elapse, lag_after, row_lag, turn
from .limit import Limit, Side
from .muting import HEARD, MUTED, muted
from .row import Row
from .value_with_bounds import Figure, answer_at, figure_of, words
from .window_rows import is_wanted, order_text

RuleState = dict[str, Any]
"""A rule's state, as plain JSON: `keys`, by their JSON, and the range of time that it has seen."""

STALE = "2d"
"""How long a reading is valid by default: a daily report may be missing once."""


@dataclass(frozen=True)
class Rule(ABC):
    """A rule with a name. `where` names values of keys, and other rows are ignored.

    `kind` is the kind of its alerts, by default the kind of the rule. `command` is carried out when an event
    fires and when it clears: a `Command`, or several. Raises `ValueError` or `TypeError`, naming the rule and
    the field, for an invalid value.
    """

    name: str
    kind: str = field(default="", kw_only=True)
    where: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    # What a rule remembers doesn't depend on its commands.
    command: Any = field(default=None, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ValueError(f"{type(self).__name__}: name must be the rule's name, got {self.name!r}")
        if not isinstance(self.where, Mapping):
            raise TypeError(f'{self._where}: where must be such as {{"key": "value"}}, got {self.where!r}')

        _ = self.commands

    @cached_property
    def commands(self) -> tuple[Command, ...]:
        """The commands that are carried out when its events fire and clear."""
        return commands_of(self.command, self._where)

    @property
    def _where(self) -> str:
        return f"the rule {self.name!r}"

    def begin(self) -> RuleState:
        """The state before the first window."""
        return {"keys": {}}

    def paths(self) -> Iterable[str]:
        """The answers that it reads, to be checked against the stream."""
        return ()

    @property
    def needs_steps(self) -> bool:
        """Whether it must know which windows lie between two; only tumbling and hopping windows show this."""
        return False

    @property
    def of_readings(self) -> str | None:
        """The name of a field that was set but applies only to readings."""
        return None

    @property
    def over_at_once(self) -> bool:
        """Whether each of its events is over as soon as it fires: none is ever cleared."""
        return False

    @property
    def together(self) -> Sequence[str] | None:
        """The keys by which rows must be together in one partition of the table topic.

        None if its alerts for a group depend only on that group's rows; an empty tuple, as here, if they may
        depend on any row.
        """
        return ()

    @abstractmethod
    def window(
        self, state: RuleState, rows: Sequence[Row], start_us: int, end_us: int, step_us: int
    ) -> Iterator[Alert]:
        """Evaluate all rows of the next window.

        `step_us` is the time from one window's end to the next, or 0.
        """

    def advance(self, state: RuleState, time_us: int, step_us: int) -> Iterator[Alert]:
        """Advance time: all windows that end at or before `time_us` were seen."""
        yield from ()

    def names(self) -> Iterable[str]:
        """The keys that it names, to be checked against the stream."""
        return self.where

    def key_names(self, keys: Sequence[str]) -> Sequence[str]:
        """The columns of the parts of its alerts' keys, in a stream with these keys."""
        return keys

    def concerned(self, rows: Iterable[Row]) -> Iterator[Row]:
        """The rows whose keys have the values of `where`."""
        if not self.where:
            yield from rows
            return
        for row in rows:
            if all(is_wanted(row.key.get(name), wanted) for name, wanted in self.where.items()):
                yield row

    def _duration(self, name: str) -> int:
        given = getattr(self, name)
        try:
            return microseconds(given)
        except (ValueError, TypeError) as error:
            raise type(error)(f"{self._where}: {name}: {error}") from None

    def _alert(
        self,
        state: State,
        key: str,
        start_us: int,
        at_us: int,
        figure: Figure | None,
        limit: float | None,
        why: str,
    ) -> Alert:
        kind = self.kind or type(self).__name__.lower()
        value, lower, upper = figure or (None, None, None)
        parts = tuple(json.loads(key))
        return Alert(self.name, kind, state, parts, at_us, start_us, value, lower, upper, limit, why)


class Measured(NamedTuple):
    """The value that a rule compares with its limit, and its description in words.

    Without enough support (`enough` is False) it is past no limit.
    """

    figure: Figure
    description: str
    enough: bool = True


@dataclass(frozen=True)
class LimitRule(Rule):
    """A rule that fires when a value is past a limit, and clears when it is back.

    value
        The answer to evaluate: the name of an aggregate, such as ``"posts"``, or a part of one, such as
        ``"latency.p99"``.
    above, at_least, below, at_most
        The limit: one of them.
    clear
        Hysteresis: the event is over when the value reaches this or lies beyond; without it, as soon as the
        value is no longer past the limit.
    hold, release
        How long the value must be past the limit to fire, and back to clear. A reading is valid until the
        next one of its key, so an event may begin, or end, between two readings, exactly at the end of the
        hold. A window counts with its length; a gap between a key's windows that is longer than `hold`
        restarts the hold.
    stale_after
        How long a reading's event lasts without another reading of its key before it is reported as
        ``"unknown"``: two days by default, or as long as `hold` and `release` if these are longer. The next
        reading past the limit fires it again; a reading that is back clears it.
    cooldown
        The shortest time between two fired events of a key. An event that begins earlier fires afterwards if
        it still lasts.
    every
        Every row past the limit fires separately; nothing is cleared.
    mute
        With `every`: a key that fires on more than this share of its rows, such as 0.2, is reported once as
        muted, and again with the number of suppressed alerts once it fires on less than half of that share.
        Every key is stored for this.
    surely
        An estimate is past the limit only if its nearer bound is.
    each
        The value is a list, such as a `top_k`: each item is a key of its own.
    absent
        The value for a window without a row of the key, such as 0 for a count. By default such a window is
        ignored.
    per
        The keys whose rows form one series, with one memory and one event at a time: by default all keys. For
        example, ``per=("symbol",)`` compares trades, which have a key each, with the symbol's other trades.
        Alerts with `every` still have the row's own key.
    support
        Other answers, and their smallest values for which the value counts: ``{"requests": 100}`` for a
        quantile of them. Rows with less are ignored.
    report
        Other answers to include in an alert, such as ``["sample.values"]``.
    unit
        The value's unit, such as ``"°C"``, for an event's reason.

    Your own kind returns the value to compare with the limit, given the row, a memory of the row's key (plain
    JSON, which it may change) and the answer:

    >>> import streamgauge as sg
    >>> class Doubled(sg.rules.LimitRule):
    ...     "Twice as much as in the key's window before."
    ...     def measure(self, memory, row, figure):
    ...         before, memory["value"] = memory.get("value"), figure.value
    ...         if not before:
    ...             return None
    ...         return sg.rules.Measured(figure.map(lambda value: value / before), "grew")
    >>> rule = Doubled("growth", value="posts", at_least=2)
    >>> state, posts = rule.begin(), [3, 4, 9]
    >>> rows = [sg.rules.Row({}, at, at + 1, {"posts": count}) for at, count in enumerate(posts)]
    >>> [alert.why for row in rows for alert in rule.window(state, [row], row.start_us, row.at_us, 1)]
    ['grew: at least 2']

    Raises `TypeError` or `ValueError`, naming the rule and the field, for an invalid value.
    """

    value: str = field(default="", kw_only=True)
    above: float | None = field(default=None, kw_only=True)
    at_least: float | None = field(default=None, kw_only=True)
    below: float | None = field(default=None, kw_only=True)
    at_most: float | None = field(default=None, kw_only=True)
    clear: float | None = field(default=None, kw_only=True)
    hold: Duration = field(default="0s", kw_only=True)
    release: Duration = field(default="0s", kw_only=True)
    # `stale_after` doesn't change what is remembered.
    stale_after: Duration = field(default="", kw_only=True, repr=False)
    cooldown: Duration = field(default="0s", kw_only=True)
    every: bool = field(default=False, kw_only=True)
    # Reporting a row doesn't change its key's memory.
    mute: float = field(default=0.0, kw_only=True, repr=False)
    surely: bool = field(default=False, kw_only=True)
    each: bool = field(default=False, kw_only=True)
    absent: float | None = field(default=None, kw_only=True)
    per: Sequence[str] = field(default=(), kw_only=True)
    support: Mapping[str, float] = field(default_factory=dict, kw_only=True)
    report: Sequence[str] = field(default=(), kw_only=True)
    # The unit of a value doesn't change what is remembered.
    unit: str = field(default="", kw_only=True, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.per, str) or any(not isinstance(name, str) for name in self.per):
            raise TypeError(f'{self._where}: per must be a list of keys, as in ["symbol"], got {self.per!r}')
        if not isinstance(self.support, Mapping):
            raise TypeError(f'{self._where}: support must be such as {{"n": 100}}, got {self.support!r}')
        if isinstance(self.report, str) or not isinstance(self.report, Sequence):
            raise TypeError(
                f'{self._where}: report must list answers, as in ["sample.values"], got {self.report!r}'
            )
        if not isinstance(self.unit, str):
            raise TypeError(f'{self._where}: unit must be a string such as "°C", got {self.unit!r}')
        for name in ("every", "surely", "each"):
            if not isinstance(given := getattr(self, name), bool):
                raise TypeError(f"{self._where}: {name} must be True or False, got {given!r}")
        if any(not isinstance(path, str) or not path for path in self.paths()):
            raise ValueError(f"{self._where}: value must name an answer of the stream, got {self.value!r}")
        assert self.limit is not None
        assert self.holds is not None
        nothing = self.clear is None and not (self.holds.hold_us or self.holds.release_us or self.stale_after)
        if self.every and not nothing:
            raise ValueError(
                f"{self._where}: every=True reports each row by itself, so clear, hold, release and "
                "stale_after don't apply; leave them out"
            )
        if isinstance(self.mute, bool) or not isinstance(self.mute, int | float) or not 0 <= self.mute < 1:
            raise ValueError(f"{self._where}: mute must be a share from 0 to 1, got {self.mute!r}")
        if self.mute and not self.every:
            raise ValueError(f"{self._where}: mute is for every=True; other events are reported once anyway")

    @cached_property
    def limit(self) -> Limit:
        """The limit."""
        limits = self.above, self.at_least, self.below, self.at_most
        return Limit.of(self._where, *limits, self.clear, self.surely)

    @cached_property
    def holds(self) -> Holds:
        """The hold times, the cooldown, and how long a reading is valid."""
        hold, release, cooldown = (self._duration(name) for name in ("hold", "release", "cooldown"))
        longest = max(hold, release)
        if not self.stale_after:
            return Holds(hold, release, cooldown, max(microseconds(STALE), longest))
        stale = self._duration("stale_after")
        if not stale or stale < longest:
            raise ValueError(
                f"{self._where}: stale_after must be at least as long as hold and release, "
                f"{duration_text(longest) if longest else 'and above 0s'}, got {self.stale_after!r}"
            )
        return Holds(hold, release, cooldown, stale)

    @property
    def over_at_once(self) -> bool:
        """See `Rule`."""
        return self.every

    @property
    def remembers_nothing(self) -> bool:
        """Whether what it reports of a row depends on that row alone."""
        measures = type(self).measure is not LimitRule.measure
        return self.every and not (self.mute or self.holds.cooldown_us or measures)

    @property
    def together(self) -> Sequence[str] | None:
        """See `Rule`. A memory that begins with the very first window depends on more than its key."""
        if self.absent is not None and type(self).new_memory is not LimitRule.new_memory:
            return ()
        return self.per or None

    @property
    def needs_steps(self) -> bool:
        """See `Rule`."""
        return self.absent is not None

    @property
    def of_readings(self) -> str | None:
        """See `Rule`."""
        return "stale_after" if self.stale_after else None

    def paths(self) -> Iterable[str]:
        """See `Rule`."""
        return (self.value, *self.support, *self.report)

    def names(self) -> Iterable[str]:
        """See `Rule`."""
        return [*self.where, *self.per]

    def key_names(self, keys: Sequence[str]) -> Sequence[str]:
        """See `Rule`: an item of a list is named after the answer that has the list."""
        return [*(self.per if self.per and not self.every else keys), *([self.value] if self.each else ())]

    def measure(self, memory: dict[str, Any], row: Row, figure: Figure) -> Measured | None:
        """The value to compare with the limit; None if this row gives none.

        `memory` is the key's own, plain JSON, to read and to change. While it is not empty the key is stored,
        however long it has no rows, unless `forgets` allows dropping it.
        """
        return Measured(figure, f"{self.value} is {self.with_unit(figure)}")

    def with_unit(self, text: Any) -> str:
        """A figure of the value, or its text, followed by the value's unit."""
        return f"{text} {self.unit}" if self.unit else str(text)

    @property
    def limits_value(self) -> bool:
        """Whether the limit is compared with the value, or something else in its unit."""
        return True

    def figures(self, row: Row) -> Iterator[tuple[tuple[Any, ...], Figure | None]]:
        """The figures of a row, each with the part that is added to its key."""
        enough = all(self._enough(row, path, least) for path, least in self.support.items())
        answer = answer_at(row.answers, self.value)
        if not self.each:
            yield (), figure_of(*answer) if enough else None
            return
        for item in answer[0] or ():
            yield (item["item"],), figure_of(item) if enough else None

    def window(
        self, state: RuleState, rows: Sequence[Row], start_us: int, end_us: int, step_us: int
    ) -> Iterator[Alert]:
        """See `Rule`."""
        if self.absent is not None:
            yield from self.advance(state, end_us - step_us, step_us)
            state.setdefault("begin", end_us - step_us)
            state["end"] = end_us
        seen = set()
        for row in self.concerned(rows):
            for more, figure in self.figures(row):
                own = key_text([*row.key.values(), *more])
                key = key_text([*(row.key[name] for name in self.per), *more]) if self.per else own
                seen.add(key)
                if figure is not None:
                    alert_key = own if self.every else key
                    lag_us = row_lag(row.at_us, start_us, end_us)
                    yield from self._evaluate(state, key, row, figure, step_us, alert_key, lag_us)
        if self.absent is not None:
            missing = [key for key in state["keys"] if key not in seen]
            yield from self._miss(state, missing, start_us, end_us, step_us)

    def advance(self, state: RuleState, time_us: int, step_us: int) -> Iterator[Alert]:
        """See `Rule`."""
        if self.absent is None:
            yield from self._elapse_all(state, time_us)
        if self.absent is None or "end" not in state:
            return
        while state["end"] + step_us <= time_us:
            if not state["keys"]:
                state["end"] += (time_us - state["end"]) // step_us * step_us
                return
            state["end"] += step_us
            yield from self._miss(state, list(state["keys"]), state["end"] - step_us, state["end"], step_us)

    def _miss(
        self, state: RuleState, keys: Iterable[str], start_us: int, end_us: int, step_us: int
    ) -> Iterator[Alert]:
        assert self.absent is not None
        for key in keys:
            row = Row({}, start_us, end_us, {})
            yield from self._evaluate(state, key, row, Figure.exactly(self.absent), step_us)

    def new_memory(self, state: RuleState, windows: int) -> dict[str, Any]:
        """The memory of a key that is seen for the first time, `windows` windows after the first of all."""
        return {}

    def forgets(self, memory: dict[str, Any]) -> bool:
        """Whether a key at rest may be dropped with this memory."""
        return not memory

    def take_back(self, memory: dict[str, Any], at_us: int) -> None:
        """Learn that the event of this key that fired at `at_us` was withdrawn: its reading was cancelled."""

    def _forget_old(
        self, state: RuleState, time_us: int, after_us: int, last_us: Callable[[dict[str, Any]], int]
    ) -> None:
        """Drop keys at rest that are `after_us` behind `time_us`, by `last_us`; checked as often."""
        if time_us < state.get("sweep", time_us):
            return
        for key, kept in list(state["keys"].items()):
            if not kept["switch"] and last_us(kept["memory"]) <= time_us - after_us:
                del state["keys"][key]
        state["sweep"] = time_us + after_us

    def _evaluate(
        self,
        state: RuleState,
        key: str,
        row: Row,
        figure: Figure,
        step_us: int,
        alert_key: str | None = None,
        lag_us: int = 0,
    ) -> Iterator[Alert]:
        kept = state["keys"].get(key)
        if kept is None:
            counted = self.absent is not None and step_us
            before = (row.at_us - step_us - state["begin"]) // step_us if counted else 0
            kept = state["keys"][key] = {"switch": {}, "memory": self.new_memory(state, before)}
        lasts = row.start_us == row.at_us and not self.every
        measured = self.measure(kept["memory"], row, figure)
        if measured is not None:
            # Nothing is due for any key before "next".
            if lasts and state.get("next", row.at_us) - kept.get("lag", 0) < row.at_us:
                yield from self._elapse(key, kept, row.at_us)
            said = self._next_states(kept["switch"], measured, row)
            if self.mute:
                yield from self._unmuted(kept, said is not None, alert_key or key, row, measured)
            elif said is not None:
                yield self.event(said, alert_key or key, row, measured)
            if lasts:
                self._note(state, kept, row, measured, lag_us)
        forgotten = not kept["switch"] and self.forgets(kept["memory"]) and self._rests_without_rows
        if forgotten and not self.mute:
            del state["keys"][key]

    def _unmuted(
        self, kept: dict[str, Any], fired: bool, key: str, row: Row, measured: Measured
    ) -> Iterator[Alert]:
        """The report of a rule with `mute` for a row."""
        counts = [np.array([count], np.int32) for count in kept.get("mute", (0, 0, -1))]
        said, held = muted(np.zeros(1, np.int64), np.array([fired], np.int8), self.mute, *counts)
        kept["mute"] = [int(count[0]) for count in counts]
        if said[0]:
            yield self.unmuted(int(said[0]), self.event("fired", key, row, measured), int(held[0]))

    def unmuted(self, said: int, alert: Alert, held: int) -> Alert:
        """The alert of a row that fired, or the report that its key is now muted or no longer muted."""
        if said == MUTED:
            why = f"{alert.why}; as on more than {self.mute:.0%} of rows, so it is muted until that is rarer"
            return replace(alert, why=why, details={**alert.details, "muted": True})
        if said == HEARD:
            why = f"heard again, after {held:,} that were muted"
            return replace(alert, state="cleared", why=why, details={"muted": held})
        return alert

    def _note(
        self, state: RuleState, kept: dict[str, Any], row: Row, measured: Measured, lag_us: int
    ) -> None:
        """Record when a reading causes a report if no other follows, and the report's text."""
        kept.pop("last", None)
        lag = lag_after(kept.pop("lag", 0), lag_us)
        if lag and kept["switch"]:
            kept["lag"] = lag
        at_us = due(kept["switch"], self.holds)
        if at_us is None:
            return
        state["next"] = min(at_us + kept.get("lag", 0), state.get("next", at_us + kept.get("lag", 0)))
        if "on" not in kept["switch"] or "back" in kept["switch"]:
            others = self._other_answers("fired", row) if "past" in kept["switch"] else ""
            kept["last"] = [list(measured.figure), measured.description, others]

    def _elapse(self, key: str, kept: dict[str, Any], until_us: int) -> Iterator[Alert]:
        """The report that a key's last reading causes before a time."""
        seen_us = kept["switch"].get("seen", until_us)
        while (said := elapse(kept["switch"], until_us, self.holds)) is not None:
            state, at_us = said
            figure, description, others = kept.pop("last", None) or (None, "", "")
            yield self.elapsed(state, key, seen_us, at_us, figure and Figure(*figure), description, others)

    def _elapse_all(self, state: RuleState, until_us: int) -> Iterator[Alert]:
        """The reports that all keys' last readings cause before a time, ordered by time and key."""
        if state.get("next", until_us) >= until_us:
            return
        alerts = []
        for key, kept in list(state["keys"].items()):
            passed_us = until_us - kept.get("lag", 0)
            alerts += [(alert.at_us, order_text(key), alert) for alert in self._elapse(key, kept, passed_us)]
            if not kept["switch"]:
                kept.pop("lag", None)
            if not kept["switch"] and self.forgets(kept["memory"]):
                del state["keys"][key]
        del state["next"]
        times = [(due(kept["switch"], self.holds), kept.get("lag", 0)) for kept in state["keys"].values()]
        if later := [at_us + lag for at_us, lag in times if at_us is not None]:
            state["next"] = min(later)
        alerts.sort(key=lambda one: one[:2])
        yield from (alert for _, _, alert in alerts)

    def elapsed(
        self,
        said: State,
        key: str,
        seen_us: int,
        at_us: int,
        figure: Figure | None,
        description: str,
        others: str = "",
    ) -> Alert:
        """The alert if an event begins, ends or becomes unknown some time after the last reading."""
        if said == "unknown" or figure is None:
            silence = duration_text(self.holds.stale_us)
            why = f"no reading for {silence}: whether it lasts is not known"
        else:
            why = f"{description}{self._because(said, figure)}{others}"
        return self._alert(said, key, seen_us, at_us, figure, self.limit.at, why)

    def event(self, said: State, key: str, row: Row, measured: Measured) -> Alert:
        """The alert if an event begins or ends with a row."""
        why = f"{measured.description}{self._because(said, measured.figure)}{self._other_answers(said, row)}"
        return self._alert(said, key, row.start_us, row.at_us, measured.figure, self.limit.at, why)

    @cached_property
    def _rests_without_rows(self) -> bool:
        """Whether a key without rows is at rest, unlike a count for which 0 is past the limit."""
        return self.absent is None or self.limit.side(Figure.exactly(self.absent)) != "past"

    def _next_states(self, switch: dict[str, Any], measured: Measured, row: Row) -> State | None:
        side: Side = self.limit.side(measured.figure) if measured.enough else "back"
        if not self.every:
            return turn(switch, side, row.start_us, row.at_us, self.holds)
        if row.at_us < switch.get("quiet", row.at_us):
            return None
        switch.clear()
        if side != "past":
            return None
        if self.holds.cooldown_us:
            switch["quiet"] = row.at_us + self.holds.cooldown_us
        return "fired"

    def _because(self, said: State, figure: Figure) -> str:
        if said == "cleared":
            clear = "" if self.clear is None else f" (clear at {self._of_limit(f'{self.clear:g}')})"
            held = f" for {duration_text(self.holds.release_us)}" * bool(self.holds.release_us)
            return f": back{held} from {self._of_limit(self.limit)}{clear}"
        held = f" for {duration_text(self.holds.hold_us)}" * bool(self.holds.hold_us)
        sure = "" if figure.exact or self.surely else "; an estimate, which may be short of it"
        return f": {self._of_limit(self.limit)}{held}{sure if self._unsure(figure) else ''}"

    def _of_limit(self, text: Any) -> str:
        return self.with_unit(text) if self.limits_value else str(text)

    def _other_answers(self, said: State, row: Row) -> str:
        """The other answers to report when an event begins."""
        answers = [(path, answer_at(row.answers, path)) for path in self.report] if said == "fired" else []
        texts = [f"; {path.partition('.')[0]}: {text}" for path, one in answers if (text := words(*one))]
        return "".join(texts)

    def _enough(self, row: Row, path: str, least: float) -> bool:
        figure = figure_of(*answer_at(row.answers, path))
        return figure is not None and figure.value >= least

    def _unsure(self, figure: Figure) -> bool:
        near = figure.lower if self.limit.upwards else figure.upper
        return self.limit.side(Figure.exactly(near)) != "past"


def key_text(key: Sequence[Any]) -> str:
    """A key's values as text, by which its memory is found.

    >>> key_text(["a", 3])
    '["a",3]'
    """
    return json.dumps(jsonable(list(key)), ensure_ascii=False, separators=(",", ":"))
