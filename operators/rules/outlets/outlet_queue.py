"""An outlet's queue: alerts are matched, silenced, grouped, queued, and sent by one thread.

The run's thread only adds to bounded collections (`offer`); everything that may block runs in the outlet's
own thread. Every alert that is added ends in exactly one count of the account.
"""

from __future__ import annotations

import atexit
import json
import logging
import random
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Protocol
from weakref import WeakSet

from ...formats.jsonable import jsonable
from ...watching.outlet_counts import watch_outlet
from ..alert import Alert
from .account import OutletAccount
from .errors import OutletError
from .grouping import AlertGroups, Notification
from .matchers import Matcher, labels_of, match_all
from .silences import AlertSilence

log = logging.getLogger("streamgauge.rules")

QUEUED = 200
"""The number of notifications that wait for an outlet; beyond that, the oldest is given up."""
HELD = 1_000
"""The number of silenced events that are remembered, to be sent if they outlast the silence."""
KNOWN = 20_000
"""The number of alert ids remembered as passed on in this process: more than can ever wait."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 60.0
_SILENCE_SECONDS = 5.0
"""The delay until the end of a silence is noticed."""
_AT_EXIT_SECONDS = 5.0

_queues: WeakSet[OutletQueue] = WeakSet()
_queues_lock = threading.Lock()
"""Guards `_queues`, which threads add to while others iterate over it."""


class Recipient(Protocol):
    """The outlet of a queue; see `NotifyingOutlet`."""

    @property
    def kind(self) -> str: ...  # noqa: D102
    @property
    def title(self) -> str: ...  # noqa: D102
    @property
    def group_by(self) -> Sequence[str] | None: ...  # noqa: D102
    @property
    def matchers(self) -> Sequence[Matcher]: ...  # noqa: D102
    @property
    def silences_ends(self) -> bool: ...  # noqa: D102
    @property
    def resend_seconds(self) -> float | None: ...  # noqa: D102
    def current_silences(self) -> Sequence[AlertSilence]: ...  # noqa: D102
    def send(self, notification: Notification) -> None: ...  # noqa: D102
    def resend(self) -> None: ...  # noqa: D102
    def disconnect(self) -> None: ...  # noqa: D102


@dataclass(eq=False)
class _Queued:
    notification: Notification
    since: float


class OutletQueue:
    """The alerts that wait for one outlet, and the thread that sends them, which starts with the first."""

    def __init__(self, outlet: Recipient, seconds: Mapping[str, float]) -> None:
        self._outlet = outlet
        self._patience = seconds["patience"]
        self._groups = AlertGroups(outlet.group_by, seconds["group_wait"], seconds["group_interval"])
        self._queue: deque[_Queued] = deque()
        self._held: OrderedDict[str, Alert] = OrderedDict()
        self._known: OrderedDict[str, None] = OrderedDict()
        self._account = OutletAccount()
        self._sending: _Queued | None = None
        self._attempts = 0
        self._retry_at = 0.0
        self._resend_at = 0.0
        self._ends_at: float | None = None
        self._reported_silences: set[str] = set()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        with _queues_lock:
            _queues.add(self)
        watch_outlet(self)

    @property
    def title(self) -> str:
        """Its outlet's name."""
        return self._outlet.title

    @property
    def account(self) -> OutletAccount:
        """The outcomes of the alerts so far."""
        with self._changed:
            return replace(self._account)

    def counts(self) -> Mapping[str, int]:
        """The account as a dictionary."""
        return self.account.to_dict()

    def offer(self, alert: Alert) -> None:
        """Add an alert; returns immediately."""
        labels = labels_of(alert)
        with self._changed:
            self._account.given += 1
            self._known[alert.id] = None
            if len(self._known) > KNOWN:
                self._known.popitem(last=False)
            if not match_all(self._outlet.matchers, labels):
                self._account.unmatched += 1
                return
            if self._hold_back(alert, labels):
                if self._held:
                    self._start()  # the thread sends them if they outlast the silence
                return
            self._groups.add(alert, time.monotonic())
            if self._groups.is_full:
                self._collect(time.monotonic())  # the thread may hang
            self._start()
            self._changed.notify_all()

    def knows(self, alert: Alert) -> bool:
        """Whether the alert was passed on recently, whatever its outcome."""
        with self._changed:
            return alert.id in self._known

    def pending(self) -> list[Alert]:
        """The waiting alerts, in order of arrival; without those that are only counted."""
        with self._changed:
            queued = [alert for one in self._queue for alert in one.notification.alerts]
            return [*queued, *self._groups.alerts, *self._held.values()]

    def flush(self, seconds: float) -> None:
        """Send what waits, for at most `seconds`, and end the thread until another alert arrives."""
        with self._changed:
            thread = self._thread
            self._ends_at = time.monotonic() + seconds
            self._retry_at = 0.0
            self._changed.notify_all()
        if thread is not None:
            thread.join(seconds + 1.0)
        with self._changed:
            self._thread = None
            self._ends_at = None
            if self._queue or self._held:
                self._start()

    def close(self, seconds: float) -> None:
        """Send what waits, for at most `seconds`, and count the rest as failed or as silenced."""
        self.flush(seconds)
        with self._changed:
            self._thread = None
            self._changed.notify_all()
            self._give_up_rest()
            held, self._held = len(self._held), OrderedDict()
            self._account.silenced += held
        self._outlet.disconnect()

    def _hold_back(self, alert: Alert, labels: Mapping[str, str]) -> bool:
        """Whether a silence suppresses an alert, or suppressed the event that it ends."""
        event = json.dumps(jsonable([alert.app, alert.rule, list(alert.key)]))
        held = self._held.get(event) if alert.state == "unknown" else self._held.pop(event, None)
        if held is not None:
            self._account.silenced += alert.state != "unknown"
            if alert.state != "fired":
                self._account.silenced += 1
                return True
        silence = self._silence_of(labels)
        if silence is None or (alert.state != "fired" and not self._outlet.silences_ends):
            return False
        if str(silence) not in self._reported_silences:
            self._reported_silences.add(str(silence))
            log.warning("%s: %s suppresses alerts; they are counted", self._outlet.title, silence)
        if alert.state != "fired":
            self._account.silenced += 1
            return True
        self._held[event] = alert
        if len(self._held) > HELD:
            self._held.popitem(last=False)
            self._account.silenced += 1
        return True

    def _silence_of(self, labels: Mapping[str, str]) -> AlertSilence | None:
        silences = self._outlet.current_silences()
        if not silences:
            return None
        now = datetime.now(UTC)
        return next((one for one in silences if one.holds(labels, now)), None)

    def _start(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(
                target=self._run, name=f"streamgauge-{self._outlet.kind}", daemon=True
            )
            self._thread.start()

    def _run(self) -> None:
        if self._outlet.resend_seconds is not None:
            self._resend_at = time.monotonic() + self._outlet.resend_seconds
        while True:
            with self._changed:
                next_one = self._next()
            if next_one is None:
                return
            if isinstance(next_one, _Queued):
                self._attempt(next_one)
            else:
                self._resend()

    def _next(self) -> _Queued | bool | None:
        """The next notification, once one is due; True to resend active alerts, None at the end."""
        while True:
            if self._thread is not threading.current_thread():
                return None  # it was closed while sending, and another thread may have started
            now = time.monotonic()
            self._release_held(now)
            self._collect(now)
            if self._ends_at is not None and (not self._queue or now >= self._ends_at):
                return None
            if self._queue and now >= self._retry_at:
                self._sending = self._queue[0]
                return self._sending
            resends = self._outlet.resend_seconds is not None and self._ends_at is None
            if resends and now >= max(self._resend_at, self._retry_at):
                return True
            self._changed.wait(self._pause(now))

    def _collect(self, now: float) -> None:
        """Queue the notifications that are due, and drop the oldest if there are too many."""
        for notification in self._groups.due(now, all_groups=self._ends_at is not None):
            self._queue.append(_Queued(notification, now))
        while len(self._queue) > QUEUED:
            oldest = self._queue[1] if self._queue[0] is self._sending else self._queue[0]
            self._give_up(oldest, f"more than {QUEUED:,} messages wait for it")

    def _pause(self, now: float) -> float | None:
        """The seconds until there is something to do, unless an alert arrives."""
        moments = [moment for moment in (self._groups.next_due, self._ends_at) if moment is not None]
        if self._queue:
            moments.append(self._retry_at)
        if self._held:
            moments.append(now + _SILENCE_SECONDS)
        if self._outlet.resend_seconds is not None:
            moments.append(max(self._resend_at, self._retry_at))
        return max(0.01, min(moments) - now) if moments else None

    def _release_held(self, now: float) -> None:
        """Send events that have outlasted the silence that suppressed them."""
        for event, alert in list(self._held.items()):
            if self._silence_of(labels_of(alert)) is None:
                del self._held[event]
                self._groups.add(alert, now)

    def _attempt(self, one: _Queued) -> None:
        try:
            self._outlet.send(one.notification)
        except Exception as error:  # no error may affect the run or later messages
            self._failed(one, error)
            return
        with self._changed:
            self._attempts, self._retry_at, self._sending = 0, 0.0, None
            if self._queue and self._queue[0] is one:
                self._queue.popleft()
                self._account.sent += one.notification.size

    def _failed(self, one: _Queued, error: Exception) -> None:
        may_pass = isinstance(error, OutletError) and error.may_pass
        with self._changed:
            now, self._sending = time.monotonic(), None
            if may_pass:
                self._attempts += 1
                pause = min(_FIRST_PAUSE * 2 ** min(self._attempts - 1, 10), _LONGEST_PAUSE)
                pause = max(pause * random.uniform(0.75, 1.0), getattr(error, "after", 0.0))
                self._retry_at = now + pause
                if self._attempts == 1:
                    log.warning("%s is unreachable: %s; retrying", self._outlet.title, error)
            if not self._queue or self._queue[0] is not one:
                return  # it was given up meanwhile
            if not may_pass or now - one.since >= self._patience:
                self._give_up(one, str(error) if isinstance(error, OutletError) else repr(error))

    def _resend(self) -> None:
        assert self._outlet.resend_seconds is not None
        try:
            self._outlet.resend()
        except Exception as error:
            log.warning("%s did not accept the active alerts: %s; retrying", self._outlet.title, error)
        self._resend_at = time.monotonic() + self._outlet.resend_seconds

    def _give_up(self, one: _Queued, why: str) -> None:
        self._queue.remove(one)
        self._account.failed += one.notification.size
        ids = ", ".join(alert.id for alert in one.notification.alerts[:5])
        size = one.notification.size
        shown = ids if size <= 5 else f"{ids} and {size - 5:,} more"
        log.warning(
            "%s did not accept %d alert%s (%s): %s", self._outlet.title, size, "s"[: size != 1], shown, why
        )

    def _give_up_rest(self) -> None:
        for notification in self._groups.due(time.monotonic(), all_groups=True):
            self._queue.append(_Queued(notification, 0.0))
        while self._queue:
            self._give_up(self._queue[0], "the run has ended")


def _all_queues() -> list[OutletQueue]:
    with _queues_lock:
        return list(_queues)


@atexit.register
def _close_all() -> None:
    """Send what waits before the program ends, for programs that don't close their outlets."""
    for queue in _all_queues():
        if queue.pending():
            queue.close(_AT_EXIT_SECONDS)
