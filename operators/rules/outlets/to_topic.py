"""Alerts as messages on a Kafka topic, and commands that follow from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ...formats.encode import json_bytes
from ...formats.jsonable import jsonable
from ...kafka.outgoing_message import ANY_PARTITION, Outgoing
from ...sinks.sink import SinkTopic
from ..alert import Alert


@dataclass(frozen=True)
class AlertsToKafka:
    """Send alerts to a topic, one JSON message each, exactly once.

    They are sent in the transaction that stores the merger's position: read the topic with
    ``isolation.level=read_committed``. The message key is the alert's key, so the alerts of a key stay in
    order; the headers `id` and `state` identify an alert without decoding it. The topic is created with one
    partition if missing. Raises `ValueError` for a topic without a name.

    >>> import json
    >>> import streamgauge as sg
    >>> alert = sg.rules.Alert("hot", "threshold", "fired", ("a",), 0, 0, 31.0, 31.0, 31.0, 30.0, "31 > 30")
    >>> [message] = sg.rules.AlertsToKafka("alerts").messages(alert)
    >>> message.key, json.loads(message.value)["why"]
    (b'a', '31 > 30')
    """

    to: str

    def __post_init__(self) -> None:
        _check(type(self).__name__, self.to)

    def topic(self) -> SinkTopic:
        """See `operators.rules.alerting.SendingOutlet`."""
        return SinkTopic(self.to, 1, {})

    def messages(self, alert: Alert) -> Iterator[Outgoing]:
        """See `operators.rules.alerting.SendingOutlet`."""
        headers = [("id", alert.id.encode()), ("state", alert.state.encode())]
        yield Outgoing(self.to, ANY_PARTITION, json_bytes(alert.to_dict()), headers, key_bytes(alert))


@dataclass(frozen=True)
class CommandsToKafka:
    """Send an action message to a topic when a rule fires, and another when it clears, exactly once.

    `commands` maps a rule's name to the content for ``"fired"`` and for ``"cleared"``: a JSON object that
    names the desired state (``{"ac": "off"}``), not a change of it, so that carrying it out twice does no
    harm. The message contains it with the alert's `key`, `at`, `rule` and `id`; its key is the alert's key. A
    withdrawn event is treated as if it had cleared.

    Raises `ValueError` or `TypeError` for commands that can't be sent.

    >>> import json
    >>> import streamgauge as sg
    >>> off = sg.rules.CommandsToKafka("commands", {"hot": {"fired": {"ac": "on"}, "cleared": {"ac": "off"}}})
    >>> alert = sg.rules.Alert("hot", "threshold", "fired", ("a",), 0, 0, 31.0, 31.0, 31.0, 30.0, "31 > 30")
    >>> [message] = off.messages(alert)
    >>> json.loads(message.value)["command"], message.key
    ({'ac': 'on'}, b'a')
    """

    to: str
    commands: Mapping[str, Mapping[str, Mapping[str, Any]]]

    def __post_init__(self) -> None:
        _check(type(self).__name__, self.to)
        if not isinstance(self.commands, Mapping) or not self.commands:
            raise TypeError('CommandsToKafka: name commands by rule, as in {"hot": {"fired": {"ac": "on"}}}')
        for rule, by_state in self.commands.items():
            if not isinstance(by_state, Mapping) or not by_state.keys() <= {"fired", "cleared"}:
                raise ValueError(
                    f"CommandsToKafka: the commands of {rule!r} are {by_state!r}; "
                    'write "fired", "cleared" or both'
                )

    def topic(self) -> SinkTopic:
        """See `operators.rules.alerting.SendingOutlet`."""
        return SinkTopic(self.to, 1, {})

    def messages(self, alert: Alert) -> Iterator[Outgoing]:
        """See `operators.rules.alerting.SendingOutlet`."""
        state = {True: "fired", False: "cleared", None: "unknown"}[alert.lasts]
        command = self.commands.get(alert.rule, {}).get(state)
        if command is not None:
            fields = alert.to_dict()
            value = {"command": command, **{name: fields[name] for name in ("key", "at", "rule", "id")}}
            yield Outgoing(
                self.to, ANY_PARTITION, json_bytes(value), [("id", alert.id.encode())], key_bytes(alert)
            )


def _check(what: str, topic: object) -> None:
    if not isinstance(topic, str) or not topic:
        raise ValueError(f'{what}: topic must be the name of a topic, as in {what}("alerts"), got {topic!r}')


def key_bytes(alert: Alert) -> bytes | None:
    """The message key, which is the alert's key."""
    key = jsonable(alert.plain_key)
    return (
        None
        if key is None
        else key.encode("utf-8", "backslashreplace")
        if isinstance(key, str)
        else json_bytes(key)
    )
