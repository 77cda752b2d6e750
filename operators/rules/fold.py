"""Rules as a fold over the closed windows of one partition of a table, in their order.

What is folded depends on windows alone, so that the same windows tell the same alerts, on either engine, and
the state between any two of them can be written down. A window that only silence has closed may come again,
whole (`operators.sketching.closing`): until it is final it stays beside the settled state, and what it tells
is told at once. When it is final, what was told already is not told again, and what turns out not to be so is
withdrawn.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import polars as pl
import pyarrow as pa

from ...sketches.core.answers import USUAL_QUANTILES
from ..definition.windows import EARLIEST
from ..table.jsonable import jsonable
from ..table.query import query
from ..table.schema import END, START, aggregates_of, keys_of
from ..table.windows import TableWindows, windows_told
from .alert import Alert
from .row import Row
from .rule import Rule, RuleState, looked_up

log = logging.getLogger("streamgauge.rules")

_OF_A_SAMPLE = ("n", "values", "error")
"""What the answer of a sample has; of which type its values are is known with the first of them only."""

_Window = tuple[int, int]
"""A window's end and its start, in microseconds: in the order in which windows are folded."""


class Looks(NamedTuple):
    """How rules look at a table: its keys that tell rows apart, its answers that are asked for, its windows.

    `at` is the key that holds a reading's own time, if rows are readings and not windows.
    """

    keys: tuple[str, ...]
    answers: tuple[str, ...]
    windows: TableWindows
    at: str | None

    @property
    def step_us(self) -> int:
        """From a window's end to the next one's; 0 of readings and of windows that have no such."""
        return self.windows.slide_us if self.at is None and self.in_steps else 0

    @property
    def in_steps(self) -> bool:
        """Whether windows begin at set times: then one that closes says that those before it have closed."""
        return self.windows.kind in ("tumbling", "sliding")

    def passed(self, time_us: int) -> int:
        """The end of the last window that ends at or before a time."""
        slide = self.windows.slide_us
        end = self.windows.offset_us + self.windows.length_us
        return time_us - (time_us - end) % slide if self.in_steps and time_us > EARLIEST else time_us


def looks(rules: Sequence[Rule], schema: pa.Schema, at: str | None) -> Looks:
    """How rules look at tables of this schema.

    Raises `ValueError` for two rules of one name, for answers and keys that the table doesn't have, for a
    rule that its windows don't suit, and for a time column that is no key with times.
    """
    names = [rule.name for rule in rules]
    if double := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"two rules are named {min(double)!r}; the name tells their alerts apart")
    keys = keys_of(schema)
    windows = windows_told(schema)
    if windows is None:
        raise ValueError("rules need a table of a stream's windows, and this one names none")
    if at is not None:
        _check_readings(at, keys, schema, windows)
    empty = query(schema.empty_table())
    aggregates = aggregates_of(schema)
    asked: dict[str, None] = {}
    for rule in rules:
        for path in rule.paths():
            asked[_answer(rule, path, aggregates, empty.schema)] = None
        if unknown := [name for name in rule.names() if name not in keys]:
            field = "where" if unknown[0] in rule.where else "per"
            raise ValueError(
                f"the rule {rule.name!r}: {field} names {unknown[0]!r}, which is not a key of the stream; "
                f"its keys are {_listed(keys)}"
            )
        if rule.needs_steps and (at is not None or windows.kind not in ("tumbling", "sliding")):
            told = "rows are readings" if at is not None else f"the stream has {windows}"
            raise ValueError(
                f"the rule {rule.name!r}: absent is what a value is in a window without rows, and here {told}"
            )
    return Looks(tuple(key for key in keys if key != at), tuple(asked), windows, at)


class Fold:
    """The rules over one partition of a table of sketches; `state` is all that it knows.

    >>> from streamgauge import Stream, StreamTester, count
    >>> from streamgauge.operators.rules.threshold import Threshold
    >>> rows = Stream.from_batches({"at": pl.Int64}, time=pl.from_epoch("at"))
    >>> posts = rows.tumbling("1m").agg(posts=count())
    >>> tester, rules = StreamTester(posts), [Threshold("busy", value="posts", at_least=2)]
    >>> _ = tester.feed([{"at": 1_767_225_600 + second} for second in (0, 1, 70, 80, 200)])
    >>> table = tester.tables()
    >>> fold = Fold(rules, looks(rules, table.schema, None))
    >>> [str(alert) for alert in fold.take(table, final=True)][0]
    '2026-01-01T00:01:00+00:00 busy fired: posts is 2: at least 2'
    """

    def __init__(self, rules: Sequence[Rule], looks: Looks, app: str = "") -> None:
        self._rules = tuple(rules)
        self._looks = looks
        self._app = app
        self._states = {rule.name: rule.begin() for rule in self._rules}
        self._pending: dict[_Window, list[Row]] = {}
        self._told: dict[str, tuple[int, Alert]] = {}
        self._passed = (EARLIEST, EARLIEST)

    def take(self, table: pa.Table, final: bool) -> list[Alert]:
        """Fold in the windows of a table; gives what is to be told."""
        if self._looks.windows.kind == "session" and not final:
            return []  # it may come again, longer and under another end
        taken = windows_of(table, self._looks)
        self._pending |= taken
        told = self._settle(max(taken)) if final and taken else []
        return told + self._provisional()

    def passed(self, final_us: int, due_us: int) -> list[Alert]:
        """Learn up to when windows are closed for good, and up to when for now; gives what is to be told.

        All of these windows must have been taken.
        """
        passed = self._looks.passed(final_us), self._looks.passed(due_us)
        if passed == self._passed or not self._begun:
            return []
        self._passed = passed
        told = self._settle((passed[0], passed[0]), passed=True)
        return told + self._provisional()

    @property
    def _begun(self) -> bool:
        return bool(self._pending) or any(state["keys"] or len(state) > 1 for state in self._states.values())

    @property
    def reached(self) -> tuple[int, int]:
        """Up to when windows are known to be closed for good, and for now."""
        return self._passed

    def state(self) -> str:
        """All it knows, as JSON, for `resume`."""
        kept = {
            "rules": {rule.name: [repr(rule), self._states[rule.name]] for rule in self._rules},
            "pending": [[*window, [_written(row) for row in rows]] for window, rows in self._pending.items()],
            "told": [[end, alert.to_dict()] for end, alert in self._told.values()],
            "passed": self._passed,
        }
        return json.dumps(kept, separators=(",", ":"), ensure_ascii=False)

    def resume(self, state: str) -> None:
        """Take up a state. A rule that has changed begins anew, and a warning says so."""
        kept = json.loads(state)
        for rule in self._rules:
            made, known = kept["rules"].get(rule.name, (None, None))
            if made == repr(rule):
                self._states[rule.name] = known
            elif made is not None:
                log.warning("the rule %r has changed and begins anew: it was %s", rule.name, made)
        self._pending = {(end, start): [Row(*row) for row in rows] for end, start, rows in kept["pending"]}
        alerts = [(end, Alert.from_dict(told)) for end, told in kept["told"]]
        self._told = {alert.id: (end, alert) for end, alert in alerts}
        final, due = kept["passed"]
        self._passed = final, due

    def _settle(self, until: _Window, passed: bool = False) -> list[Alert]:
        """Fold the windows up to this one into the settled state."""
        final = sorted(window for window in self._pending if window <= until)
        said = [alert for window in final for alert in self._folded(self._states, window)]
        for window in final:
            del self._pending[window]
        if passed or self._looks.in_steps:
            said += self._ticked(self._states, until[0])
        fresh = [alert for alert in said if self._told.pop(alert.id, None) is None]
        wrong = [(key, alert) for key, (end, alert) in self._told.items() if end <= until[0]]
        for key, _ in wrong:
            del self._told[key]
        why = "rows that came after a silence say otherwise"
        return fresh + [replace(alert, state="withdrawn", why=why) for _, alert in wrong]

    def _provisional(self) -> list[Alert]:
        """What windows that may come again tell, as they are now, beyond what was told."""
        if not self._pending and self._passed[1] <= self._passed[0]:
            return []
        states = json.loads(json.dumps(self._states))
        fresh = []
        for window in sorted(self._pending):
            fresh += self._noted(window[0], self._folded(states, window))
        return fresh + self._noted(self._passed[1], self._ticked(states, self._passed[1]))

    def _noted(self, end_us: int, said: Iterable[Alert]) -> list[Alert]:
        fresh = [alert for alert in said if alert.id not in self._told]
        self._told |= {alert.id: (end_us, alert) for alert in fresh}
        return fresh

    def _folded(self, states: dict[str, RuleState], window: _Window) -> Iterator[Alert]:
        end, start = window
        for rule in self._rules:
            said = rule.window(states[rule.name], self._pending[window], start, end, self._looks.step_us)
            yield from map(self._signed, said)

    def _ticked(self, states: dict[str, RuleState], time_us: int) -> Iterator[Alert]:
        for rule in self._rules:
            yield from map(self._signed, rule.passed(states[rule.name], time_us, self._looks.step_us))

    def _signed(self, alert: Alert) -> Alert:
        return replace(alert, app=self._app)


def windows_of(table: pa.Table, looks: Looks) -> dict[_Window, list[Row]]:
    """The rows of each window, in the order of their times and keys."""
    found: dict[_Window, list[Row]] = {}
    names = [START, END, *([looks.at] if looks.at else []), *looks.keys, *looks.answers]
    table = table.select([name for name in table.schema.names if name in names])
    frame = (query(table) if looks.answers else pl.DataFrame(pl.from_arrow(table))).select(names)
    times = [name for name in (START, END, looks.at) if name]
    frame = frame.with_columns(pl.col(name).dt.epoch("us") for name in times)
    for start, end, *rest in frame.iter_rows():
        at = rest.pop(0) if looks.at else None
        if looks.at and at is None:
            continue  # a reading without a time is no reading
        key = dict(zip(looks.keys, map(jsonable, rest)))
        answers = dict(zip(looks.answers, map(jsonable, rest[len(looks.keys) :])))
        row = Row(key, start if at is None else at, end if at is None else at, answers)
        found.setdefault((end, start), []).append(row)
    for rows in found.values():
        rows.sort(key=lambda row: (row.at_us, json.dumps(list(row.key.values()))))
    return found


def _written(row: Row) -> list[Any]:
    return [row.key, row.start_us, row.at_us, row.answers]


def _check_readings(at: str, keys: Sequence[str], schema: pa.Schema, windows: TableWindows) -> None:
    if at not in keys:
        raise ValueError(
            f"at is {at!r}, which is not a key of the stream; group readings by their time as well, as in "
            f'.group_by("sensor", {at!r})'
        )
    if not pa.types.is_timestamp(schema.field(at).type):
        raise ValueError(f"at is {at!r}, which holds {schema.field(at).type} and not times")
    if windows.kind != "tumbling":
        raise ValueError(f"readings are waited for in tumbling windows, and the stream has {windows}")


def _answer(rule: Rule, path: str, aggregates: dict[str, Any], types: pl.Schema) -> str:
    """The aggregate that a path begins with. Raises `ValueError` for a path that leads nowhere."""
    name = next((name for name in _beginnings(path) if name in aggregates), None)
    if name is None:
        raise ValueError(
            f"the rule {rule.name!r}: {path!r} is not an answer of the stream; there are "
            f"{_listed(aggregates)}"
        )
    part, kind = looked_up({name: None}, path)[1], types[name]
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
