"""Common parts of all outlets to people: matching, grouping, and sending."""

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
"""The most characters that a template may print for an alert."""

Silences = Sequence[AlertSilence] | Callable[[], Sequence[AlertSilence]]


@dataclass(frozen=True, kw_only=True)
class NotifyingOutlet(ABC):
    """An outlet with its own thread: a run passes alerts to it and continues, whether or not they arrive.

    name
        Its name in logs and accounts; by default its kind and its host.
    match
        Matchers of the alerts that it accepts (`AlertSilence` describes the syntax); by default all alerts.
    silences
        The silences that suppress alerts, or a function that returns the current ones.
    group_by, group_wait, group_interval
        Alerts that share these labels and arrive within `group_wait` become one message; later ones are sent
        together, `group_interval` after it. ``group_by=None`` disables grouping.
    patience
        How long a message is retried, at growing intervals, while the outlet is unreachable or answers 429 or
        5xx. Then it is given up, counted and logged. Messages that an outlet refuses are not sent again.
    page
        The address at which people reach the run's page, such as ``https://gauge.example.org``: each alert
        then has a link to its picture there, with its app, keys, span and event.
    zone
        The time zone of times in messages to people, and of the page that a link opens.
    template
        The line about an alert, as a Jinja2 template (`AlertTemplate`), for outlets whose messages are text.
        If it can't be rendered for an alert, the alert gets the default line, and this is logged.

    At most 1,000 groups, 200 messages and 1,000 silenced events wait; beyond that, they are counted as failed
    or as silenced, and logged. Waiting alerts are stored with the rules' state: after a crash they are sent,
    and the last messages may be repeated.
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
    """Whether a silence also suppresses the end of an event that had been sent."""
    has_text: ClassVar[bool] = True
    """Whether its messages are text, which a template can produce."""
    _queue: OutletQueue = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._check()
        names = "group_wait", "group_interval", "patience"
        seconds = {name: microseconds(getattr(self, name)) / 1e6 for name in names}
        # Metrics find an outlet by its queue, so an outlet with invalid options must not have one.
        object.__setattr__(self, "_queue", OutletQueue(self, seconds))

    def _check(self) -> None:
        """Validate the options. Raises `ValueError` for an invalid one."""
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
        """The parsed matchers of `match`. Raises `ValueError` for an invalid one."""
        return parse_matchers(self.match, f"{self.kind}: match")

    @property
    def title(self) -> str:
        """Its name for people."""
        return self.name or f"{self.kind} {self.place}"

    @property
    @abstractmethod
    def place(self) -> str:
        """Its destination, without secrets."""

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
        """Escape a text from outside for use in a message."""
        return text

    def lines(self, notification: Notification, link: Callable[[Alert], str] = lambda alert: "") -> list[str]:
        """The lines of a message, by the template if there is one; `link` as for `text.lines`."""
        return lines(notification, self.zone, self._by_template, self.escape, link)

    def linked_lines(
        self, notification: Notification, link: Callable[[Alert], str], fits: Callable[[list[str]], bool]
    ) -> list[str]:
        """The lines of a message; if several alerts' links fit, each has its link below it."""
        if self.page and notification.size > 1 and fits(linked := self.lines(notification, link)):
            return linked
        return self.lines(notification)

    def _by_template(self, alert: Alert) -> str:
        if self._template is None:
            return ""
        try:
            return cut(self._template.render(alert, self.zone, self.link(alert)).strip(), _LONGEST_TEXT)
        except Exception as error:  # a template's expressions may raise anything
            log.warning("%s: template: %s; the usual line is sent", self.title, error)
            return ""

    @abstractmethod
    def send(self, notification: Notification) -> None:
        """Send one message, in the thread of the outlet. Raises `OutletError` if it isn't accepted."""

    def resend(self) -> None:  # noqa: B027 - few need it
        """Send active alerts again, for services that require that. Raises `OutletError`."""

    def disconnect(self) -> None:  # noqa: B027 - few are connected
        """Close connections; the next `send` opens new ones."""

    def current_silences(self) -> Sequence[AlertSilence]:
        """The current silences."""
        return self.silences() if callable(self.silences) else self.silences

    def begin(self) -> None:  # noqa: B027 - the first alert begins it
        """See `operators.rules.alerting.WritingOutlet`."""

    def write(self, alert: Alert) -> None:
        """See `operators.rules.alerting.WritingOutlet`: the alert is sent later."""
        self._queue.offer(alert)

    def knows(self, alert: Alert) -> bool:
        """Whether the alert was passed to it before, in this process."""
        return self._queue.knows(alert)

    def pending(self) -> list[Alert]:
        """The waiting alerts, for storage with the rules' state."""
        return self._queue.pending()

    def flush(self, seconds: float = 10.0) -> None:
        """Send everything that waits now, regardless of grouping, for at most `seconds`."""
        self._queue.flush(seconds)

    def close(self, seconds: float = 10.0) -> None:
        """Send everything that waits now, for at most `seconds`; the rest is given up and counted.

        If the rules' state is stored, as in a named group, its next run sends what was given up here.
        """
        self._queue.close(seconds)

    @property
    def account(self) -> OutletAccount:
        """The outcome of the alerts so far."""
        return self._queue.account


def all_at_once(outlets: Iterable[object], end: Callable[[NotifyingOutlet], None]) -> None:
    """Call `end` with the outlets to people concurrently, so that none waits for one that hangs."""
    notifying = [outlet for outlet in outlets if isinstance(outlet, NotifyingOutlet)]
    with ThreadPoolExecutor(len(notifying) or 1) as pool:
        list(pool.map(end, notifying))


def trial_notification(now: datetime | None = None) -> Notification:
    """A message that only says that it is a test."""
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
