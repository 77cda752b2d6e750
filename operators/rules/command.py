"""The reaction of a rule when an event begins and when it is over: a message, a request, a program."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from string import Template
from typing import Any, Literal

from ...sketches.core.errors import StreamgaugeError
from .alert import Alert

Accepted = Literal["any", "address", "ipv4", "ipv6"]

_DESTINATIONS = ("topic", "webhook", "mqtt", "run")
_NAMES = ("key", "rule", "kind", "app", "state", "at", "since", "value", "limit", "id", "why")
_CHOSEN_BY_OTHERS = ("key", "why")
_PLAIN = re.compile(r"[\w:][\w.:@%+,/=-]*", re.ASCII)
"""A key that a program's argument may contain: it has no character that a shell, nft or SQL would interpret,
and doesn't begin with a dash or @, which would make it an option or a file name."""

_VERSIONS: Mapping[str, tuple[int, ...]] = {"address": (4, 6), "ipv4": (4,), "ipv6": (6,)}
_LONGEST = 200


class UnsafeKeyError(StreamgaugeError, ValueError):
    """A key that must not be passed to a program as an argument."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """Send or run something when an event of a rule fires, and when it clears; once for each alert.

    topic, webhook, mqtt, run
        The destination, one of: a Kafka topic, exactly once, in the transaction that stores the merger's
        position; a web address, by POST; ``mqtt://HOST:PORT/TOPIC``; or a program.
    fired, cleared
        The content: any JSON that names the desired state (``{"ac": "off"}``), so that sending it twice does
        no harm. For a program, its arguments: a list of strings. If one is missing, nothing happens in that
        state; if both are missing, the message names rule and state. A withdrawn event is treated as if it
        had cleared.
    accepts
        The keys that it applies to: ``"any"``, ``"address"`` (IP addresses), ``"ipv4"`` or ``"ipv6"``.
    ignore
        Keys that it never applies to, like fail2ban's `ignoreip`: addresses, networks (``"10.0.0.0/8"``),
        values.

    In strings ``$key``, ``$rule``, ``$kind``, ``$app``, ``$state``, ``$at``, ``$since``, ``$value``,
    ``$limit``, ``$id`` and ``$why`` are replaced by the alert's fields; ``$$`` is a dollar sign. A string
    that is only one of them keeps its type in JSON. A program is started without a shell, with the alert as
    JSON on its standard input. It is started only if a key among its arguments is plain (letters, digits, and
    ``. : @ % + , / = -`` after the first). After a crash the last one may be started again.

    >>> import streamgauge as sg
    >>> ban = sg.rules.Command(run="nft", fired=["add", "element", "inet", "f", "banned", "{ $key }"])
    >>> figures = 5.0, 5.0, 5.0, 5.0
    >>> alert = sg.rules.Alert("brute force", "logins", "fired", ("192.0.2.1",), 0, 0, *figures, "5 refused")
    >>> ban.content(alert)
    ['add', 'element', 'inet', 'f', 'banned', '{ 192.0.2.1 }']

    Raises `ValueError` or `TypeError` for content that can't be sent.
    """

    topic: str = ""
    webhook: str = ""
    mqtt: str = ""
    run: str = ""
    fired: Any = None
    cleared: Any = None
    accepts: Accepted = "any"
    ignore: Sequence[str] = field(default_factory=tuple)

    def __post_init__(self) -> None:
        given = [name for name in _DESTINATIONS if getattr(self, name)]
        if len(given) != 1 or not isinstance(getattr(self, given[0]), str):
            raise ValueError(f"a command goes to one of {', '.join(_DESTINATIONS)}, got {given or 'none'}")
        if self.webhook and not self.webhook.startswith(("http://", "https://")):
            raise ValueError(f"webhook must begin with http:// or https://, got {self.webhook!r}")
        if self.mqtt and not re.fullmatch(r"mqtts?://[^/]+/[^#+]+", self.mqtt):
            raise ValueError(f"mqtt must be mqtt://HOST:PORT/TOPIC, got {self.mqtt!r}")
        if self.accepts not in ("any", *_VERSIONS):
            raise ValueError(f"accepts must be one of any, {', '.join(_VERSIONS)}, got {self.accepts!r}")
        if isinstance(self.ignore, str) or not all(isinstance(one, str) for one in self.ignore):
            raise TypeError(f'ignore must be a list of keys, as in ["10.0.0.0/8"], got {self.ignore!r}')
        for name in ("fired", "cleared"):
            content = getattr(self, name)
            if self.run and content is not None and not _is_arguments(content):
                raise TypeError(f"{name} must be a list of strings, a program's arguments, got {content!r}")
            for text in _texts(content):
                _check_template(name, text)
        if self.run and self.fired is None and self.cleared is None:
            raise ValueError("a program needs its arguments: fired, cleared or both, a list of strings")

    @property
    def destination(self) -> tuple[str, str]:
        """The kind of its destination, and its name."""
        return next((name, getattr(self, name)) for name in _DESTINATIONS if getattr(self, name))

    def content(self, alert: Alert) -> Any:
        """The content for an alert; None for nothing. Raises `UnsafeKeyError` for a key that isn't plain."""
        if not self._concerns(alert.plain_key):
            return None
        if alert.lasts is None:
            return None
        state = "fired" if alert.lasts else "cleared"
        content = {"fired": self.fired, "cleared": self.cleared}[state]
        if self.fired is None and self.cleared is None:
            content = {"rule": "$rule", "state": "$state"}
        if content is None:
            return None
        values = {**alert.to_dict(), "state": state}
        return _filled(content, values, bool(self.run))

    def _concerns(self, key: Any) -> bool:
        address = _address(key)
        if self.accepts != "any" and (address is None or address.version not in _VERSIONS[self.accepts]):
            return False
        for one in self.ignore:
            network = _network(one)
            if one == str(key) or (address is not None and network is not None and address in network):
                return False
        return True


def _check_template(name: str, text: str) -> None:
    template = Template(text)
    if not template.is_valid():
        raise ValueError(f"{name}: {text!r} has a $ without a name; write $$ for a dollar sign")
    if unknown := [one for one in template.get_identifiers() if one not in _NAMES]:
        raise ValueError(
            f"{name}: ${unknown[0]} is not known; there are {', '.join(f'${n}' for n in _NAMES)}"
        )


def _texts(content: Any) -> list[str]:
    """All strings in a JSON value, including the names of members."""
    if isinstance(content, str):
        return [content]
    if isinstance(content, Mapping):
        return [text for pair in content.items() for part in pair for text in _texts(part)]
    if isinstance(content, list | tuple):
        return [text for part in content for text in _texts(part)]
    return []


def _filled(content: Any, values: Mapping[str, Any], is_run: bool) -> Any:
    """The content with an alert's fields filled in."""
    if isinstance(content, Mapping):
        return {_filled(name, values, False): _filled(part, values, is_run) for name, part in content.items()}
    if isinstance(content, list | tuple):
        return [_filled(part, values, is_run) for part in content]
    if not isinstance(content, str):
        return content
    template = Template(content)
    if not is_run and content[1:] in _NAMES and content[0] == "$":
        return values[content[1:]]
    texts = {name: _text(values[name]) for name in template.get_identifiers()}
    for name in _CHOSEN_BY_OTHERS if is_run else ():
        if name in texts and not _PLAIN.fullmatch(texts[name]):
            raise UnsafeKeyError(
                f"{name} is {texts[name][:_LONGEST]!r}, which has characters that are not allowed in a "
                "program's arguments; let the program read it from its standard input"
            )
    return template.substitute(texts)


def _text(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "" if value is None else str(value)


def _is_arguments(content: Any) -> bool:
    return isinstance(content, list | tuple) and all(isinstance(one, str) for one in content)


def _address(key: Any) -> Any:
    try:
        return ip_address(key) if isinstance(key, str) else None
    except ValueError:
        return None


def _network(text: str) -> Any:
    try:
        return ip_network(text, strict=False)
    except ValueError:
        return None


def command_of(text: str, cleared: str = "") -> Command:
    """The command that a setting describes: a destination such as ``topic:NAME``, an address, or a command
    line.

    `cleared` is the command line for the end of an event. Lines are split as a shell does, but run without
    one.

    >>> command_of("nft add element inet filter banned '{ $key }'").fired[-1]
    '{ $key }'

    Raises `ValueError` for anything else.
    """
    if text.startswith("topic:"):
        return Command(topic=text.removeprefix("topic:"))
    if text.startswith(("http://", "https://")):
        return Command(webhook=text)
    if text.startswith(("mqtt://", "mqtts://")):
        return Command(mqtt=text)
    program, *fired = shlex.split(text) or [""]
    other, *after = shlex.split(cleared) or [program]
    if other != program:
        raise ValueError(
            f"the same program must run when an event begins and ends, got {program!r} and {other!r}"
        )
    return Command(run=program, fired=fired, cleared=after if cleared else None)


def commands_of(given: Any, where: str) -> tuple[Command, ...]:
    """A rule's commands: one, several, or in the form of a rules file.

    Raises `ValueError` or `TypeError`, naming the rule and what is wrong.
    """
    commands = []
    for one in given if isinstance(given, list | tuple) else () if given is None else (given,):
        if isinstance(one, Mapping):
            known = Command.__dataclass_fields__
            if unknown := [name for name in one if name not in known]:
                raise ValueError(f"{where}: command: {unknown[0]!r} is not known; it has {', '.join(known)}")
            try:
                one = Command(**one)
            except (ValueError, TypeError) as error:
                raise type(error)(f"{where}: command: {error}") from None
        if not isinstance(one, Command):
            raise TypeError(
                f'{where}: command must be such as Command(topic="commands", fired=…), got {one!r}'
            )
        commands.append(one)
    return tuple(commands)
