"""Destinations of rules' commands: topics, web addresses, MQTT brokers, programs."""

from __future__ import annotations

import json
import logging
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ...formats.encode import json_bytes
from ...formats.jsonable import jsonable
from ...kafka.outgoing_message import ANY_PARTITION, Outgoing
from ...sinks.sink import SinkTopic
from ...windows.durations import Duration
from ..alert import Alert
from ..command import Command, UnsafeKeyError
from ..rule import Rule
from .grouping import Notification
from .http import HttpOutlet
from .mqtt_publisher import MqttPublisher
from .outlet import NotifyingOutlet
from .to_topic import key_bytes

log = logging.getLogger("streamgauge.rules")

_SAID = 500

Commands = Mapping[str, Sequence[Command]]
"""Commands by the names of their rules."""


def command_message(alert: Alert, content: Any) -> dict[str, Any]:
    """The message for a command: its content, and the alert that caused it."""
    fields = alert.to_dict()
    return {"command": content, **{name: fields[name] for name in ("key", "at", "rule", "id")}}


def command_outlets(rules: Sequence[Rule]) -> list[Any]:
    """An outlet for each destination of rules' commands."""
    places: dict[tuple[str, str], dict[str, list[Command]]] = {}
    for rule in rules:
        for command in rule.commands:
            places.setdefault(command.destination, {}).setdefault(rule.name, []).append(command)
    return [_OUTLETS[kind](place, by_rule) for (kind, place), by_rule in places.items()]


def listed_commands(rules: Sequence[Rule], alert: Alert) -> Iterator[dict[str, Any]]:
    """The commands for an alert, as JSON: `to`, `name`, `content` or why there is none."""
    for rule in rules:
        for command in rule.commands if rule.name == alert.rule else ():
            kind, name = command.destination
            about = {
                "rule": alert.rule,
                "key": alert.plain_key,
                "state": alert.state,
                "at": alert.to_dict()["at"],
            }
            try:
                content = command.content(alert)
            except UnsafeKeyError as error:
                yield {**about, "to": kind, "name": name, "content": None, "refused": str(error)}
                continue
            if content is not None:
                yield {**about, "to": kind, "name": name, "content": content}


def _contents(by_rule: Commands, alert: Alert) -> Iterator[Any]:
    """The contents to send for an alert; an unsafe key is logged."""
    for command in by_rule.get(alert.rule, ()):
        try:
            content = command.content(alert)
        except UnsafeKeyError as error:
            log.warning("the command of %r was not carried out: %s", alert.rule, error)
            continue
        if content is not None:
            yield content


@dataclass(frozen=True)
class CommandTopic:
    """A `SendingOutlet` for the commands to one topic."""

    to: str
    by_rule: Commands

    def topic(self) -> SinkTopic:
        """See `operators.rules.alerting.SendingOutlet`."""
        return SinkTopic(self.to, 1, {})

    def messages(self, alert: Alert) -> Iterator[Outgoing]:
        """See `operators.rules.alerting.SendingOutlet`."""
        for content in _contents(self.by_rule, alert):
            value = json_bytes(command_message(alert, content))
            yield Outgoing(self.to, ANY_PARTITION, value, [("id", alert.id.encode())], key_bytes(alert))


_PATIENCE = "30s"
"""How long a command is retried: one that arrives much later may do harm."""


@dataclass(frozen=True)
class CommandWebhook(HttpOutlet):
    """A `WritingOutlet` for the commands to one address."""

    by_rule: Commands = field(repr=False)
    group_by: Sequence[str] | None = field(default=None, kw_only=True)
    patience: Duration = field(default=_PATIENCE, kw_only=True)
    kind: ClassVar[str] = "webhook"

    def write(self, alert: Alert) -> None:
        """See `operators.rules.alerting.WritingOutlet`."""
        if any(True for _ in _contents(self.by_rule, alert)):
            super().write(alert)

    def send(self, notification: Notification) -> None:
        """See `NotifyingOutlet`."""
        for alert in notification.alerts:
            for content in _contents(self.by_rule, alert):
                body = jsonable(command_message(alert, content))
                self.post(self.url, body, {"Idempotency-Key": alert.id})


@dataclass(frozen=True)
class CommandProgram:
    """A `WritingOutlet` that starts a program for each command, one after the other, and waits for it."""

    program: str
    by_rule: Commands
    patience: ClassVar[float] = 30.0
    _turn: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False, compare=False)

    def begin(self) -> None:
        """See `operators.rules.alerting.WritingOutlet`."""

    def write(self, alert: Alert) -> None:
        """See `operators.rules.alerting.WritingOutlet`."""
        text = json.dumps(jsonable(alert.to_dict()), ensure_ascii=False).encode("utf-8", "backslashreplace")
        for arguments in _contents(self.by_rule, alert):
            with self._turn:
                self._run([self.program, *arguments], text, alert)

    def _run(self, line: list[str], text: bytes, alert: Alert) -> None:
        try:
            done = subprocess.run(line, input=text, capture_output=True, timeout=self.patience, check=False)
        except subprocess.TimeoutExpired:
            problem = f"it took longer than {self.patience:g} s and was ended"
        except OSError as error:
            problem = str(error)
        else:
            if not done.returncode:
                return
            problem = (
                f"it ended with {done.returncode}: {done.stderr[-_SAID:].decode(errors='replace').strip()!r}"
            )
        log.warning(
            "the command of %r for the alert %s failed, %s: %s", alert.rule, alert.id, line[0], problem
        )


@dataclass(frozen=True)
class CommandMqtt(NotifyingOutlet):
    """A `WritingOutlet` for the commands to a topic of an MQTT broker, at least once (QoS 1)."""

    url: str = field(repr=False)
    by_rule: Commands = field(repr=False)
    group_by: Sequence[str] | None = field(default=None, kw_only=True)
    patience: Duration = field(default=_PATIENCE, kw_only=True)
    kind: ClassVar[str] = "mqtt"
    _publisher: MqttPublisher = field(init=False, repr=False, compare=False)

    def _check(self) -> None:
        super()._check()
        object.__setattr__(self, "_publisher", MqttPublisher(self.url))

    @property
    def place(self) -> str:
        """See `NotifyingOutlet`."""
        return self._publisher.place

    def write(self, alert: Alert) -> None:
        """See `operators.rules.alerting.WritingOutlet`."""
        if any(True for _ in _contents(self.by_rule, alert)):
            super().write(alert)

    def send(self, notification: Notification) -> None:
        """See `NotifyingOutlet`."""
        for alert in notification.alerts:
            for content in _contents(self.by_rule, alert):
                self._publisher.publish(json_bytes(command_message(alert, content)))

    def disconnect(self) -> None:
        """See `NotifyingOutlet`."""
        self._publisher.close()


_OUTLETS: Mapping[str, Any] = {
    "topic": CommandTopic,
    "webhook": CommandWebhook,
    "mqtt": CommandMqtt,
    "run": CommandProgram,
}
