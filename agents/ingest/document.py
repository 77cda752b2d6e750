"""Interpret an agent's configuration, given as plain values in any format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .agent_plan import AgentPlan, Route
from .batch import IngestError
from .settings import FieldError, build

_TOP = ("name", "folder", "sources", "channels", "sinks")
_ROUTE = ("channel", "sink", "interceptors")


class ConfigError(IngestError, ValueError):
    """A configuration can't be used; the message names the file, the line and the field."""


def plan_of(document: Mapping[str, Any], places: FieldLines, name: str, folder: Path) -> AgentPlan:
    """Make a plan from plain values. Raises `ConfigError`."""
    for key in document:
        if key not in _TOP:
            raise places.error((key,), f"unknown field {key!r}; the fields are {', '.join(_TOP)}")
    for key in ("name", "folder"):
        if key in document and (not isinstance(document[key], str) or not document[key]):
            raise places.error((key,), f"{key} must be a string that isn't empty, got {document[key]!r}")
    sources, channels, sinks = (_tables(document, role, places) for role in ("sources", "channels", "sinks"))
    if not sources or not sinks:
        missing = "sources" if not sources else "sinks"
        raise places.error((), f"an agent has no {missing}; define at least one, as a table [{missing}.NAME]")
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


def _tables(document: Mapping[str, Any], role: str, places: FieldLines) -> Mapping[str, Mapping[str, Any]]:
    tables = document.get(role, {})
    if not isinstance(tables, Mapping) or not all(isinstance(table, Mapping) for table in tables.values()):
        raise places.error((role,), f"{role} must be tables; write [{role}.NAME]")
    return tables


def _target(
    where: tuple[str, ...],
    table: Mapping[str, Any],
    channels: Mapping[str, Any],
    sinks: Mapping[str, Any],
    places: FieldLines,
) -> tuple[str | None, str | None]:
    """Return the channel or the sink of a source."""
    channel = table.get("channel")
    if channel is None:
        return None, _sink(where, table, sinks, places)
    if "sink" in table:
        raise places.error(
            (*where, "sink"),
            "a source with a channel can't have a sink of its own; set the sink in the channel",
        )
    if channel not in channels:
        known = ", ".join(channels) or "none"
        raise places.error(
            (*where, "channel"), f"channel must be one of this file's channels ({known}), got {channel!r}"
        )
    return channel, None


def _sink(
    where: tuple[str, ...], table: Mapping[str, Any], sinks: Mapping[str, Any], places: FieldLines
) -> str:
    sink = table.get("sink")
    if sink is None and len(sinks) == 1:
        return next(iter(sinks))
    if sink is None:
        raise places.error(where, f"sink is missing; write one of {', '.join(sinks)}")
    if sink not in sinks:
        raise places.error((*where, "sink"), f"sink must be one of {', '.join(sinks)}, got {sink!r}")
    return str(sink)


def _built(role: str, where: tuple[str, ...], table: Mapping[str, Any], places: FieldLines) -> Any:
    try:
        return build(role, table)
    except FieldError as error:
        raise places.error((*where, *error.path), f"{'.'.join(where)}: {error}") from None


class FieldLines:
    """Where the fields of a configuration are, for errors; this class only knows the file."""

    def __init__(self, source: str) -> None:
        self.source = source

    def line(self, path: Sequence[str]) -> int | None:
        """Return the line of a field, or of the nearest enclosing one; None if unknown."""
        return None

    def error(self, path: Sequence[str], text: str) -> ConfigError:
        """Return an error about a field."""
        line = self.line(path)
        return ConfigError(f"{self.source}{'' if line is None else f', line {line}'}: {text}")
