"""Where a stream's rows come from, and which columns they have when they arrive."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import polars as pl

from .kafka.secrets import Settings

if TYPE_CHECKING:
    from .kafka.decode import Decoder


@dataclass(frozen=True)
class KafkaSource:
    """The messages of a topic, their values decoded.

    `config` goes to librdkafka as it stands: security, timeouts, anything. Neither it nor the address is part
    of what the stream computes. Its secrets are in no repr.
    """

    topic: str
    value: Decoder
    bootstrap_servers: str = "localhost:9092"
    config: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "config", Settings(self.config))

    @property
    def schema(self) -> pl.Schema:
        """The columns of its rows."""
        return pl.Schema(self.value.schema)

    def definition(self) -> dict[str, Any]:
        """What it reads, as plain JSON."""
        kind = type(self.value).__name__.lower()
        return {"topic": self.topic, "value": kind, "columns": _columns(self.schema)}


@dataclass(frozen=True)
class FrameSource:
    """Rows that the caller brings as Polars frames: for tests, files and other engines."""

    schema: pl.Schema

    def definition(self) -> dict[str, Any]:
        """What it reads, as plain JSON."""
        return {"columns": _columns(self.schema)}


def _columns(schema: pl.Schema) -> dict[str, str]:
    return {name: str(dtype) for name, dtype in schema.items()}
