"""What all outlets to people have in common: which alerts, how they are grouped, and how they are sent."""

from __future__ import annotations

import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import ClassVar
from zoneinfo import available_timezones

from ...windows.durations import Duration, microseconds
from ..alert import Alert
from .account import OutletAccount
from .grouping import Notification
from .matchers import LABELS, Matcher, parse_matchers
from .outlet_queue import OutletQueue
from .page_links import page_link
from .silences import AlertSilence
from .templates import AlertTemplate
from .text import cut, lines

log = logging.getLogger("streamgauge.rules")

_LONGEST_TEXT = 2_000
"""Characters about an alert by a template."""

Silences = Sequence[AlertSilence] | Callable[[], Sequence[AlertSilence]]


@dataclass(frozen=True, kw_only=True)
class NotifyingOutlet(ABC):
    """An outlet with a thread of its own: a run hands alerts over and goes on, whether they arrive or not.

    name
        What it is called in logs and accounts; its kind and its host unless named.
    match
        Matchers of the alerts that it is for (`AlertSilence` says how they are written); all unless
        given.
    silences
        Which alerts are held back, or a function that gives them each time.
    group_by, group_wait, group_interval
        Alerts that have these labels in common are one message, with those that come within `group_wait`;
        later ones come together, `group_interval` after it. ``group_by=None`` collects nothing.
    patience
        For how long a message is sent again, at growing distances, while the outlet is unreachable or answers
        429 or 5xx. Then it is given up, counted and logged. What an outlet refuses is not sent again.
    page
        The address under which people reach the run's page, such as ``https://gauge.example.org``: each alert
        then has a link to its picture there, with its app, keys, span and event.
    zone
        The time zone of times in messages to people, and of the page that a link opens.
    template
        The line about an alert, as a template of Jinja2 (`AlertTemplate`), where messages are text.
        An alert that it can't be rendered for gets the usual line, which is logged.

    At most 1,000 groups, 200 messages and 1,000 events under silences wait; what is beyond is counted as
    failed, or as silenced, and logged. What waits is kept with the memory of the rules: after a crash it is
    sent, and the last messages perhaps again.
    """

    name: str = ""
    match: Sequence[str] = ()
    silences: Silences = ()
    group_by: Sequence[str] | None = ("rule",)
    group_wait: Duration = "30s"
    group_interval: Duration = "5m"
    patience: Duration = "1h"
    page: str = ""
    zone: str = "UTC"
    template: str = ""
    kind: ClassVar[str]
    silences_ends: ClassVar[bool] = True
    """Whether a silence holds back that an event is over that had been sent."""
    has_text: ClassVar[bool] = True
    """Whether its messages are text, which a template may write."""
    _queue: OutletQueue = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._check()
        names = "group_wait", "group_interval", "patience"
        seconds = {name: microseconds(getattr(self, name)) / 1e6 for name in names}
        # Metrics know an outlet by its queue, so an outlet that is refused must not have one.
        object.__setattr__(self, "_queue", OutletQueue(self, seconds))

    def _check(self) -> None:
        """Check the options. Raises `ValueError` for one that can't be used."""
        if self.group_by is not None:
            known = isinstance(self.group_by, list | tuple) and all(one in LABELS for one in self.group_by)
            if not known:
                raise ValueError(
                    f"{self.kind}: group_by must be a list of {', '.join(LABELS)}, got {self.group_by!r}"
                )
        for name in ("group_wait", "group_interval", "patience"):
            try:
                microseconds(getattr(self, name))
            except ValueError as error:
                raise ValueError(f"{self.kind}: {name}: {error}") from None
        if not isinstance(self.page, str) or not re.match(r"https?://[^\s/]|$", self.page):
            raise ValueError(f"{self.kind}: page must begin with http:// or https://, got {self.page!r}")
        if not isinstance(self.zone, str) or self.zone not in available_timezones():
            raise ValueError(
                f"{self.kind}: zone must be a time zone, such as Europe/Berlin, got {self.zone!r}"
            )
        if self.template and not self.has_text:
            raise ValueError(f"{self.kind}: it sends alerts whole, without text; leave template out")
        try:
            self._template  # noqa: B018 - refused when it is made
        except (ValueError, TypeError) as error:
            raise ValueError(f"{self.kind}: {error}") from None
        silences = self.silences
        if not callable(silences) and not all(isinstance(one, AlertSilence) for one in silences):
            raise ValueError(f"{self.kind}: silences must be a list of AlertSilence, got {silences!r}")
        self.matchers  # noqa: B018 - refused when it is made

    @cached_property
    def matchers(self) -> tuple[Matcher, ...]:
        """Those of `match`. Raises `ValueError` for one that can't be read."""
        return parse_matchers(self.match, f"{self.kind}: match")

    @property
    def title(self) -> str:
        """What it is called where people read of it."""
        return self.name or f"{self.kind} {self.place}"

    @property
    @abstractmethod
    def place(self) -> str:
        """Where it sends to, without anything secret."""

    @property
    def resend_seconds(self) -> float | None:
        """How often `resend` is called; None for never."""
        return None

    def link(self, alert: Alert) -> str:
        """The address of an alert's picture on the page; empty unless the page is known."""
        return page_link(self.page, alert, self.zone) if self.page else ""

    @cached_property
    def _template(self) -> AlertTemplate | None:
        return AlertTemplate(self.template, self.escape) if self.template else None

    def escape(self, text: str) -> str:
        """A text from outside as it may stand in a message."""
        return text

    def lines(self, notification: Notification, link: Callable[[Alert], str] = lambda alert: "") -> list[str]:
        """The lines of a message, by the template if there is one; `link` as for `text.lines`."""
        return lines(notification, self.zone, self._by_template, self.escape, link)

    def linked_lines(
        self, notification: Notification, link: Callable[[Alert], str], fits: Callable[[list[str]], bool]
    ) -> list[str]:
        """The lines; those of several alerts with a link below each, if they fit with their links."""
        if self.page and notification.size > 1 and fits(linked := self.lines(notification, link)):
            return linked
        return self.lines(notification)

    def _by_template(self, alert: Alert) -> str:
        if self._template is None:
            return ""
        try:
            return cut(self._template.render(alert, self.zone, self.link(alert)).strip(), _LONGEST_TEXT)
        except Exception as error:  # whatever the expressions of a template raise
            log.warning("%s: template: %s; the usual line is sent", self.title, error)
            return ""

    @abstractmethod
    def send(self, notification: Notification) -> None:
        """Send one message, in the thread of the outlet. Raises `OutletError` if it isn't accepted."""

    def resend(self) -> None:  # noqa: B027 - few need it
        """Say again what is on, where that must be said again. Raises `OutletError`."""

    def disconnect(self) -> None:  # noqa: B027 - few are connected
        """Let go of connections; the next `send` makes new ones."""

    def current_silences(self) -> Sequence[AlertSilence]:
        """Those that there are now."""
        return self.silences() if callable(self.silences) else self.silences

    def begin(self) -> None:  # noqa: B027 - the first alert begins it
        """See `operators.rules.alerting.WritingOutlet`."""

    def write(self, alert: Alert) -> None:
        """See `operators.rules.alerting.WritingOutlet`: the alert is sent later."""
        self._queue.offer(alert)

    def knows(self, alert: Alert) -> bool:
        """Whether it was given the alert before, in this process."""
        return self._queue.knows(alert)

    def pending(self) -> list[Alert]:
        """The alerts that wait, for those who keep them."""
        return self._queue.pending()

    def flush(self, seconds: float = 10.0) -> None:
        """Send all that waits now, whatever its group says, for at most so many seconds."""
        self._queue.flush(seconds)

    def close(self, seconds: float = 10.0) -> None:
        """Send all that waits now, for at most so many seconds; what remains is given up and counted.

        If the memory of the rules is kept, as in a named group's, its next run sends what was given up here.
        """
        self._queue.close(seconds)

    @property
    def account(self) -> OutletAccount:
        """What became of the alerts so far."""
        return self._queue.account


def all_at_once(outlets: Iterable[object], end: Callable[[NotifyingOutlet], None]) -> None:
    """Call `end` with those that are outlets to people, side by side: none waits for one that hangs."""
    notifying = [outlet for outlet in outlets if isinstance(outlet, NotifyingOutlet)]
    with ThreadPoolExecutor(len(notifying) or 1) as pool:
        list(pool.map(end, notifying))


def trial_notification(now: datetime | None = None) -> Notification:
    """A message that says that it is a test, and no more."""
    at_us = int((now or datetime.now(UTC)).timestamp() * 1e6)
    alert = Alert(
        rule="streamgauge test",
        kind="test",
        state="fired",
        key=(),
        at_us=at_us,
        since_us=at_us,
        value=None,
        lower=None,
        upper=None,
        limit=None,
        why="TEST: nothing has happened; this message checks that alerts arrive here",
    )
    return Notification([alert], {}, is_test=True)
