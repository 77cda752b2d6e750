"""Readings in the order of each key: every key has a clock and a lateness of its own.

Rules evaluate a key's readings as they come (`live`), and once more `lateness` behind the key's latest one
(`final`), when no earlier one is waited for. A reading that comes between two others, or before a time up
to which something was reported, is evaluated from the final state on, together with the key's readings
since: what follows from it is reported late, and what was reported and no longer follows is withdrawn.

All of it depends on the order in which windows have readings and on nothing else: not on how windows are cut
into batches, nor on the readings of other keys.
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
from ..rule import _text
from ..window_rows import Window, WindowBatch
from .evaluator import Evaluator, WindowAlert

log = logging.getLogger("streamgauge.rules")

_DAY_US = 86_400_000_000
_NAMED = 1_000
"""Keys with readings that came too late for them, of which each is counted by itself."""


MOST_KEYS = 100_000
"""Keys of one partition whose order is known: about 20 MB, without their held readings."""


class Held(NamedTuple):
    """A reading, with the window in which it came."""

    window: Window
    row: Row


class KeyOrder:
    """What is remembered of each key to evaluate its readings in the order of their times.

    `live` are the evaluators that have seen all readings, of rules that have the same `per`; each can take
    out a key (`Evaluator.by_key`). With `lateness_us` 0 nothing is held, and a reading that is not behind its
    key's latest one is left out and counted.

    A key's memory is its latest time, its readings of the last `lateness_us` as objects (about 500 bytes
    each), what rules remember of it a second time, and the alerts of these readings. It is forgotten here a
    day after its last reading, and earlier if it is the oldest of more than `MOST_KEYS`, which `evicted`
    counts: what it has is final then, and its next reading is in order, whatever its time.
    """

    def __init__(
        self,
        live: Sequence[Evaluator],
        lateness_us: int,
        sign: Callable[[Alert], Alert],
        per: Sequence[str] = (),
    ) -> None:
        self.lateness_us = lateness_us
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
        """What rules report of each of these windows' readings, signed."""
        said: list[list[Alert]] = [[] for _ in windows]
        batch = WindowBatch(windows)
        texts, amiss, latest = self._keys(batch), False, dict[str, int]()
        get, of_windows = self._latest.get, dict[str, int]()
        for key, at_us, number in zip(texts, batch.ends.tolist(), batch.window.tolist()):
            before = latest[key] if key in latest else get(key, EARLIEST)
            # Readings of one time come together if they come in one window.
            amiss |= at_us < before or (at_us == before and of_windows.get(key) != number)
            latest[key], of_windows[key] = max(before, at_us), number
        if not amiss and not batch.lags.any():
            self._as_they_come(windows, batch, texts, step_us, passing, said, 0)
            self._latest |= latest
            return said
        # A report of one window decides whether a reading of the next is amiss, so they are taken by turns.
        for number, (window, rows) in enumerate(windows.items()):
            self._one_window(window, rows, step_us, passing, said, number)
        return said

    def in_order(self, windows: Mapping[Window, Sequence[Row]]) -> dict[Window, Sequence[Row]]:
        """The readings of windows that may be emitted again, of keys none of which needs a correction."""
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
        """What rules report as time passes, signed."""
        alerts = [self._sign(alert) for one in self.live for alert in one.advance(passed_us, step_us)]
        self._note(alerts)
        self._passed = max(self._passed, passed_us)
        if self._passed - self._swept >= max(self.lateness_us // 2, 1) or len(self._latest) > MOST_KEYS:
            self._swept = self._passed
            self._sweep()
        return alerts

    def state(self) -> dict[str, Any]:
        """All of it as JSON."""
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
            "too_late": self.too_late,
            "evicted": self.evicted,
            "passed": [self._passed, self._swept],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up what `state` gave. With another lateness, what is held settles first."""
        self._latest, self._final_at = dict(state["latest"]), dict(state["final_at"])
        self.too_late, self.evicted = Counter(state["too_late"]), state.get("evicted", 0)
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
        """Each row's key, of those by which rules are in order."""
        keys: list[str] = batch.keys(self._per or None).tolist()
        return keys

    def _key(self, key: Mapping[str, Any]) -> str:
        return _text([key[name] for name in self._per or key])

    def _is_reported(self, key: str, at_us: int) -> bool:
        """Whether something of a key was reported of a time behind this one."""
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
        """Evaluate windows whose readings are all behind their keys' latest ones."""
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
        """Evaluate one window, of which some readings may come before others of their keys."""
        batch = WindowBatch({window: rows})
        texts, times = self._keys(batch), batch.ends.tolist()
        amiss = {key for key, at_us in zip(texts, times) if at_us <= self._latest.get(key, EARLIEST)}
        if batch.lags.any():
            # All windows before this one are known, whether or not the engine has said so yet.
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

    def _corrections(self, key: str, readings: list[Held], window: Window, step_us: int) -> list[Alert]:
        """Evaluate a key's readings since its final state once more, now with these."""
        floor = self._final_floor(key)
        usable = [one for one in readings if one.row.at_us > floor]
        if len(usable) < len(readings):
            self._count_too_late(key, len(readings) - len(usable))
        if not usable:
            return []
        if not self.lateness_us:
            alerts = [alert for one in self.live for alert in self._replayed(one, usable, step_us)]
            fresh = [late_by(self._sign(alert), window) for alert in alerts]
            self._note(fresh)
            return fresh
        known = (*self._held.get(key, ()), *usable)
        by_time = {(one.row.at_us, _text([*one.row.key.values()])): one for one in known}
        held = [by_time[own] for own in sorted(by_time)]
        before = {alert.id: alert for alert in self._reported.get(key, ())}
        signed: list[Alert] = []
        for number, source in self._final.items():
            own = source.extract(key)
            said = [*self._replayed(own, held, step_us), *own.advance(window[0], step_us)]
            some = [late_by(self._sign(alert), window) for alert in said]
            own, some = self._as_reported(source, own, key, held, before, some, step_us)
            self.live[number].insert(key, own)
            signed += some
        self._held[key] = held
        after = {alert.id: alert for alert in signed}
        self._reported[key] = [before.get(alert.id, alert) for alert in signed]
        if not self._reported[key]:
            del self._reported[key]
        why = "a reading that came late says otherwise"
        withdrawn = [
            replace(alert, state="withdrawn", why=why, details={**alert.details, "withdrawn": alert.state})
            for number, alert in before.items()
            if number not in after
        ]
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
        """Keep what time brought before the key was known to lag, unless a reading contradicts it."""
        known, latest_us = {alert.id for alert in alerts}, held[-1].row.at_us
        brought = [one for number, one in before.items() if number not in known and one.at_us > latest_us]
        if not brought:
            return own, alerts
        in_time = [Held((one.row.at_us + 1, one.row.at_us), one.row) for one in held]
        other = source.extract(key)
        other.forget_lags()
        said = self._replayed(other, in_time, step_us)
        said += other.advance(max(one.at_us for one in (*brought, *alerts)) + 1, step_us)
        signed = [self._sign(alert) for alert in said]
        if not {one.id for one in signed} & {one.id for one in brought}:
            return own, alerts
        details = {alert.id: alert for alert in alerts}
        return other, [details.get(one.id, one) for one in signed]

    def _final_floor(self, key: str) -> int:
        """Up to when a key's readings are final, so that none of these times is accepted any more."""
        latest = self._latest.get(key, EARLIEST)
        if not self.lateness_us:
            reported = [alert.at_us for alert in self._reported.get(key, ())]
            return max([latest, *reported])
        if latest == EARLIEST:
            return EARLIEST
        return max(latest - self.lateness_us, self._final_at.get(key, EARLIEST))

    def _count_too_late(self, key: str, readings: int) -> None:
        name = key if key in self.too_late or len(self.too_late) < _NAMED else ""
        if not self.too_late[name]:
            log.warning(
                "a reading of %s came too late for its key's own order, so no rule has seen it; wait longer "
                "by lateness=, which is %g s",
                key,
                self.lateness_us / 1e6,
            )
        self.too_late[name] += readings

    def _replayed(self, evaluator: Evaluator, held: Sequence[Held], step_us: int) -> list[Alert]:
        alerts = []
        for window, some in groupby(held, lambda one: one.window):
            batch = WindowBatch({window: [one.row for one in some]})
            alerts += [one.alert for one in evaluator.evaluate(batch, step_us, False)]
        return alerts

    def _note(self, alerts: Iterable[Alert]) -> None:
        for alert in alerts:
            key = _text(alert.key)
            if self._per:
                key = self._key(dict(zip(alert.key_names, alert.key)))
            self._reported.setdefault(key, []).append(alert)

    def _sweep(self) -> None:
        """Settle readings that are older than their keys' lateness, and forget keys of yesterday."""
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
            for evaluator in self._final.values():
                own = evaluator.extract(key)
                alerts += self._replayed(own, over, 0)
                evaluator.insert(key, own)
        if orderly:
            batch = WindowBatch({window: orderly[window] for window in sorted(orderly)})
            for evaluator in self._final.values():
                alerts += [one.alert for one in evaluator.evaluate(batch, 0, False)]
        self._final_at |= final
        known = {self._sign(alert).id for alert in alerts}
        for key in final:
            if some := [one for one in self._reported.get(key, ()) if one.id not in known]:
                self._reported[key] = some
            else:
                self._reported.pop(key, None)

    def _evict(self, keys: Sequence[str]) -> None:
        """Forget keys that may still have late readings."""
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


def late_by(alert: Alert, window: Window) -> Alert:
    """An alert about a time that had passed before its window began says how late it was detected."""
    lag = row_lag(alert.at_us, window[1], window[0])
    if not lag or alert.state == "unknown":
        return alert
    return replace(alert, details={**alert.details, "detected_late": lag / 1e6})
