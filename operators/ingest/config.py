"""An agent's configuration as TOML, with errors that name the line and the field.

name = "web-1"

[sources.access]
type = "tail"
files = ["/var/log/nginx/access.log*"]
sink = "kafka"

[sinks.kafka]
type = "kafka"
topic = "access"
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .batch import IngestError
from .plan import AgentPlan, Route
from .settings import FieldError, build

_TOP = ("name", "folder", "sources", "channels", "sinks")
_ROUTE = ("channel", "sink", "interceptors")


class ConfigError(IngestError, ValueError):
    """A configuration can't be used; the message names the file, the line and the field."""


def read_config(path: Path, name: str, folder: Path) -> AgentPlan:
    """The plan that a file holds: TOML, or Flume's properties if it is called so.

    `name` and `folder` are those of an agent whose file names none. Raises `ConfigError`, and `OSError` for a
    file that can't be read.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: must be UTF-8 text, got a byte {error.object[error.start]:#x}") from None
    if path.suffix in (".properties", ".conf"):
        from .flume_properties import parse_properties

        return parse_properties(text, str(path), folder)
    return parse_config(text, str(path), name, folder)


def parse_config(text: str, source: str, name: str, folder: Path) -> AgentPlan:
    """The plan of a TOML text; `source` is what errors call it.

    >>> text = '''[sources.access]
    ... type = "tail"
    ... files = ["access.log"]
    ... [sinks.kafka]
    ... type = "kafka"
    ... topic = 7'''
    >>> parse_config(text, "agent.toml", "web-1", Path())
    Traceback (most recent call last): streamgauge.operators.ingest.config.ConfigError: agent.toml, line 6:
    sinks.kafka: topic: Expected `str`, got `int`
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{source}: not TOML: {error}") from None
    return plan_of(document, TomlPlaces(text, source), name, folder)


def plan_of(document: Mapping[str, Any], places: Places, name: str, folder: Path) -> AgentPlan:
    """The plan of plain values. Raises `ConfigError`."""
    for key in document:
        if key not in _TOP:
            raise places.error((key,), f"there is no field {key!r}; write {', '.join(_TOP)}")
    for key in ("name", "folder"):
        if key in document and (not isinstance(document[key], str) or not document[key]):
            raise places.error((key,), f"{key} must be a text, got {document[key]!r}")
    sources, channels, sinks = (_tables(document, role, places) for role in ("sources", "channels", "sinks"))
    if not sources or not sinks:
        missing = "sources" if not sources else "sinks"
        raise places.error((), f"an agent needs at least one of its {missing}; write [{missing}.NAME]")
    routes = {}
    for key, table in sources.items():
        where = ("sources", key)
        channel, sink = _target(where, table, channels, sinks, places)
        given = table.get("interceptors", [])
        if not isinstance(given, list) or not all(isinstance(one, Mapping) for one in given):
            raise places.error((*where, "interceptors"), "interceptors must be a list of tables, in [[…]]")
        interceptors = [
            _built("interceptors", (*where, "interceptors", str(at)), one, places)
            for at, one in enumerate(given)
        ]
        own = {name: value for name, value in table.items() if name not in _ROUTE}
        routes[key] = Route(
            source=_built("sources", where, own, places),
            interceptors=interceptors,
            channel=channel,
            sink=sink,
        )
    channel_sinks = {}
    for key, table in channels.items():
        channel_sinks[key] = _sink(("channels", key), table, sinks, places)
    return AgentPlan(
        name=document.get("name", name),
        folder=Path(document.get("folder", folder)),
        routes=routes,
        channels={
            key: _built(
                "channels", ("channels", key), {n: v for n, v in table.items() if n != "sink"}, places
            )
            for key, table in channels.items()
        },
        channel_sinks=channel_sinks,
        sinks={key: _built("sinks", ("sinks", key), table, places) for key, table in sinks.items()},
    )


def _tables(document: Mapping[str, Any], role: str, places: Places) -> Mapping[str, Mapping[str, Any]]:
    tables = document.get(role, {})
    if not isinstance(tables, Mapping) or not all(isinstance(table, Mapping) for table in tables.values()):
        raise places.error((role,), f"{role} must be tables; write [{role}.NAME]")
    return tables


def _target(
    where: tuple[str, ...],
    table: Mapping[str, Any],
    channels: Mapping[str, Any],
    sinks: Mapping[str, Any],
    places: Places,
) -> tuple[str | None, str | None]:
    """The channel or the sink of a source."""
    channel = table.get("channel")
    if channel is None:
        return None, _sink(where, table, sinks, places)
    if "sink" in table:
        raise places.error((*where, "sink"), "a source with a channel has no sink; write it in the channel")
    if channel not in channels:
        known = ", ".join(channels) or "none"
        raise places.error(
            (*where, "channel"), f"channel must be one of those here ({known}), got {channel!r}"
        )
    return channel, None


def _sink(where: tuple[str, ...], table: Mapping[str, Any], sinks: Mapping[str, Any], places: Places) -> str:
    sink = table.get("sink")
    if sink is None and len(sinks) == 1:
        return next(iter(sinks))
    if sink is None:
        raise places.error(where, f"sink is missing; write one of {', '.join(sinks)}")
    if sink not in sinks:
        raise places.error((*where, "sink"), f"sink must be one of {', '.join(sinks)}, got {sink!r}")
    return str(sink)


def _built(role: str, where: tuple[str, ...], table: Mapping[str, Any], places: Places) -> Any:
    try:
        return build(role, table)
    except FieldError as error:
        raise places.error((*where, *error.path), f"{'.'.join(where)}: {error}") from None


class Places:
    """Where the fields of a configuration are, for errors; this knows the file alone."""

    def __init__(self, source: str) -> None:
        self.source = source

    def line(self, path: Sequence[str]) -> int | None:
        """The line of a field, or of the nearest that it is in; None if that isn't known."""
        return None

    def error(self, path: Sequence[str], text: str) -> ConfigError:
        """An error about a field."""
        line = self.line(path)
        return ConfigError(f"{self.source}{'' if line is None else f', line {line}'}: {text}")


_HEADER = re.compile(r"\s*\[(\[?)\s*([^\]]+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""")
_STEP = re.compile(r"""[\w-]+|"[^"]*"|'[^']*'""")


class TomlPlaces(Places):
    """Of a TOML text: tomllib says no lines of what it has read."""

    def __init__(self, text: str, source: str) -> None:
        super().__init__(source)
        self._lines: dict[tuple[str, ...], int] = {}
        table: tuple[str, ...] = ()
        counted: dict[tuple[str, ...], int] = {}
        for number, line in enumerate(text.splitlines(), 1):
            if header := _HEADER.match(line):
                table = _steps(header[2])
                if header[1]:
                    at = counted[table] = counted.get(table, -1) + 1
                    self._lines.setdefault(table, number)
                    table = (*table, str(at))
                self._lines.setdefault(table, number)
            elif key := _KEY.match(line):
                self._lines.setdefault((*table, *_steps(key[1])), number)

    def line(self, path: Sequence[str]) -> int | None:
        """See `Places`."""
        steps = tuple(path)
        while steps and steps not in self._lines:
            steps = steps[:-1]
        return self._lines.get(steps)


def _steps(dotted: str) -> tuple[str, ...]:
    return tuple(step.strip("\"'") for step in _STEP.findall(dotted))
