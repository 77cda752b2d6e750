"""The kinds of sources, channels, sinks and interceptors, by their names in configurations.

Each is a frozen dataclass of settings with a method `open` (`component`), imported on use. To add a kind, add
a file and a line here.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from ...sketches.core.extras import naming_extras

SOURCES = {
    "tail": ".sources.tail:FileTail",
    "spool": ".sources.spool:Spool",
    "stdin": ".sources.stdin:Stdin",
    "sequence": ".sources.sequence:Sequence",
    "http": ".sources.http:Http",
    "syslog": ".sources.syslog:SyslogServer",
    "mqtt": ".sources.mqtt:Mqtt",
    "websocket": ".sources.websocket:Websocket",
    "kafka": ".sources.kafka:KafkaMirror",
    "postgres": ".sources.postgres:Postgres",
    "journal": ".sources.journal:Journal",
}
CHANNELS = {
    "memory": ".channels.memory:MemoryBuffer",
    "file": ".channels.file:WriteAheadLog",
}
SINKS = {
    "kafka": ".sinks.kafka:KafkaTopic",
    "file": ".sinks.file:LineFile",
    "console": ".sinks.console:Console",
}
INTERCEPTORS = {
    "timestamp": ".interceptors.headers:Timestamp",
    "host": ".interceptors.headers:Host",
    "static": ".interceptors.headers:Static",
    "filter": ".interceptors.filter:Filter",
    "expression": ".interceptors.expression:Expression",
}

ROLES: dict[str, Mapping[str, str]] = {
    "sources": SOURCES,
    "channels": CHANNELS,
    "sinks": SINKS,
    "interceptors": INTERCEPTORS,
}


def load_kind(role: str, name: str) -> type[Any]:
    """Return the class of a kind. Raises `ValueError` for an unknown kind.

    >>> load_kind("sources", "tail").__name__
    'FileTail'
    >>> load_kind("sinks", "kakfa")
    Traceback (most recent call last):
    ValueError: type must be one of console, file, kafka, got 'kakfa'
    """
    kinds = ROLES[role]
    if name not in kinds:
        raise ValueError(f"type must be one of {', '.join(sorted(kinds))}, got {name!r}")
    module, _, kind = kinds[name].partition(":")
    with naming_extras():
        return getattr(import_module(module, __package__), kind)
