"""A run's sink that applies rules to its closed windows and sends the alerts."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Protocol, runtime_checkable

from ..kafka.outgoing_message import Outgoing
from ..sinks.sink import (
    ClosedWindow,
    Origin,
    PartitionSink,
    RunProgress,
    SinkError,
    SinkTopic,
    common_keys,
)
from ..windows.durations import Duration, microseconds
from .alert import Alert
from .evaluation.rule_engine import RuleEngine, RuleView, rule_view
from .late_readings import LateReadings
from .outlets.outlet import NotifyingOutlet
from .outlets.to_command import command_outlets
from .outlets.to_output import AlertsToConsole
from .rule import Rule
from .stale_feed import StaleFeed

log = logging.getLogger("streamgauge.rules")

_MOST_PENDING = 1_000
"""The number of pending alerts, the latest ones, that are stored with a partition's state."""


@runtime_checkable
class SendingOutlet(Protocol):
    """An outlet that sends alerts as Kafka messages, exactly once: in the transaction that stores the
    merger's position.
    """

    def topic(self) -> SinkTopic:
        """The topic that it writes to."""

    def messages(self, alert: Alert) -> Iterable[Outgoing]:
        """An alert's messages; the same for the same alert."""


@runtime_checkable
class WritingOutlet(Protocol):
    """Any other outlet. After a crash, the latest alerts may be repeated with the same ids."""

    def begin(self) -> None:
        """Called before the first alert of a run. Raises if it can't accept any."""

    def write(self, alert: Alert) -> None:
        """Write an alert, or give it up after a time and count this; the run continues without it."""


Outlet = SendingOutlet | WritingOutlet
"""`AlertsToKafka`, `CommandsToKafka`, `AlertsToConsole`, `AlertsToFile`, `AlertsToWebhook`, one of those to
people (`operators.rules.outlets`), or an object of your own."""


@dataclass(frozen=True)
class Alerting:
    """Apply rules to the closed windows of a run, and report each event once.

    rules
        `Threshold`, `Ratio`, `RollingSum`, `Change`, `Absence`, `Flatline`, `NewTerm`, or your own rules
        (`operators.rules.rule`).
    to
        The outlets: `AlertsToKafka`, `CommandsToKafka`, `AlertsToConsole` (standard output, the default),
        `AlertsToFile`, `AlertsToWebhook`; `AlertsToAlertmanager`, `AlertsToSlack`, `AlertsToMattermost`,
        `AlertsToEmail`, `AlertsToNtfy`, `AlertsToMqtt`.
    at
        The name of a key that contains times: each row of the table is then a reading and not a window, and
        rules see every reading, in the order of these times. Group the stream by it as well:
        ``.group_by("sensor", "at").tumbling("1m", delay="10s")``; window and delay are how long late readings
        are accepted.
    stale
        How long there may be no message, by the wall clock, before an alert reports that the feed is stale.
    app
        A name to include in every alert.
    lateness
        For readings of a stream that keeps late rows (``tumbling(…, keep_late=True)``): how long after a
        key's latest reading an earlier one of the same key is accepted. Alerts that follow from it have
        ``detected_late`` (seconds) in their `details`, and alerts that no longer follow are withdrawn.
        Readings later than that are dropped, counted, and named in a warning. Every reading of this span is
        stored.
    cancels
        For readings that have a key each, such as a trade's number: the name of an answer. A reading for
        which it isn't null is not evaluated but cancels the earlier reading with the same keys. Within
        `lateness`, rules evaluate the series again without that reading. Later, up to a day, the alerts that
        fired with it are withdrawn, but other alerts that were compared with it stay.
    name
        The name of its state, if a run has several.

    The state of the rules is stored in the table topic together with the merger's position, so a restart, or
    another worker that takes over, neither repeats nor loses an alert. A window that only silence has closed
    is evaluated immediately; if later rows contradict it, the alert is withdrawn.

    Raises `ValueError` or `TypeError`, on creation or when the run starts, for rules that don't suit the
    stream.

    >>> import polars as pl
    >>> import streamgauge as sg
    >>> rows = sg.Stream.from_schema({"at": pl.Int64}, time=pl.from_epoch("at"))
    >>> posts = rows.tumbling("1m").agg(posts=sg.count())
    >>> busy = sg.rules.Threshold("busy", value="posts", at_least=2)
    >>> tester = sg.StreamTester(posts, sinks=[sg.rules.Alerting([busy])])
    >>> _ = tester.feed([{"at": 1_767_225_600 + second} for second in (0, 1, 70, 150)])
    2026-01-01T00:01:00+00:00 busy fired: posts is 2: at least 2
    2026-01-01T00:02:00+00:00 busy cleared: posts is 1: back from at least 2
    """

    rules: Sequence[Rule]
    to: Sequence[Outlet] = field(default_factory=lambda: (AlertsToConsole(),))
    at: str | None = None
    stale: Duration | None = None
    app: str = ""
    name: str = "alerts"
    lateness: Duration = "1m"
    cancels: str | None = None
    _engines: dict[int, RuleEngine] = field(default_factory=dict, init=False, repr=False, compare=False)
    """The latest rule engine of each partition."""
    several_windows: ClassVar[bool] = True
    """It accepts all windows that closed together in one call, and evaluates rules over them together."""

    def __post_init__(self) -> None:
        if not isinstance(self.rules, list | tuple) or not all(isinstance(one, Rule) for one in self.rules):
            raise TypeError(f"Alerting: rules must be a list of rules, got {self.rules!r}")
        if not isinstance(self.to, list | tuple) or not all(
            isinstance(one, SendingOutlet | WritingOutlet) for one in self.to
        ):
            raise TypeError(
                'Alerting: to must be a list of outlets, such as to=[AlertsToKafka("alerts")], '
                f"got {self.to!r}"
            )
        if self.stale is not None and not microseconds(self.stale):
            raise ValueError(f"Alerting: stale must be a duration such as '10m', got {self.stale!r}")
        microseconds(self.lateness)

    def topics(self, origin: Origin, table_partitions: int) -> list[SinkTopic]:
        """See `operators.sinks.sink.StatefulSink`."""
        self.view(origin)
        if table_partitions > 1 and self.together(origin) == ():
            log.warning(
                "rules of %r look at all groups, so all groups are in one of the %d partitions of the table "
                "topic, and one run merges them",
                self.name,
                table_partitions,
            )
        for outlet in self.outlets:
            if isinstance(outlet, WritingOutlet):
                outlet.begin()
        topics = [outlet.topic() for outlet in self.outlets if isinstance(outlet, SendingOutlet)]
        return list({topic.name: topic for topic in topics}.values())

    @cached_property
    def outlets(self) -> tuple[Outlet, ...]:
        """The outlets, and the commands of rules."""
        return (*self.to, *command_outlets(self.rules))

    @cached_property
    def notifying(self) -> dict[str, NotifyingOutlet]:
        """The outlets with pending alerts in memory, by names that are stable across runs."""
        by_name: dict[str, NotifyingOutlet] = {}
        for outlet in self.outlets:
            if isinstance(outlet, NotifyingOutlet):
                same = sum(name.startswith(f"{outlet.title}#") for name in by_name)
                by_name[f"{outlet.title}#{same}"] = outlet
        return by_name

    def view(self, origin: Origin) -> RuleView:
        """The rules' view of a stream's table. Raises `ValueError` for rules that don't suit it."""
        assert origin.schema is not None
        return rule_view(self.rules, origin.schema, self.at, self.cancels)

    def together(self, origin: Origin) -> tuple[str, ...] | None:
        """See `operators.sinks.sink.keys_together`: all rows of a rule's key are in one partition."""
        apart = None if self.at is None else tuple(key for key in origin.keys if key != self.at)
        return common_keys([apart, *(rule.together for rule in self.rules)])

    def for_partition(self, origin: Origin, partition: int) -> PartitionSink:
        """See `operators.sinks.sink.StatefulSink`."""
        lateness_us = microseconds(self.lateness) if origin.keep_late else None
        return _PartitionAlerts(self, self.view(origin), partition, lateness_us)

    def late_readings(self) -> LateReadings:
        """How many readings were late, over all partitions that this process has evaluated.

        >>> Alerting([]).late_readings().total
        0
        """
        return sum((one.late_readings for one in list(self._engines.values())), LateReadings())

    def deliver(self, alerts: Iterable[Alert]) -> list[Outgoing]:
        """Write alerts to the writing outlets; returns the messages of the sending ones."""
        messages: list[Outgoing] = []
        for alert in alerts:
            for outlet in self.outlets:
                if isinstance(outlet, SendingOutlet):
                    messages += outlet.messages(alert)
                else:
                    outlet.write(alert)
        return messages


class _PartitionAlerts:
    """The rules over one partition of the table topic, and the time since anything arrived."""

    def __init__(self, alerting: Alerting, looks: RuleView, partition: int, lateness_us: int | None) -> None:
        self._alerting = alerting
        self._engine = RuleEngine(alerting.rules, looks, alerting.app, lateness_us)
        alerting._engines[partition] = self._engine
        self._stale: StaleFeed | None = None
        if alerting.stale is not None and partition == 0:
            self._stale = StaleFeed(alerting.stale, alerting.app)
        self._memory: str | None = None
        self._handed_over: dict[str, Alert] = {}
        """Alerts that outlets had not sent when last checked."""

    def update(self, window: ClosedWindow) -> list[Outgoing]:
        """See `PartitionSink`."""
        self._memory = None
        return self._deliver(self._engine.evaluate(window.groups, window.final))

    def advance(self, progress: RunProgress) -> list[Outgoing]:
        """See `PartitionSink`."""
        before = self._engine.closed_until
        said = self._engine.advance(progress.final_us, progress.due_us, progress.clock_us)
        if said or self._engine.closed_until != before:
            self._memory = None
        if self._stale is not None and (stale := self._stale.update(progress.read, progress.now)):
            said, self._memory = [*said, *stale], None
        return self._deliver(said)

    def _deliver(self, alerts: Iterable[Alert]) -> list[Outgoing]:
        alerts = list(alerts)
        messages = self._alerting.deliver(alerts)
        if self._alerting.notifying:
            self._handed_over.update((alert.id, alert) for alert in alerts)
            if len(self._handed_over) > 10 * _MOST_PENDING:
                self._pending()
        return messages

    def state(self) -> str:
        """See `PartitionSink`."""
        if self._memory is None or self._handed_over:
            stale = self._stale is not None and self._stale.on
            kept = {"fold": self._engine.state(), "stale": stale}
            if pending := self._pending():
                kept["pending"] = pending
            self._memory = json.dumps(kept, separators=(",", ":"))
        return self._memory

    def _pending(self) -> list[dict[str, Any]]:
        """This partition's alerts that wait in outlets, with the names of these."""
        waiting: dict[str, list[str]] = {}
        for name, outlet in self._alerting.notifying.items():
            for alert in outlet.pending():
                waiting.setdefault(alert.id, []).append(name)
        self._handed_over = {
            number: alert for number, alert in self._handed_over.items() if number in waiting
        }
        latest = list(self._handed_over.items())[-_MOST_PENDING:]
        return [{"alert": alert.to_dict(), "to": waiting[number]} for number, alert in latest]

    def restore(self, memory: str) -> None:
        """See `PartitionSink`."""
        try:
            kept: dict[str, Any] = json.loads(memory)
            self._engine.restore(kept["fold"])
            if self._stale is not None:
                self._stale.on = kept["stale"]
            pending = [(Alert.from_dict(one["alert"]), one["to"]) for one in kept.get("pending", ())]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise SinkError(
                f"the state of {self._alerting.name!r} is damaged ({error!r}), so it isn't known what was "
                "reported; give the sink another name to start over"
            ) from None
        self._send_pending(pending)

    def _send_pending(self, pending: Iterable[tuple[Alert, Sequence[str]]]) -> None:
        """Pass on again what had not been sent, unless it was already passed on in this process.

        Restored state is older than what its outlets have done since: on Spark each micro-batch restores it.
        """
        for alert, names in pending:
            for name in names:
                outlet = self._alerting.notifying.get(name)
                if outlet is None:
                    log.warning(
                        "the alert %s of %r waited for %s, which is no longer an outlet",
                        alert.id,
                        alert.rule,
                        name.rpartition("#")[0],
                    )
                    continue
                if not outlet.knows(alert):
                    outlet.write(alert)
                self._handed_over[alert.id] = alert
