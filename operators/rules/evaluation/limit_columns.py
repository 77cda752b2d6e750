"""Rules with limits over all rows of a batch at once, with the same alerts as row by row."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

import numpy as np

from ....sketches.core.compilation.jit import inner, kernel
from ...windows.window import EARLIEST
from ..alert import Alert, State
from ..event_state import FOREVER, NEVER, STATES, UNKNOWN
from ..kinds.absence import Flatline, stretch_after
from ..kinds.baselines import Ewma, OfHours, Past, Rows, weighted
from ..kinds.change import Change
from ..kinds.seasonal_past import DEVIATION, measure_deviations
from ..kinds.seasonal_past import UNKNOWN as UNKNOWN_SEASON
from ..kinds.threshold import Ratio, Threshold
from ..kinds.time_zones import local_us
from ..kinds.unusual import Unusual
from ..muting import COUNTS, muted
from ..row import Row
from ..rule import LimitRule, Measured
from ..value_with_bounds import Figure, FigureColumns
from ..window_rows import WindowBatch, order_text
from .evaluator import WindowAlert
from .event_columns import LAG, SWITCH, at_rest, follow, turn_each
from .key_columns import KeyColumns

_HOUR_US = 3_600_000_000

R = TypeVar("R", bound=LimitRule)


class _Sides(NamedTuple):
    """Rows of a batch that can change a key's event: their numbers, places in the memory, sides of the limit.

    `measured` has the parts that describe each row, in columns.
    """

    rows: np.ndarray
    places: np.ndarray
    sides: np.ndarray
    measured: tuple[np.ndarray, ...]

    def only(self, mask: np.ndarray) -> _Sides:
        parts = tuple(column[mask] for column in self.measured)
        return _Sides(self.rows[mask], self.places[mask], self.sides[mask], parts)


class LimitColumns(Generic[R]):
    """Evaluates a rule whose keys at rest need no memory, such as a threshold; see `Evaluator`."""

    rest: ClassVar[Mapping[str, Any]] = {}
    """The columns of a key's memory, besides those of its event."""
    described_by: ClassVar[tuple[type, ...]] = (float, float, float)
    """The types of the parts that describe a row with an event."""

    def __init__(self, rule: R, readings: bool = False) -> None:
        self._rule = rule
        self._lasts = readings and not rule.every
        self._memory = self._empty()
        self._clock = np.array([FOREVER], np.int64)

    def _empty(self) -> KeyColumns:
        holds = self._rule.holds
        # A hold that ends between two readings is described by the first of them.
        waits = self._lasts and (holds.hold_us or holds.release_us or holds.cooldown_us)
        parts = {"parts": np.zeros(len(self.described_by))} if waits else {}
        lag = LAG if self._lasts else {}
        return KeyColumns({**SWITCH, **lag, **self.rest, **parts, **(COUNTS if self._rule.mute else {})})

    @property
    def started(self) -> bool:
        """See `Evaluator`."""
        return len(self._memory) > 0

    @property
    def due_us(self) -> int:
        """See `Evaluator`."""
        return int(self._clock[0])

    def evaluate(self, batch: WindowBatch, step_us: int, passing: bool) -> list[WindowAlert]:
        """See `Evaluator`."""
        rows, figures = self._rows(batch)
        said = self._sides(batch, rows, figures)
        if self._rule.every:
            fired = turn_each(
                self._memory, said.places, said.sides, batch.ends[said.rows], self._rule.holds.cooldown_us
            )
            if self._rule.mute:
                return self._unmuted(batch, said, fired)
            self._forget(said.places)
            return [one for _, one in self._row_alerts(batch, said, fired, ["fired"] * len(fired))]
        ends = [end for end, _ in batch.windows]
        if not len(said.rows) and not (passing and ends and ends[-1] > self._clock[0]):
            return []
        return self._follow(batch, said, np.array(ends if passing else [EARLIEST] * len(ends), np.int64))

    def _unmuted(self, batch: WindowBatch, said: _Sides, fired: np.ndarray) -> list[WindowAlert]:
        """The alerts of a rule with `mute`, given which rows fired."""
        marks = np.zeros(len(said.places), np.int8)
        marks[fired] = 1
        what, held = muted(said.places, marks, self._rule.mute, *(self._memory[name] for name in COUNTS))
        numbers = np.flatnonzero(what)
        alerts = self._row_alerts(batch, said, numbers, ["fired"] * len(numbers), what, held)
        return [one for _, one in alerts]

    def advance(self, time_us: int, step_us: int) -> list[Alert]:
        """See `Evaluator`."""
        if time_us <= self._clock[0]:
            return []
        none = np.empty(0, np.int64)
        said = _Sides(none, none, np.empty(0, np.int8), (np.empty(0),) * len(self.described_by))
        return [one.alert for one in self._follow(None, said, np.array([time_us], np.int64))]

    def _follow(self, batch: WindowBatch | None, said: _Sides, passed: np.ndarray) -> list[WindowAlert]:
        """Follow events through rows, and through the time that passes with each window."""
        rows, bounds = said.rows, np.zeros(2, np.int64)
        starts = ends = rows
        lags = None
        if batch is not None:
            starts, ends = batch.starts[rows], batch.ends[rows]
            lags = batch.lags[rows]
            bounds = np.searchsorted(batch.window[rows], np.arange(len(passed) + 1))
        turns = follow(
            self._memory,
            said.places,
            said.sides,
            starts,
            ends,
            bounds,
            passed,
            self._lasts,
            said.measured,
            self._rule.holds,
            self._clock,
            lags,
        )
        alerts: list[tuple[Any, WindowAlert]] = []
        _, row, place, what, _, _, elapsed = turns.events.T
        own = np.flatnonzero(elapsed == 0)
        if len(own) and batch is not None:
            alerts += self._row_alerts(batch, said, row[own], [STATES[one] for one in what[own].tolist()])
        for number in np.flatnonzero(elapsed).tolist():
            alerts.append(self._elapsed(batch, said, turns.events[number].tolist(), turns.parts[number]))
        alerts.sort(key=lambda one: one[0])
        self._forget(np.concatenate([said.places, place]) if len(place) else said.places)
        return [alert for _, alert in alerts]

    def _elapsed(
        self, batch: WindowBatch | None, said: _Sides, event: list[int], parts: np.ndarray
    ) -> tuple[Any, WindowAlert]:
        """The alert caused by time passing after a key's last reading, with its place among the alerts."""
        window, row, place, what, at, seen, _ = event
        key, state, measured = self._memory.key(place), STATES[what], None
        if what != UNKNOWN:
            values = [kind(value) for kind, value in zip(self.described_by, parts.tolist())]
            measured = self._measured(Row({}, seen, seen, {}), tuple(values))
        figure, description = (measured.figure, measured.description) if measured else (None, "")
        alert = self._rule.elapsed(state, key, seen, at, figure, description)
        if row < 0 or batch is None:
            return (window, 1, at, order_text(key), 0, at), WindowAlert(window, True, alert)
        number = said.rows[row]
        # It precedes the row's own alert.
        order = window, 0, int(batch.ends[number]), order_text(batch.keys()[number]), 0, at
        return order, WindowAlert(window, False, alert)

    @property
    def by_key(self) -> bool:
        """See `Evaluator`."""
        return True

    def copy(self) -> Self:
        """See `Evaluator`."""
        other = type(self)(self._rule, self._lasts)
        other._clock, other._memory = self._clock.copy(), self._memory.copy()
        return other

    def extract(self, key: str) -> Self:
        """See `Evaluator`."""
        other = type(self)(self._rule, self._lasts)
        other.insert(key, self)
        return other

    def insert(self, key: str, source: Self) -> None:
        """See `Evaluator`."""
        self._memory.take(key, source._memory)
        self._clock[0] = EARLIEST if self._lasts else FOREVER

    def forget_lags(self) -> None:
        """See `Evaluator`."""
        if self._lasts:
            self._memory["lag"][:] = 0
            self._clock[0] = EARLIEST

    def take_back(self, key: str, at_us: int) -> None:
        """See `Evaluator`."""
        places = self._memory.find([key])
        if places[0] >= 0 and self._memory["on"][places[0]] == at_us:
            for name, rest in SWITCH.items():
                self._memory[name][places] = rest

    def state(self) -> dict[str, Any]:
        """See `Evaluator`."""
        return self._memory.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """See `Evaluator`."""
        self._memory = self._empty()
        self._memory.restore(state)
        self._clock[0] = EARLIEST if self._lasts else FOREVER

    def _figures(self, batch: WindowBatch) -> FigureColumns:
        return batch.figures(self._rule.value)

    def _sides(self, batch: WindowBatch, rows: np.ndarray, figures: FigureColumns) -> _Sides:
        """The rows that matter: those within the limit don't affect a key at rest, so most are skipped."""
        sides, keys = self._rule.limit.sides(*figures), self._keys(batch, rows)
        past = sides > 0 if not self._rule.mute else np.ones(len(sides), bool)  # muting counts each row
        if not len(self._memory) and not past.any():
            rows = rows[:0]
        places = self._memory.find(keys) if len(self._memory) else np.full(len(rows), -1)
        if len(rows) and (past & (places < 0)).any():
            self._memory.add(keys[past & (places < 0)])
            places = self._memory.find(keys)
        known = np.flatnonzero(places >= 0)
        parts = tuple(column[known] for column in figures)
        return _Sides(rows[known], places[known], sides[known], parts)

    def _measured(self, row: Any, parts: tuple[Any, ...]) -> Measured:
        """The description of a row with an event."""
        measured = self._rule.measure({}, row, Figure(*parts))
        assert measured is not None
        return measured

    def _forget(self, places: np.ndarray) -> None:
        resting = np.unique(places[at_rest(self._memory, places)])
        if len(resting):
            self._memory.drop(resting)

    def _rows(self, batch: WindowBatch) -> tuple[np.ndarray, FigureColumns]:
        """The rows that have a figure, ordered by window, time and key, and their figures."""
        rule, figures = self._rule, self._figures(batch)
        usable = ~np.isnan(figures[0])
        for path, least in rule.support.items():
            with np.errstate(invalid="ignore"):
                usable &= batch.figures(path)[0] >= least
        if (concerned := batch.concerned(rule.where)) is not None:
            usable &= concerned
        if rule.per:
            order = batch.by_keys()
            rows = order[usable[order]]
        elif usable.all():
            return np.arange(len(usable)), figures
        else:
            rows = np.flatnonzero(usable)
        value, lower, upper = (column[rows] for column in figures)
        return rows, (value, lower, upper)

    def _keys(self, batch: WindowBatch, rows: np.ndarray) -> np.ndarray:
        keys = batch.keys(self._rule.per or None)
        return keys if len(rows) == len(keys) and not self._rule.per else keys[rows]

    def _row_alerts(
        self,
        batch: WindowBatch,
        said: _Sides,
        numbers: np.ndarray,
        states: Sequence[State],
        what: np.ndarray | None = None,
        held: np.ndarray | None = None,
    ) -> list[tuple[Any, WindowAlert]]:
        """The alerts of the rows with these numbers, each with its place in the order of alerts."""
        if not len(numbers):
            return []
        rule, rows, alerts = self._rule, said.rows[numbers], []
        own = batch.keys()[rows]
        keys = own if rule.every or not rule.per else batch.keys(rule.per)[rows]
        windows, ends = batch.window[rows].tolist(), batch.ends[rows].tolist()
        made, parts = batch.made(rows), list(zip(*(column[numbers].tolist() for column in said.measured)))
        for at, state in enumerate(states):
            alert = rule.event(state, keys[at], made[at], self._measured(made[at], parts[at]))
            if what is not None and held is not None:
                number = numbers[at]
                alert = rule.unmuted(int(what[number]), alert, int(held[number]))
            order = windows[at], 0, ends[at], order_text(own[at]), 1, ends[at]
            alerts.append((order, WindowAlert(windows[at], False, alert)))
        alerts.sort(key=lambda one: one[0])
        return alerts


class RatioColumns(LimitColumns[Ratio]):
    """The ratio of two answers."""

    described_by: ClassVar[tuple[type, ...]] = (float,) * 5

    def _figures(self, batch: WindowBatch) -> FigureColumns:
        part, whole = batch.figures(self._rule.value), batch.figures(self._rule.to)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            unknown = np.isnan(part[0]) | ~(whole[0] >= self._rule.least) | ~(whole[1] > 0)
            shares = part[0] / whole[0], part[1] / whole[2], part[2] / whole[1]
            value, lower, upper = (np.where(unknown, math.nan, share) for share in shares)
        return value, lower, upper

    def _sides(self, batch: WindowBatch, rows: np.ndarray, figures: FigureColumns) -> _Sides:
        said, rule = super()._sides(batch, rows, figures), self._rule
        part, whole = (batch.figures(path)[0][said.rows] for path in (rule.value, rule.to))
        return said._replace(measured=(*said.measured, part, whole))

    def _measured(self, row: Any, parts: tuple[Any, ...]) -> Measured:
        return self._rule.share(Figure(*parts[:3]), *parts[3:])


class FlatlineColumns(LimitColumns[Flatline]):
    """A value that stays the same: each key's value and since when it has had it."""

    rest: ClassVar[Mapping[str, Any]] = {"value": np.float64(math.nan), "since": np.int64(NEVER)}
    described_by: ClassVar[tuple[type, ...]] = (float, float, float, int)

    def _sides(self, batch: WindowBatch, rows: np.ndarray, figures: FigureColumns) -> _Sides:
        places, lengths = self._memory.add(self._keys(batch, rows)), np.empty(len(rows), np.int64)
        memory, within = self._memory, float(self._rule.within)
        times = batch.starts[rows], batch.ends[rows]
        _stretches(places, figures[0], *times, within, memory["value"], memory["since"], lengths)
        seconds = lengths / 1e6
        sides = self._rule.limit.sides(seconds, seconds, seconds)
        return _Sides(rows, places, sides, (*figures, lengths))

    def _measured(self, row: Any, parts: tuple[Any, ...]) -> Measured:
        return self._rule.stretch(Figure(*parts[:3]), parts[3])

    def _forget(self, places: np.ndarray) -> None:
        """Do nothing: each key's value is remembered."""


class ChangeColumns(LimitColumns[Change]):
    """A value compared with its own past, of which a few numbers are remembered."""

    described_by: ClassVar[tuple[type, ...]] = (float, float, float, int, float, float)

    def _past(self, places: np.ndarray, ends: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, ...]:
        """The number of rows before each row, their mean and spread; learns the rows."""
        raise NotImplementedError

    def _sides(self, batch: WindowBatch, rows: np.ndarray, figures: FigureColumns) -> _Sides:
        rule, places = self._rule, self._memory.add(self._keys(batch, rows))
        counts, mean, spread = self._past(places, batch.ends[rows], figures[0])
        scores = rule.scores(figures, mean, spread)
        usable = (counts >= max(rule.warm, 1)) & ~np.isnan(scores[0]) & ~np.isnan(scores[1] + scores[2])
        sides = rule.limit.sides(*scores)
        if rule.least is not None:
            sides[figures[0] < rule.least] = -1
        return _Sides(rows, places, sides, (*figures, counts, mean, spread)).only(usable)

    def _measured(self, row: Any, parts: tuple[Any, ...]) -> Measured:
        measured = self._rule.against_past(Figure(*parts[:3]), Past(*parts[3:]))
        assert measured is not None
        return measured

    def _forget(self, places: np.ndarray) -> None:
        """Do nothing: each key's past is remembered."""


class LastColumns(ChangeColumns):
    """Compared with the previous row."""

    rest: ClassVar[Mapping[str, Any]] = {"last": np.float64(math.nan)}

    def _past(self, places: np.ndarray, ends: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, ...]:
        last = np.empty(len(places))
        _before(places, values, self._memory["last"], last)
        return (~np.isnan(last)).astype(np.int64), last, np.zeros(len(places))


class EwmaColumns(ChangeColumns):
    """Compared with an exponentially weighted mean."""

    rest: ClassVar[Mapping[str, Any]] = {
        "rows": np.zeros(1, np.int64),
        "mean": np.zeros(1),
        "variance": np.zeros(1),
    }

    def _past(self, places: np.ndarray, ends: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, ...]:
        baseline = self._rule.baseline
        assert isinstance(baseline, Ewma | OfHours)
        past = tuple(np.empty(len(places), kind) for kind in (np.int64, np.float64, np.float64))
        means = (self._memory[name] for name in ("rows", "mean", "variance"))
        _weighted(places, self._parts(ends), values, baseline.weight, *means, *past)
        return past[0], past[1], np.sqrt(past[2])

    def _parts(self, ends: np.ndarray) -> np.ndarray:
        """The index of the key's mean that each row belongs to."""
        return np.zeros(len(ends), np.int64)


class HourColumns(EwmaColumns):
    """Compared with an exponentially weighted mean of the same hour of the day."""

    rest: ClassVar[Mapping[str, Any]] = {
        "rows": np.zeros(24, np.int64),
        "mean": np.zeros(24),
        "variance": np.zeros(24),
    }

    def _parts(self, ends: np.ndarray) -> np.ndarray:
        baseline = self._rule.baseline
        assert isinstance(baseline, OfHours)
        if baseline.zone == "UTC":
            utc: np.ndarray = (ends - 1) // _HOUR_US % 24
            return utc
        times, numbers = np.unique(ends - 1, return_inverse=True)
        hours = [local_us(time_us, baseline.zone) // _HOUR_US % 24 for time_us in times.tolist()]
        return np.array(hours, np.int64)[numbers]


class UnusualColumns(LimitColumns[Unusual]):
    """Compared with the season and the largest earlier deviations."""

    rest: ClassVar[Mapping[str, Any]] = UNKNOWN_SEASON
    described_by: ClassVar[tuple[type, ...]] = (float,) * (3 + len(DEVIATION))

    def _sides(self, batch: WindowBatch, rows: np.ndarray, figures: FigureColumns) -> _Sides:
        rule, places = self._rule, self._memory.add(self._keys(batch, rows))
        times = rule.local(batch.starts[rows])
        measured = measure_deviations(self._memory, places, times, figures[0], rule.warm, rule.limit.at)
        sides = rule.limit.sides(measured[0], measured[0], measured[0])
        return _Sides(rows, places, sides, (*figures, *measured)).only(~np.isnan(measured[0]))

    def _measured(self, row: Any, parts: tuple[Any, ...]) -> Measured:
        return self._rule.deviating(Figure(*parts[:3]), *parts[3:])

    def _forget(self, places: np.ndarray) -> None:
        """Do nothing: each key's past is remembered."""


_METHODS = (
    "window",
    "advance",
    "concerned",
    "figures",
    "measure",
    "new_memory",
    "forgets",
    "limit",
    "holds",
    "_evaluate",
    "_next_states",
    "elapsed",
    "unmuted",
    "_enough",
)


def limit_columns(rule: LimitRule, readings: bool = False) -> LimitColumns[Any] | None:
    """The evaluator of a rule by columns; None for a user-defined kind, and for a rule with a long memory.

    For readings, also None if a rule reports other answers, because a hold may end after the reading with
    them.
    """
    holds = rule.holds
    late_report = readings and rule.report and (holds.hold_us or holds.release_us or holds.cooldown_us)
    if rule.each or rule.absent is not None or late_report:
        return None
    for kind, columns in _COLUMNS.items():
        if isinstance(rule, kind) and keeps(rule, kind, _METHODS):
            return columns(rule, readings)
    if isinstance(rule, Change) and keeps(rule, Change, (*_METHODS, "against_past", "baseline", "_score")):
        past = _change_columns(rule)
        return None if past is None else past(rule, readings)
    return None


_COLUMNS: dict[type[LimitRule], type[LimitColumns[Any]]] = {
    Threshold: LimitColumns,
    Ratio: RatioColumns,
    Flatline: FlatlineColumns,
    Unusual: UnusualColumns,
}


def keeps(rule: object, kind: type, methods: tuple[str, ...]) -> bool:
    """Whether a rule's class uses these methods of `kind`, without overriding them."""
    return all(getattr(type(rule), name) is getattr(kind, name) for name in methods)


def _change_columns(rule: Change) -> type[ChangeColumns] | None:
    match rule.baseline:
        case Rows("last", _, 0):
            return LastColumns
        case OfHours():
            return HourColumns
        case Ewma():
            return EwmaColumns
    return None


_stretch, _weighted_row = inner(stretch_after), inner(weighted)


@kernel
def _stretches(places, values, starts, ends, within, memory, since, lengths):
    """For how long each row's value has equalled the first value of its stretch, up to the row's end."""
    for i in range(len(places)):
        key = places[i]
        memory[key], since[key] = _stretch(values[i], starts[i], within, memory[key], since[key])
        lengths[i] = ends[i] - since[key]


@kernel
def _before(places, values, last, before):
    """The previous value of each row's key."""
    for i in range(len(places)):
        before[i] = last[places[i]]
        last[places[i]] = values[i]


@kernel
def _weighted(
    places, parts, values, weight, rows, mean, variance, count_before, mean_before, variance_before
):
    """Exponentially weighted means before each row; learns the rows."""
    for i in range(len(places)):
        key, part = places[i], parts[i]
        n, average, spread = rows[key, part], mean[key, part], variance[key, part]
        count_before[i] = n
        mean_before[i] = average
        variance_before[i] = spread
        rows[key, part], mean[key, part], variance[key, part] = _weighted_row(
            values[i], weight, n, average, spread
        )
