"""Where a stream's rows come from, and which columns they have when they arrive."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ...sketches.core.lazy import np, pl
from ..formats.decode import Decoded, Decoder
from ..formats.failures import why
from ..formats.message_columns import need_headers, types_of, with_message
from ..formats.messages import Messages
from ..formats.reasons import preceded
from ..formats.retryable_error import Unavailable
from ..formats.tombstones import Tombstones, beside, decode_key, decode_value
from ..secrets import Settings
from .decoders import decoder_definition
from .expression_text import type_text


@dataclass(frozen=True)
class KafkaSource:
    """The messages of some topics, decoded. `topics` are names and patterns (`topic_patterns`).

    `config` goes to librdkafka unchanged: security, timeouts, anything. Neither it nor the address is part of
    what the stream computes, nor is `archive`, the folder or URL of an archive that is read in place of
    brokers. The repr shows no secrets. `message` maps column names to the parts of a message beside its value
    (`message_columns`); `corrupt` decides what happens if a broker's bytes are damaged, `tombstones` what
    happens to messages without a value (`formats.tombstones`). `key` decodes the messages' keys into columns
    beside the value's. Raises `TypeError` for a decoder whose parameters have no JSON form (`decoders`).
    """

    topics: tuple[str, ...]
    value: Decoder
    bootstrap_servers: str = "localhost:9092"
    config: Mapping[str, Any] = field(default_factory=dict)
    message: Mapping[str, str] = field(default_factory=dict)
    corrupt: Literal["stop", "skip"] = "stop"
    key: Decoder | None = None
    tombstones: Tombstones = "refuse"
    archive: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "config", Settings(self.config))
        for decoder in self.decoders:
            decoder_definition(decoder)

    @property
    def decoders(self) -> tuple[Decoder, ...]:
        """The decoder of the values, and that of the keys if there is one."""
        return (self.value,) if self.key is None else (self.value, self.key)

    @property
    def topic(self) -> str:
        """What it reads, in words: the topic's name, or all names and patterns."""
        return ", ".join(self.topics)

    @property
    def schema(self) -> pl.Schema:
        """The columns of its rows."""
        decoded = {name: kind for decoder in self.decoders for name, kind in decoder.schema.items()}
        return pl.Schema({**decoded, **types_of(self.message)})

    @property
    def reads_headers(self) -> bool:
        """Whether its rows need the messages' headers."""
        return need_headers(self.message)

    @property
    def members(self) -> dict[str, Any]:
        """The value's columns that a JSON message must name; empty for other formats."""
        return dict(getattr(self.value, "members", {}))

    @property
    def settings(self) -> Settings:
        """librdkafka's settings for every client of this source, including the address."""
        return Settings({"bootstrap.servers": self.bootstrap_servers, **self.config})

    def decode(self, messages: Messages) -> Decoded:
        """Decode a batch of messages into rows. Raises whatever a user's decoder raises."""
        decoded = decode_value(self.value, messages, self.tombstones)
        if self.key is not None:
            decoded = beside(decoded, decode_key(self.key, messages), len(messages))
        return with_message(decoded, messages, self.message) if self.message else decoded

    def decoded(
        self, messages: Messages, wait: Callable[[Unavailable], None] | None = None
    ) -> Iterator[tuple[Messages, Decoded]]:
        """The messages in order, in as few parts as the decoder succeeds on, with the rows of each.

        A message on which it fails alone is refused with its error. If something that the decoder needs is
        unreachable, `wait` is called before each retry; without it `Unavailable` is raised.
        """
        while True:
            try:
                decoded = self.decode(messages)
            except Unavailable as error:
                if wait is None or not error.passing:
                    raise
                wait(error)
            except BaseException as error:
                reason = why(error)
                break
            else:
                yield messages, decoded
                return
        n = len(messages)
        if n > 1:
            for half in np.array_split(np.arange(n), 2):
                yield from self.decoded(messages.select(half), wait)
            return
        nothing = pl.DataFrame(schema=self.schema)
        first = np.zeros(1, np.int64)
        yield messages, Decoded(nothing, first[:0], first, [preceded("the decoder failed: ", reason)])

    def definition(self) -> dict[str, Any]:
        """What it reads, as plain JSON."""
        value = decoder_definition(self.value)
        topic = self.topics[0] if len(self.topics) == 1 else list(self.topics)
        fields = {"topic": topic, "value": value, "columns": _columns(self.schema)}
        fields |= {} if self.key is None else {"key": decoder_definition(self.key)}
        fields |= {} if self.tombstones == "refuse" else {"tombstones": self.tombstones}
        return {**fields, "message": dict(self.message)} if self.message else fields


@dataclass(frozen=True)
class FrameSource:
    """Rows that the caller supplies as Polars frames: for tests, files and other engines."""

    schema: pl.Schema
    data: Any = field(default=None, repr=False, compare=False)
    """The frames or files that the stream was created from, if any; not part of what it computes."""

    def definition(self) -> dict[str, Any]:
        """What it reads, as plain JSON."""
        return {"columns": _columns(self.schema)}


def _columns(schema: pl.Schema) -> dict[str, str]:
    return {name: type_text(dtype) for name, dtype in schema.items()}
