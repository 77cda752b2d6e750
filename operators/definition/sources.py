"""Where a stream's rows come from, and which columns they have when they arrive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import polars as pl

from ..formats.decode import Decoded, Decoder
from ..formats.failures import why
from ..formats.message_columns import need_headers, types_of, with_message
from ..formats.messages import Messages
from ..kafka.secrets import Settings
from .decoders import decoder_definition
from .text import type_text


@dataclass(frozen=True)
class KafkaSource:
    """The messages of a topic, their values decoded.

    `config` goes to librdkafka as it stands: security, timeouts, anything. Neither it nor the address is part
    of what the stream computes. Its secrets are in no repr. `message` maps columns to the parts of a message
    beside its value that they hold (`message_columns`); `corrupt` says what to do where a broker's bytes are
    broken. Raises `TypeError` for a decoder with parameters that can't be written down (`decoders`).
    """

    topic: str
    value: Decoder
    bootstrap_servers: str = "localhost:9092"
    config: Mapping[str, Any] = field(default_factory=dict)
    message: Mapping[str, str] = field(default_factory=dict)
    corrupt: Literal["stop", "skip"] = "stop"

    def __post_init__(self) -> None:
        object.__setattr__(self, "config", Settings(self.config))
        decoder_definition(self.value)

    @property
    def schema(self) -> pl.Schema:
        """The columns of its rows."""
        return pl.Schema({**self.value.schema, **types_of(self.message)})

    @property
    def reads_headers(self) -> bool:
        """Whether its rows need the messages' headers."""
        return need_headers(self.message)

    @property
    def settings(self) -> Settings:
        """librdkafka's settings for every client that has to do with it, the address among them."""
        return Settings({"bootstrap.servers": self.bootstrap_servers, **self.config})

    def decode(self, messages: Messages) -> Decoded:
        """The rows of a batch of messages. Raises what a decoder of the user's fails with."""
        decoded = self.value.decode(messages).checked(len(messages), self.value.schema)
        return with_message(decoded, messages, self.message) if self.message else decoded

    def decoded(self, messages: Messages) -> Iterator[tuple[Messages, Decoded]]:
        """The messages in order, in as few parts as the decoder doesn't fail on, and the rows of each.

        A message on which it fails by itself is refused, with its error.
        """
        try:
            found = self.decode(messages)
        except BaseException as error:
            reason = why(error)
        else:
            yield messages, found
            return
        n = len(messages)
        if n > 1:
            for half in np.array_split(np.arange(n), 2):
                yield from self.decoded(messages.select(half))
            return
        nothing = pl.DataFrame(schema=self.schema)
        first = np.zeros(1, np.int64)
        yield messages, Decoded(nothing, first[:0], first, [f"the decoder failed: {reason}"])

    def definition(self) -> dict[str, Any]:
        """What it reads, as plain JSON."""
        told = decoder_definition(self.value)
        found = {"topic": self.topic, "value": told, "columns": _columns(self.schema)}
        return {**found, "message": dict(self.message)} if self.message else found


@dataclass(frozen=True)
class FrameSource:
    """Rows that the caller brings as Polars frames: for tests, files and other engines."""

    schema: pl.Schema

    def definition(self) -> dict[str, Any]:
        """What it reads, as plain JSON."""
        return {"columns": _columns(self.schema)}


def _columns(schema: pl.Schema) -> dict[str, str]:
    return {name: type_text(dtype) for name, dtype in schema.items()}
