"""Rules as a fold over the closed windows of one partition of a table, in order.

The fold depends only on the windows, so the same windows give the same alerts on either engine, and the state
between any two of them can be stored. A window that only silence has closed may be emitted again, complete
(`operators.watermarks.global_watermark`). Until it is final, it is held beside the state of final windows,
and its alerts are reported immediately. Once it is final, alerts that were already reported are not reported
again, and those that no longer hold are withdrawn.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa

from ....sketches.core.answers import USUAL_QUANTILES
from ...table.query import query
from ...table.schema import aggregates_of, keys_of
from ...table.window_groups import WindowGroups
from ...table.windows import declared_windows
from ...windows.table import TableWindows
from ...windows.window import EARLIEST
from ..alert import Alert
from ..event_state import FOREVER
from ..late_readings import LateReadings
from ..row import Row
from ..rule import LimitRule, Rule, key_text
from ..value_with_bounds import answer_at
from ..window_rows import LazyRows, RowColumns, Window, WindowBatch, by_window
from .evaluator import Evaluator, WindowAlert
from .evaluators import evaluator_of
from .key_order import KeyOrder, late_by

log = logging.getLogger("streamgauge.rules")

_OF_A_SAMPLE = ("n", "values", "error")
"""The fields of a sample's answer; the type of its values is known only from the first of them."""

_CAUSES, _CANCELLED_US = 10_000, 86_400_000_000
"""How many readings with a fired event can be cancelled, the latest ones, and for how long."""

_CANCELLED = "its reading was cancelled"

_FORM = 3
"""The version of the stored state. Version 2, which is restored too, lists keys as they are."""


class RuleView(NamedTuple):
    """A table as rules see it: the keys that distinguish rows, the requested answers, its windows.

    `at` is the key with a reading's own time, if rows are readings rather than windows. `cancels` is the
    answer that marks a reading as cancelling an earlier one.
    """

    keys: tuple[str, ...]
    answers: tuple[str, ...]
    windows: TableWindows
    at: str | None
    cancels: str | None = None

    @property
    def step_us(self) -> int:
        """The time from one window's end to the next; 0 for readings and for windows without fixed steps."""
        return self.windows.step_us if self.at is None else 0

    def last_end(self, time_us: int) -> int:
        """The end of the last window that ends at or before `time_us`."""
        return self.windows.last_end(time_us) if self.windows.in_steps and time_us > EARLIEST else time_us


def rule_view(
    rules: Sequence[Rule], schema: pa.Schema, at: str | None, cancels: str | None = None
) -> RuleView:
    """The rules' view of tables with this schema.

    Raises `ValueError` for two rules with one name, for answers and keys that the table doesn't have, for a
    rule that doesn't suit the windows, and for a time column that is not a key with times.
    """
    names = [rule.name for rule in rules]
    if double := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"two rules are named {min(double)!r}; their alerts are distinguished by name")
    keys = keys_of(schema)
    windows = declared_windows(schema)
    if windows is None:
        raise ValueError("rules need a table of a stream's windows, and this one names none")
    if at is not None:
        _check_readings(at, keys, schema, windows)
    empty = query(schema.empty_table())
    aggregates = aggregates_of(schema)
    answers: dict[str, None] = {}
    for rule in rules:
        for path in rule.paths():
            answers[_answer(rule, path, aggregates, empty.schema)] = None
        if unknown := [name for name in rule.names() if name not in keys]:
            field = "where" if unknown[0] in rule.where else "per"
            raise ValueError(
                f"the rule {rule.name!r}: {field} names {unknown[0]!r}, which is not a key of the stream; "
                f"its keys are {_listed(keys)}"
            )
        if at is None and (name := rule.of_readings):
            raise ValueError(
                f"the rule {rule.name!r}: {name} is for readings, and here rows are windows; leave it out"
            )
        if rule.needs_steps and (at is not None or not windows.step_us):
            shape = "rows are readings" if at is not None else f"the stream has {windows}"
            if at is None and windows.in_steps:
                shape += ", which differ in length; choose windows of a fixed length"
            needs = "absent is what a value is in a window without rows"
            if getattr(rule, "absent", None) is None:
                needs = f"{type(rule).__name__} counts windows without rows, so it needs windows in steps"
            raise ValueError(f"the rule {rule.name!r}: {needs}, and here {shape}")
    if cancels is not None:
        if at is None:
            raise ValueError(
                f"cancels is {cancels!r}, which is for readings; name the key with their time, at="
            )
        if cancels not in aggregates:
            raise ValueError(
                f"cancels is {cancels!r}, which is not an answer of the stream; there are "
                f"{_listed(aggregates)}"
            )
        answers[cancels] = None
    return RuleView(tuple(key for key in keys if key != at), tuple(answers), windows, at, cancels)


class RuleEngine:
    """The rules over one partition of a table of sketches; `state` is its whole state.

    >>> import streamgauge as sg
    >>> rows = sg.Stream.from_schema({"at": pl.Int64}, time=pl.from_epoch("at"))
    >>> posts = rows.tumbling("1m").agg(posts=sg.count())
    >>> tester, rules = sg.StreamTester(posts), [sg.rules.Threshold("busy", value="posts", at_least=2)]
    >>> _ = tester.feed([{"at": 1_767_225_600 + second} for second in (0, 1, 70, 80, 200)])
    >>> groups = WindowGroups.of_table(tester.tables().to_arrow())
    >>> fold = RuleEngine(rules, rule_view(rules, groups.schema, None))
    >>> [str(alert) for alert in fold.evaluate(groups, final=True)][0]
    '2026-01-01T00:01:00+00:00 busy fired: posts is 2: at least 2'
    """

    def __init__(
        self, rules: Sequence[Rule], looks: RuleView, app: str = "", lateness_us: int | None = None
    ) -> None:
        self._rules = tuple(rules)
        self._view = looks
        self._app = app
        self._key_names = {rule.name: tuple(rule.key_names(looks.keys)) for rule in self._rules}
        self._evaluators = [evaluator_of(rule, readings=looks.at is not None) for rule in self._rules]
        self._pending: dict[Window, Sequence[Row]] = {}
        self._emitted: dict[str, tuple[int, Alert]] = {}
        self._passed = (EARLIEST, EARLIEST)
        self._clock_us = EARLIEST
        self._due_us = EARLIEST
        """A time up to which readings, including those that may be emitted again, cause no alert if no other
        follows.
        """
        self._orders: dict[tuple[str, ...], KeyOrder] = {}
        """The rules that evaluate each key's readings in order, by the keys of their series."""
        self._cancellations: dict[Window, list[Row]] = {}
        """Readings in windows that are not final that cancel earlier readings."""
        self._causes: dict[str, list[Alert]] = {}
        """Alerts that fired with a reading, by its key, while it may still be cancelled."""
        self._unordered = self._evaluators
        self._keeps_late = lateness_us is not None
        if looks.at is not None and lateness_us is not None:
            self._put_in_order(lateness_us)

    def _put_in_order(self, lateness_us: int) -> None:
        series: dict[tuple[str, ...], list[Evaluator]] = {}
        self._unordered, of_any_series = [], list[Evaluator]()
        for rule, evaluator in zip(self._rules, self._evaluators):
            if not evaluator.by_key:
                self._unordered.append(evaluator)
            elif isinstance(rule, LimitRule) and rule.remembers_nothing:
                of_any_series.append(evaluator)
            else:
                series.setdefault(tuple(getattr(rule, "per", ())), []).append(evaluator)
        if of_any_series:
            # A series for each single key, such as a trade's number, would be far too many.
            series.setdefault(next(iter(series), ()), []).extend(of_any_series)
        for per, evaluators in series.items():
            self._orders[per] = KeyOrder(evaluators, lateness_us, self._signed, per)

    def evaluate(self, groups: WindowGroups, final: bool) -> list[Alert]:
        """Fold in closed windows; returns the alerts to report."""
        if self._view.windows.merging and not final:
            return []  # it may be emitted again, longer and with another end
        view = self._view
        windows = by_window(
            *groups.whole(("rows", view), lambda whole: RowColumns(whole, view.keys, view.answers, view.at))
        )
        if view.cancels is not None:
            windows = self._without_cancelled(windows, view.cancels)
        self._pending |= windows
        alerts = self._evaluate_until(max(windows)) if final and windows else []
        return alerts + self._provisional()

    def advance(self, final_us: int, due_us: int, clock_us: int = EARLIEST) -> list[Alert]:
        """Advance the times up to which windows are closed, for good and provisionally; returns new alerts.

        All of these windows must have been folded in. If nothing arrives, `clock_us` is the event time
        according to the clock: events that began with readings may end by then.
        """
        passed = self._view.last_end(final_us), self._view.last_end(due_us)
        self._clock_us = clock_us
        if not self._started or (passed == self._passed and clock_us <= self._due_us):
            return []
        alerts = []
        if passed != self._passed:
            self._passed = passed
            alerts = self._evaluate_until((passed[0], passed[0]), passed=True)
        return alerts + self._provisional()

    @property
    def _started(self) -> bool:
        return bool(self._pending or self._emitted) or any(one.started for one in self._evaluators)

    @property
    def late_readings(self) -> LateReadings:
        """Counts of late readings; each series of rules sees all of them."""
        known = self._orders.values()
        orders = sorted(known, key=lambda one: (one.late.total(), one.too_late.total()))
        if not orders:
            return LateReadings()
        most = orders[-1]
        too_late = max((one.too_late for one in orders), key=lambda one: one.total())
        return LateReadings(most.late - too_late, too_late, max(one.evicted for one in orders))

    @property
    def closed_until(self) -> tuple[int, int]:
        """The times up to which windows are known to be closed for good, and provisionally."""
        return self._passed

    def state(self) -> str:
        """The whole state as JSON, for `restore`."""
        kept = {
            "form": _FORM,
            "rules": {
                rule.name: [repr(rule), evaluator.state()]
                for rule, evaluator in zip(self._rules, self._evaluators)
            },
            "pending": [
                [*window, [_row_json(row) for row in rows]] for window, rows in self._pending.items()
            ],
            "emitted": [[end, alert.to_dict()] for end, alert in self._emitted.values()],
            "passed": self._passed,
            "orders": [[per, order.state()] for per, order in self._orders.items()],
        }
        if self._view.cancels is not None:
            kept["causes"] = [[key, [one.to_dict() for one in some]] for key, some in self._causes.items()]
            kept["cancellations"] = [
                [*window, [_row_json(row) for row in rows]] for window, rows in self._cancellations.items()
            ]
        return json.dumps(kept, separators=(",", ":"), ensure_ascii=False)

    def restore(self, state: str) -> None:
        """Restore a state. A rule that has changed starts over, with a warning.

        Raises `ValueError` for a state of another version.
        """
        kept = json.loads(state)
        if kept.get("form") not in (2, _FORM):
            raise ValueError(f"the form of a state of rules must be 2 or {_FORM}, got {kept.get('form')}")
        for rule, evaluator in zip(self._rules, self._evaluators):
            made, known = kept["rules"].get(rule.name, (None, None))
            if made == repr(rule):
                evaluator.restore(known)
            elif made is not None:
                log.warning("the rule %r has changed and starts over: it was %s", rule.name, made)
        self._pending = {(end, start): [Row(*row) for row in rows] for end, start, rows in kept["pending"]}
        alerts = [(end, Alert.from_dict(fields)) for end, fields in kept["emitted"]]
        self._emitted = {alert.id: (end, alert) for end, alert in alerts}
        self._causes = {key: [Alert.from_dict(one) for one in some] for key, some in kept.get("causes", ())}
        self._cancellations = {
            (end, start): [Row(*row) for row in rows] for end, start, rows in kept.get("cancellations", ())
        }
        final, due = kept["passed"]
        self._passed = final, due
        # States from before rules were ordered by series have one order, by whole keys.
        for per, order in kept.get("orders", [[(), kept["order"]]] if "order" in kept else ()):
            if tuple(per) in self._orders:
                self._orders[tuple(per)].restore(order)

    def _evaluate_until(self, until: Window, passed: bool = False) -> list[Alert]:
        """Fold the windows up to this one into the state of final windows."""
        final = {window: self._pending.pop(window) for window in sorted(self._pending) if window <= until}
        alerts = []
        for some in self._cut(final):
            alerts += self._evaluate_final(some)
        if passed:
            advanced = self._advance(self._unordered, until[0])
            for order in self._orders.values():
                advanced += order.advance(until[0], self._view.step_us)
            alerts += self._confirmed(advanced, until[0])
        return alerts

    def _evaluate_final(self, final: Mapping[Window, Sequence[Row]]) -> list[Alert]:
        """Evaluate final windows, and the cancellations in the last of them."""
        passing = self._view.windows.in_steps
        said = self._evaluate_windows(self._unordered, final, passing)
        if self._keeps_late:
            said = [[late_by(one, window) for one in some] for window, some in zip(final, said)]
        for order in self._orders.values() if final else ():
            for some, more in zip(said, order.evaluate(final, self._view.step_us, passing)):
                some += more
        alerts = []
        for window, some in zip(final, said):
            if self._view.cancels is not None:
                self._note_causes(some)
                for row in self._cancellations.pop(window, ()):
                    some += self._cancel(row, window)
            alerts += self._confirmed(some, window[0])
        return alerts

    def _cut(self, windows: dict[Window, Sequence[Row]]) -> Iterator[dict[Window, Sequence[Row]]]:
        """Windows in order, split after each one that cancels readings."""
        part: dict[Window, Sequence[Row]] = {}
        for window, rows in windows.items():
            part[window] = rows
            if window in self._cancellations:
                yield part
                part = {}
        if part:
            yield part

    def _without_cancelled(self, windows: Mapping[Window, LazyRows], cancels: str) -> dict[Window, LazyRows]:
        """Remove readings that cancel others, which are recorded, and the readings that they cancel."""
        result = dict(windows)
        for window, rows in windows.items():
            self._cancellations.pop(window, None)
            marked = np.isfinite(rows.columns.figures(cancels)[0][rows.at])
            if marked.any():
                keys = rows.columns.keys()[rows.at]
                left = ~np.isin(keys.astype(str), keys[marked].astype(str))
                result[window] = LazyRows(rows.columns, rows.at[left])
                self._cancellations[window] = rows.columns.in_order(rows.at[marked])
        return result

    def _note_causes(self, alerts: Iterable[Alert]) -> None:
        """Record which readings events fired with, and which alerts were withdrawn."""
        causes = self._causes
        for alert in alerts:
            key = _cause(alert)
            if alert.state == "fired":
                causes.setdefault(key, []).append(alert)
                oldest_us = alert.at_us - _CANCELLED_US
                while len(causes) > _CAUSES or next(iter(causes.values()))[0].at_us < oldest_us:
                    del causes[next(iter(causes))]
            elif alert.state == "withdrawn" and key in causes:
                withdrawn = alert.rule, alert.at_us
                causes[key] = [one for one in causes[key] if (one.rule, one.at_us) != withdrawn]
                if not causes[key]:
                    del causes[key]

    def _cancel(self, row: Row, window: Window) -> list[Alert]:
        """The alerts caused by cancelling earlier readings."""
        said: list[Alert] = []
        for order in self._orders.values():
            said += order.cancel(row.key, window, self._view.step_us)
        self._note_causes(said)
        for alert in self._causes.pop(key_text([*row.key.values()]), ()):
            self._take_back(alert)
            said.append(alert.withdrawal(_CANCELLED))
        return said

    def _take_back(self, alert: Alert) -> None:
        evaluator = next(one for rule, one in zip(self._rules, self._evaluators) if rule.name == alert.rule)
        for order in self._orders.values():
            if any(one is evaluator for one in order.live):
                order.take_back(evaluator, key_text(alert.key), alert)
                return
        evaluator.take_back(key_text(alert.key), alert.at_us)

    def _confirmed(self, said: Iterable[Alert], end_us: int) -> list[Alert]:
        """Alerts that are final and were not reported before, and withdrawals of those that don't hold."""
        fresh = [alert for alert in said if self._emitted.pop(alert.id, None) is None]
        wrong = [(key, alert) for key, (end, alert) in self._emitted.items() if end <= end_us]
        for key, _ in wrong:
            del self._emitted[key]
        why = "rows that came after a silence say otherwise"
        return fresh + [alert.withdrawal(why) for _, alert in wrong]

    def _provisional(self) -> list[Alert]:
        """Alerts of the current content of windows that may be emitted again, unless already reported."""
        self._due_us = min((one.due_us for one in self._evaluators), default=FOREVER)
        if not self._pending and self._passed[1] <= self._passed[0] and self._clock_us <= self._due_us:
            return []
        pending: Mapping[Window, Sequence[Row]]
        pending = {window: self._pending[window] for window in sorted(self._pending)}
        evaluators = [one.copy() for one in self._unordered]
        passing = self._view.windows.in_steps
        said = self._evaluate_windows(evaluators, pending, passing)
        for order in self._orders.values():
            copies = [one.copy() for one in order.live]
            evaluators += copies
            for some, more in zip(said, self._evaluate_windows(copies, order.in_order(pending), passing)):
                some += more
        fresh = []
        for (end, _), some in zip(pending, said):
            fresh += self._new_alerts(end, some)
        for window in pending:
            # Once the window is final, rules evaluate the series again; until then the cause's alerts are
            # withdrawn.
            cancelled = [key_text([*row.key.values()]) for row in self._cancellations.get(window, ())]
            said_of = (
                alert.withdrawal(_CANCELLED) for key in cancelled for alert in self._causes.get(key, ())
            )
            fresh += self._new_alerts(window[0], said_of)
        fresh += self._new_alerts(self._passed[1], self._advance(evaluators, self._passed[1]))
        for evaluator in evaluators:
            if evaluator.due_us < self._clock_us:
                for alert in evaluator.advance(self._clock_us, self._view.step_us):
                    # It is confirmed once time has passed beyond it for good.
                    fresh += self._new_alerts(alert.at_us + 1, [self._signed(alert)])
        self._due_us = min((one.due_us for one in evaluators), default=FOREVER)
        return fresh

    def _new_alerts(self, end_us: int, said: Iterable[Alert]) -> list[Alert]:
        fresh = [alert for alert in said if alert.id not in self._emitted]
        self._emitted |= {alert.id: (end_us, alert) for alert in fresh}
        return fresh

    def _evaluate_windows(
        self, evaluators: Sequence[Evaluator], windows: Mapping[Window, Sequence[Row]], passing: bool
    ) -> list[list[Alert]]:
        """The alerts of rules for each window and, with `passing`, for the time that passes with it."""
        said: list[list[Alert]] = [[] for _ in windows]
        if not windows:
            return said
        batch, step_us = WindowBatch(windows), self._view.step_us
        alerts: list[WindowAlert] = []
        for evaluator in evaluators:
            alerts += evaluator.evaluate(batch, step_us, passing)
        alerts.sort(key=attrgetter("window", "passed"))
        for number, some in groupby(alerts, attrgetter("window")):
            said[number] = [self._signed(one.alert) for one in some]
        return said

    def _advance(self, evaluators: Sequence[Evaluator], time_us: int) -> list[Alert]:
        said = (evaluator.advance(time_us, self._view.step_us) for evaluator in evaluators)
        return [self._signed(alert) for some in said for alert in some]

    def _signed(self, alert: Alert) -> Alert:
        names = self._key_names[alert.rule]
        # An alert about no single key, such as a digest, has no parts to name.
        return replace(alert, app=self._app, key_names=names if len(names) == len(alert.key) else ())


def _cause(alert: Alert) -> str:
    """The key of the reading that caused an alert: the alert's key, unless its details name another."""
    reading = alert.details.get("reading")
    return key_text([*reading.values()] if isinstance(reading, dict) else alert.key)


def _row_json(row: Row) -> list[Any]:
    return [row.key, row.start_us, row.at_us, row.answers]


def _check_readings(at: str, keys: Sequence[str], schema: pa.Schema, windows: TableWindows) -> None:
    if at not in keys:
        raise ValueError(
            f"at is {at!r}, which is not a key of the stream; group readings by their time as well, as in "
            f'.group_by("sensor", {at!r})'
        )
    if not pa.types.is_timestamp(schema.field(at).type):
        raise ValueError(f"at is {at!r}, which holds {schema.field(at).type} and not times")
    if not windows.side_by_side:
        raise ValueError(f"rules over readings (at=) need tumbling windows, and the stream has {windows}")


def _answer(rule: Rule, path: str, aggregates: dict[str, Any], types: pl.Schema) -> str:
    """The aggregate that a path begins with. Raises `ValueError` for an invalid path."""
    name = next((name for name in _beginnings(path) if name in aggregates), None)
    if name is None:
        raise ValueError(
            f"the rule {rule.name!r}: {path!r} is not an answer of the stream; there are "
            f"{_listed(aggregates)}"
        )
    part, kind = answer_at({name: None}, path)[1], types[name]
    if isinstance(kind, pl.Struct) and not ({"estimate", "value"} & {field.name for field in kind.fields}):
        parts = [field.name for field in kind.fields if field.name != "quantiles"]
        parts += [f"p{100 * q:g}" for q in USUAL_QUANTILES]
        if part not in parts:
            raise ValueError(
                f"the rule {rule.name!r}: {path!r} has several parts; name one of "
                f"{_listed(f'{name}.{one}' for one in parts)}"
            )
    elif part and not (isinstance(kind, pl.Null) and part in _OF_A_SAMPLE):
        raise ValueError(f"the rule {rule.name!r}: {name!r} has no part {part!r}; write {name!r}")
    return name


def _beginnings(path: str) -> Iterator[str]:
    yield path
    while "." in path:
        path = path.rpartition(".")[0]
        yield path


def _listed(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in names) or "none"
