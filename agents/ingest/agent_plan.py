"""An agent's plan: which source sends through which channel to which sink."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .component import ChannelSettings, InterceptorSettings, SinkSettings, SourceSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A source and its target: a channel, by name, or without one a sink."""

    source: SourceSettings
    interceptors: Sequence[InterceptorSettings] = ()
    channel: str | None = None
    sink: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentPlan:
    """Sources, channels and sinks by name; `channel_sinks` has the sink of each channel.

    `name` is the agent's: positions are stored under it, and a second agent of the same name takes over from
    the first. `folder` stores file channels, and the positions of sinks other than Kafka.
    """

    name: str
    routes: Mapping[str, Route]
    sinks: Mapping[str, SinkSettings]
    channels: Mapping[str, ChannelSettings] = field(default_factory=dict)
    channel_sinks: Mapping[str, str] = field(default_factory=dict)
    folder: Path = Path()
