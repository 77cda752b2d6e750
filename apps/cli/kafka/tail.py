"""`streamgauge kafka tail`: the messages of a topic, decoded."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ....operators.rendering.names import visible_name
from ....operators.watching.terminal import write_line
from ...ending import at_once, in_order
from ..settings import Config, ConfigFile, Servers, kafka_settings

if TYPE_CHECKING:
    from ...topics.message_reading import Span


def tail(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="Topic to read.")],
    bootstrap_servers: Servers = "localhost:9092",
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Continue with new messages until Ctrl-C.")
    ] = False,
    offset: Annotated[
        str | None,
        typer.Option(
            metavar="POSITION",
            help="earliest, latest, an offset, or a time (UTC); default: the last few.",
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", "-n", metavar="NUMBER", min=0, help="Maximum number of messages; 10 without --offset."
        ),
    ] = None,
    partition: Annotated[
        list[int] | None, typer.Option(metavar="NUMBER", help="Read only this partition. Repeatable.")
    ] = None,
    schema: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Avro schema of values without a schema id.")
    ] = None,
    registry: Annotated[
        str | None, typer.Option(metavar="URL", help="Schema registry of the values.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per message.")] = False,
    config: Config = None,
    config_file: ConfigFile = None,
) -> None:
    """Print a topic's messages, decoded, with keys and headers.

    Each has its time, partition and offset. JSON, Avro (with `--registry` or `--schema`) and text are
    decoded; tables of sketches and the deltas of a table topic are summarised; other values are shown in
    hexadecimal. Only committed messages are read, and no group is joined. Messages are in order within a
    partition. The exit code is 1 if no broker answers or the topic doesn't exist.

        streamgauge kafka tail posts

        streamgauge kafka tail posts --follow --offset latest --json | jq .value.user

        streamgauge kafka tail orders --offset 2026-06-01T12:00 -n 100 --registry http://localhost:8081

        streamgauge kafka tail posts.dead-letters --offset earliest
    """
    with at_once():
        from ...topics.decoded import MessageDecoding, decoded_line
        from ...topics.message_reading import TopicReading

    settings = kafka_settings(bootstrap_servers, config, config_file)
    if schema is not None and registry is not None:
        raise ValueError(
            "--schema is for values without a schema id, --registry for values with one; pass only one of "
            "them"
        )
    decoding = MessageDecoding(schema, registry)
    line = decoded_line if as_json else _as_line
    with in_order() as stack, suppress(KeyboardInterrupt):
        reading = TopicReading(settings, topic, partition)
        stack.callback(reading.close)
        span = reading.span(offset, limit)
        try:
            for message in _messages(reading, span, follow, limit):
                write_line(line(decoding.of(message)), flush=follow)
        except BrokenPipeError:
            # The reader of our output has seen enough; Python would complain once more at its end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _messages(reading: Any, span: Span, follow: bool, n: int | None) -> Iterator[Any]:
    """The last `n` of a span that has no given start, in the order of time; else its first `n`."""
    if span.last is not None:
        messages = sorted(reading.until(span), key=lambda message: message.timestamp()[1])
        yield from messages[len(messages) - span.last :] if span.last else ()
        if follow:
            yield from reading.on()
        return
    left = n
    for message in reading.until(span):
        if left == 0:
            return
        yield message
        left = None if left is None else left - 1
    if follow:
        for message in reading.on():
            if left == 0:
                return
            yield message
            left = None if left is None else left - 1


def _as_line(message: dict[str, Any]) -> str:
    """A message on a line: what a person looks for first comes first."""
    value = message["value"]
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if message["form"] == "tombstone":
        text = "(no value)"
    elif message["form"] not in ("json", "text", "avro"):
        text = f"{message['form']} {text}"
    key = message["key"]
    parts = [message["timestamp"] or "-", f"{message['topic']}[{message['partition']}]@{message['offset']}"]
    key = key if isinstance(key, str) else json.dumps(key, ensure_ascii=False)
    parts.append("-" if message["key"] is None else visible_name(key))
    parts.append(text if text.strip() else visible_name(text))
    headers = " ".join(f"{visible_name(name)}={value}" for name, value in message["headers"])
    return "  ".join(parts) + (f"  [{headers}]" if headers and message["form"] != "delta" else "")
