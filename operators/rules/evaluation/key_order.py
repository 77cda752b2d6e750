"""Evaluating each key's readings in the order of their times: every key has its own clock and lateness.

Rules evaluate a key's readings as they arrive (`live`), and once more `lateness` behind the key's latest one
(`final`), when no earlier reading is accepted any more. If a reading arrives that lies between two others, or
before the time of a report, it is evaluated from the final state on, together with the key's later readings:
new alerts are reported late, and reported alerts that no longer follow are withdrawn.

All of this depends only on the order in which windows have readings: neither on how windows are grouped into
batches, nor on the readings of other keys.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from typing import Any, NamedTuple

import numpy as np

from ...windows.window import EARLIEST
from ..alert import Alert
from ..event_state import row_lag
from ..row import Row
from ..rule import key_text
from ..window_rows import Window, WindowBatch
from .evaluator import Evaluator, WindowAlert

log = logging.getLogger("streamgauge.rules")

_DAY_US = 86_400_000_000
_NAMED = 1_000
"""The number of keys with late readings that are counted by name."""


MOST_KEYS = 100_000
"""The number of keys per partition whose order is tracked: about 20 MB, without their held readings."""


class Held(NamedTuple):
    """A reading, with the window in which it arrived."""

    window: Window
    row: Row


class KeyOrder:
    """The state for evaluating each key's readings in the order of their times.

    `live` are the evaluators that have seen all readings, for rules with the same `per`; each can extract a
    key (`Evaluator.by_key`). If `lateness_us` is 0, nothing is held, and a reading that is not later than its
    key's latest one is dropped and counted.

    A key takes its latest time, its readings of the last `lateness_us` as objects (about 500 bytes each), a
    second copy of the rules' memory, and the alerts of these readings. It is forgotten here a day after its
    last reading, and earlier if it is the oldest of more than `MOST_KEYS`, which `evicted` counts: its state
    becomes final then, and its next reading is in order, whatever its time.
    """

    def __init__(
        self,
        live: Sequence[Evaluator],
        lateness_us: int,
        sign: Callable[[Alert], Alert],
        per: Sequence[str] = (),
    ) -> None:
        self.lateness_us = lateness_us
        self.late: Counter[str] = Counter()
        self.too_late: Counter[str] = Counter()
        self.evicted = 0
        self._per = tuple(per)
        self.live = live
        self._sign = sign
        self._final = {number: one.copy() for number, one in enumerate(live) if lateness_us}
        self._latest: dict[str, int] = {}
        self._final_at: dict[str, int] = {}
        self._held: dict[str, list[Held]] = {}
        self._reported: dict[str, list[Alert]] = {}
        self._passed = self._swept = EARLIEST

    def evaluate(
        self, windows: Mapping[Window, Sequence[Row]], step_us: int, passing: bool
    ) -> list[list[Alert]]:
        """The alerts of rules for each of these windows' readings, signed."""
        said: list[list[Alert]] = [[] for _ in windows]
        batch = WindowBatch(windows)
        texts, amiss, latest = self._keys(batch), False, dict[str, int]()
        get, of_windows = self._latest.get, dict[str, int]()
        for key, at_us, number in zip(texts, batch.ends.tolist(), batch.window.tolist()):
            before = latest[key] if key in latest else get(key, EARLIEST)
            # Readings with the same time are evaluated together if they arrive in one window.
            amiss |= at_us < before or (at_us == before and of_windows.get(key) != number)
            latest[key], of_windows[key] = max(before, at_us), number
        if not amiss and not batch.lags.any():
            self._as_they_come(windows, batch, texts, step_us, passing, said, 0)
            self._latest |= latest
            return said
        # One window's report can affect the order of the next window's readings, so they are evaluated in
        # turn.
        for number, (window, rows) in enumerate(windows.items()):
            self._one_window(window, rows, step_us, passing, said, number)
        return said

    def in_order(self, windows: Mapping[Window, Sequence[Row]]) -> dict[Window, Sequence[Row]]:
        """The readings of windows that may be emitted again, except for keys that need a correction."""
        amiss = set[str]()
        for rows in windows.values():
            for row in rows:
                key = self._key(row.key)
                behind = row.at_us <= self._latest.get(key, EARLIEST)
                if behind or (key in self._reported and self._is_reported(key, row.at_us)):
                    amiss.add(key)
        return {
            window: [row for row in rows if self._key(row.key) not in amiss]
            for window, rows in windows.items()
        }

    def advance(self, passed_us: int, step_us: int) -> list[Alert]:
        """The alerts caused by the passing of time, signed."""
        alerts = [self._sign(alert) for one in self.live for alert in one.advance(passed_us, step_us)]
        self._note(alerts)
        self._passed = max(self._passed, passed_us)
        if self._passed - self._swept >= max(self.lateness_us // 2, 1) or len(self._latest) > MOST_KEYS:
            self._swept = self._passed
            self._sweep()
        return alerts

    def cancel(self, key: Mapping[str, Any], window: Window, step_us: int) -> list[Alert]:
        """The alerts caused by cancelling the readings with this key, while they are held."""
        series = self._key(key)
        blank = [
            Held(one.window, replace(one.row, answers=dict.fromkeys(one.row.answers)))
            for one in self._held.get(series, ())
            if one.row.key == key
        ]
        if not blank:
            return []
        return self._corrections(series, blank, window, step_us, "a reading was cancelled")

    def take_back(self, evaluator: Evaluator, key: str, alert: Alert) -> None:
        """Record that an alert of one of the rules was withdrawn whose reading is no longer held."""
        number = next(number for number, one in enumerate(self.live) if one is evaluator)
        for one in (evaluator, self._final.get(number)):
            if one is not None:
                one.take_back(key, alert.at_us)
        for series, some in list(self._reported.items()):
            self._reported[series] = [one for one in some if one.id != alert.id]
            if not self._reported[series]:
                del self._reported[series]

    def state(self) -> dict[str, Any]:
        """The whole state as JSON."""
        return {
            "lateness": self.lateness_us,
            "latest": self._latest,
            "final_at": self._final_at,
            "final": [one.state() for one in self._final.values()],
            "held": {
                key: [[*one.window, one.row.key, one.row.at_us, one.row.answers] for one in held]
                for key, held in self._held.items()
            },
            "reported": {key: [one.to_dict() for one in some] for key, some in self._reported.items()},
            "late": self.late,
            "too_late": self.too_late,
            "evicted": self.evicted,
            "passed": [self._passed, self._swept],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore the result of `state`. If the lateness has changed, held readings become final first."""
        self._latest, self._final_at = dict(state["latest"]), dict(state["final_at"])
        self.late, self.too_late = Counter(state.get("late", {})), Counter(state["too_late"])
        self.evicted = state.get("evicted", 0)
        self._passed, self._swept = state["passed"]
        if state["lateness"] != self.lateness_us or len(state["final"]) != len(self._final):
            self._final = {number: self.live[number].copy() for number in self._final}
            self._final_at = dict(self._latest)
            return
        for one, kept in zip(self._final.values(), state["final"]):
            one.restore(kept)
        self._held = {
            key: [Held((end, start), Row(own, at, at, answers)) for end, start, own, at, answers in held]
            for key, held in state["held"].items()
        }
        self._reported = {
            key: [Alert.from_dict(one) for one in some] for key, some in state["reported"].items()
        }

    def _keys(self, batch: WindowBatch) -> list[str]:
        """Each row's key, by the columns in which rules are ordered."""
        keys: list[str] = batch.keys(self._per or None).tolist()
        return keys

    def _key(self, key: Mapping[str, Any]) -> str:
        return key_text([key[name] for name in self._per or key])

    def _is_reported(self, key: str, at_us: int) -> bool:
        """Whether an alert of a key was reported with a later time."""
        return any(alert.at_us >= at_us for alert in self._reported[key])

    def _as_they_come(
        self,
        windows: Mapping[Window, Sequence[Row]],
        batch: WindowBatch,
        texts: Sequence[str],
        step_us: int,
        passing: bool,
        said: list[list[Alert]],
        first: int,
    ) -> None:
        """Evaluate windows whose readings are all later than their keys' latest ones."""
        alerts: list[WindowAlert] = []
        for evaluator in self.live:
            alerts += evaluator.evaluate(batch, step_us, passing)
        alerts.sort(key=lambda one: (one.window, one.passed))
        edges = list(windows)
        for one in alerts:
            said[first + one.window].append(late_by(self._sign(one.alert), edges[one.window]))
        self._note(alert for some in said[first : first + len(edges)] for alert in some)
        if not self.lateness_us:
            return
        rows = batch.made(np.arange(len(batch)))
        for key, number, row in zip(texts, batch.window.tolist(), rows):
            self._held.setdefault(key, []).append(Held(edges[number], row))

    def _one_window(
        self,
        window: Window,
        rows: Sequence[Row],
        step_us: int,
        passing: bool,
        said: list[list[Alert]],
        number: int,
    ) -> None:
        """Evaluate one window in which some readings may be earlier than others of their keys."""
        batch = WindowBatch({window: rows})
        texts, times = self._keys(batch), batch.ends.tolist()
        amiss = {key for key, at_us in zip(texts, times) if at_us <= self._latest.get(key, EARLIEST)}
        if batch.lags.any():
            for key, lag in zip(texts, batch.lags.tolist()):
                if lag:
                    self.late[_counted_as(key, self.late)] += 1
            # All windows before this one are known, whether or not the engine has reported so yet.
            passed = [alert for one in self.live for alert in one.advance(window[1], step_us)]
            fresh = [self._sign(alert) for alert in passed]
            self._note(fresh)
            said[number] += fresh
            amiss |= {
                key
                for key, at_us in zip(texts, times)
                if key in self._reported and self._is_reported(key, at_us)
            }
        if amiss:
            made = batch.made(np.arange(len(batch)))
            own: dict[str, list[Held]] = {}
            others = []
            for key, row in zip(texts, made):
                if key in amiss:
                    own.setdefault(key, []).append(Held(window, row))
                else:
                    others.append(row)
            left = WindowBatch({window: others})
            self._as_they_come({window: others}, left, self._keys(left), step_us, passing, said, number)
            for key in sorted(own):
                said[number] += self._corrections(key, own[key], window, step_us)
        else:
            self._as_they_come({window: rows}, batch, texts, step_us, passing, said, number)
        for key, at_us in zip(texts, times):
            self._latest[key] = max(at_us, self._latest.get(key, EARLIEST))

    def _corrections(
        self,
        key: str,
        readings: list[Held],
        window: Window,
        step_us: int,
        why: str = "a reading that came late says otherwise",
    ) -> list[Alert]:
        """Evaluate a key's readings since its final state again, including these."""
        floor = self._final_floor(key)
        usable = [one for one in readings if one.row.at_us > floor]
        if len(usable) < len(readings):
            self._count_too_late(key, len(readings) - len(usable))
        if not usable:
            return []
        if not self.lateness_us:
            batch = _by_arrival(usable)
            alerts = [alert for one in self.live for alert in _replayed(one, batch, step_us)]
            fresh = [late_by(self._sign(alert), window) for alert in alerts]
            self._note(fresh)
            return fresh
        known = (*self._held.get(key, ()), *usable)
        by_time = {(one.row.at_us, key_text([*one.row.key.values()])): one for one in known}
        held = [by_time[own] for own in sorted(by_time)]
        before = {alert.id: alert for alert in self._reported.get(key, ())}
        signed: list[Alert] = []
        batch = _by_arrival(held)
        for number, source in self._final.items():
            own = source.extract(key)
            said = [*_replayed(own, batch, step_us), *own.advance(window[0], step_us)]
            some = [late_by(self._sign(alert), window) for alert in said]
            own, some = self._as_reported(source, own, key, held, before, some, step_us)
            self.live[number].insert(key, own)
            signed += some
        self._held[key] = held
        after = {alert.id: alert for alert in signed}
        self._reported[key] = [before.get(alert.id, alert) for alert in signed]
        if not self._reported[key]:
            del self._reported[key]
        withdrawn = [alert.withdrawal(why) for number, alert in before.items() if number not in after]
        return withdrawn + [alert for number, alert in after.items() if number not in before]

    def _as_reported(
        self,
        source: Evaluator,
        own: Evaluator,
        key: str,
        held: list[Held],
        before: Mapping[str, Alert],
        alerts: list[Alert],
        step_us: int,
    ) -> tuple[Evaluator, list[Alert]]:
        """Keep alerts that time caused before the key was known to lag, unless a reading contradicts them."""
        known, latest_us = {alert.id for alert in alerts}, held[-1].row.at_us
        brought = [one for number, one in before.items() if number not in known and one.at_us > latest_us]
        if not brought:
            return own, alerts
        in_time = [Held((one.row.at_us + 1, one.row.at_us), one.row) for one in held]
        other = source.extract(key)
        other.forget_lags()
        said = _replayed(other, _by_arrival(in_time), step_us)
        said += other.advance(max(one.at_us for one in (*brought, *alerts)) + 1, step_us)
        signed = [self._sign(alert) for alert in said]
        if not {one.id for one in signed} & {one.id for one in brought}:
            return own, alerts
        details = {alert.id: alert for alert in alerts}
        return other, [details.get(one.id, one) for one in signed]

    def _final_floor(self, key: str) -> int:
        """The time up to which a key's readings are final, so that earlier ones are no longer accepted."""
        latest = self._latest.get(key, EARLIEST)
        if not self.lateness_us:
            reported = [alert.at_us for alert in self._reported.get(key, ())]
            return max([latest, *reported])
        if latest == EARLIEST:
            return EARLIEST
        return max(latest - self.lateness_us, self._final_at.get(key, EARLIEST))

    def _count_too_late(self, key: str, readings: int) -> None:
        name = _counted_as(key, self.too_late)
        if not self.too_late[name]:
            log.warning(
                "a reading of %s came too late for its key's own order, so no rule has seen it; wait longer "
                "by lateness=, which is %g s",
                key,
                self.lateness_us / 1e6,
            )
        self.too_late[name] += readings

    def _note(self, alerts: Iterable[Alert]) -> None:
        for alert in alerts:
            key = key_text(alert.key)
            if self._per:
                key = self._key(dict(zip(alert.key_names, alert.key)))
            self._reported.setdefault(key, []).append(alert)

    def _sweep(self) -> None:
        """Finalise readings that are older than their keys' lateness, and forget keys after a day."""
        for key in [key for key, at_us in self._latest.items() if at_us < self._passed - _DAY_US]:
            self._forget(key)
        if len(self._latest) > MOST_KEYS:
            oldest = sorted(self._latest.items(), key=lambda one: (one[1], one[0]))
            self._evict([key for key, _ in oldest[: len(oldest) - MOST_KEYS * 9 // 10]])
        if not self.lateness_us:
            for key, some in list(self._reported.items()):
                self._reported[key] = some[-1:]
            return
        orderly: dict[Window, list[Row]] = {}
        final: dict[str, int] = {}
        alerts: list[Alert] = []
        for key, held in list(self._held.items()):
            until_us = self._latest[key] - self.lateness_us
            count = sum(one.row.at_us <= until_us for one in held)
            if not count:
                continue
            over, self._held[key] = held[:count], held[count:]
            final[key] = over[-1].row.at_us
            if all(one.window <= two.window for one, two in pairwise(over)):
                for one in over:
                    orderly.setdefault(one.window, []).append(one.row)
                continue
            batch = _by_arrival(over)
            for evaluator in self._final.values():
                own = evaluator.extract(key)
                alerts += _replayed(own, batch, 0)
                evaluator.insert(key, own)
        if orderly:
            batch = WindowBatch({window: orderly[window] for window in sorted(orderly)})
            for evaluator in self._final.values():
                alerts += _replayed(evaluator, batch, 0)
        self._final_at |= final
        known = {self._sign(alert).id for alert in alerts}
        for key in final:
            if some := [one for one in self._reported.get(key, ()) if one.id not in known]:
                self._reported[key] = some
            else:
                self._reported.pop(key, None)

    def _evict(self, keys: Sequence[str]) -> None:
        """Forget keys that may still get late readings."""
        if not self.evicted:
            log.warning(
                "more than %s keys had readings within a day: those with the oldest are evicted, and a late "
                "reading of one of them is taken as in order",
                f"{MOST_KEYS:,}",
            )
        self.evicted += len(keys)
        for key in keys:
            self._forget(key)

    def _forget(self, key: str) -> None:
        for number, evaluator in self._final.items():
            evaluator.insert(key, self.live[number].extract(key))
        del self._latest[key]
        for kept in (self._final_at, self._held, self._reported):
            kept.pop(key, None)


def _by_arrival(held: Sequence[Held]) -> WindowBatch:
    """A key's readings in the order of their times, each in the window in which it arrived."""
    runs = groupby(held, lambda one: one.window)
    return WindowBatch([(window, [one.row for one in some]) for window, some in runs])


def _replayed(evaluator: Evaluator, batch: WindowBatch, step_us: int) -> list[Alert]:
    """The alerts for these readings alone: time passes with none of their windows."""
    return [one.alert for one in evaluator.evaluate(batch, step_us, False)]


def _counted_as(key: str, counts: Counter[str]) -> str:
    """The key itself, or "" if enough other keys are counted by name."""
    return key if key in counts or len(counts) < _NAMED else ""


def late_by(alert: Alert, window: Window) -> Alert:
    """An alert about a time before its window began, with how late it was detected."""
    lag = row_lag(alert.at_us, window[1], window[0])
    if not lag or alert.state == "unknown":
        return alert
    return replace(alert, details={**alert.details, "detected_late": lag / 1e6})
