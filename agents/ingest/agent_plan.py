"""What an agent is to do: which source goes by which channel to which sink."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .component import ChannelSettings, InterceptorSettings, SinkSettings, SourceSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A source and where it goes: to a channel, by its name, or without one to a sink."""

    source: SourceSettings
    interceptors: Sequence[InterceptorSettings] = ()
    channel: str | None = None
    sink: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentPlan:
    """Sources, channels and sinks by their names; `channel_sinks` says where each channel goes.

    `name` is the agent's: positions are kept under it, and a second agent of the same name takes over from
    the first. `folder` is where channels of files and the positions of sinks other than Kafka are kept.
    """

    name: str
    routes: Mapping[str, Route]
    sinks: Mapping[str, SinkSettings]
    channels: Mapping[str, ChannelSettings] = field(default_factory=dict)
    channel_sinks: Mapping[str, str] = field(default_factory=dict)
    folder: Path = Path()
