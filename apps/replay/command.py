"""`streamgauge replay`: files into a topic, at the speed at which they were recorded or any other."""

from __future__ import annotations

import sys
import time as wall
from pathlib import Path
from typing import Annotated

import typer

from ...operators.watching.terminal import write_json, write_line
from ..ending import at_once
from ..settings import Config, ConfigFile, Servers, kafka_settings
from .speed import Speed, faster


def replay(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Files of lines, plain or .gz; - is standard input."),
    ],
    topic: Annotated[str, typer.Option(metavar="NAME", help="Where they go; it is made unless it is there.")],
    bootstrap_servers: Servers = "localhost:9092",
    speed: Speed = "1x",
    time: Annotated[
        str | None,
        typer.Option(metavar="FIELD", help="Where lines of JSON hold their time; looked for unless named."),
    ] = None,
    key: Annotated[
        str | None, typer.Option(metavar="FIELD", help="The field that the messages' keys are made of.")
    ] = None,
    partitions: Annotated[int, typer.Option(min=1, help="Of a topic that is made.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Say at the end what was sent as JSON.")] = False,
    config: Config = None,
    config_file: ConfigFile = None,
) -> None:
    """Send the lines of files to a topic, each a message, unchanged and in their order.

    Lines of JSON are sent when their own times say, the first at once, and have these as their timestamps:
    text in ISO 8601, or a number since 1970 whose unit shows in its size. A path leads to a nested field,
    `commit.at`. Lines that hold no time go with the one before. It ends with 1 if a file can't be read, no
    broker answers or messages are lost.

        streamgauge replay posts.jsonl --topic posts

        streamgauge replay monday.jsonl.gz tuesday.jsonl.gz --topic trades --speed 60x --key symbol

        streamgauge replay access.log --topic logs --speed max

        zcat *.gz | streamgauge replay - --topic events --time header.ts --speed max --json
    """
    with at_once():
        from ...operators.kafka.topics import admin, ensure_topic
        from ..topics.command import known_topics
        from .lines import TIMES, Lines, time_in
        from .sender import send

    times = faster(speed)
    for file in files:
        if file != Path("-") and not file.is_file():
            raise ValueError(f"{file}: there is no such file")
    time_field = time or time_in(files[0])
    if time_field is None and times:
        raise ValueError(
            f"{files[0]}: none of {', '.join(TIMES)} holds a time in all of its first lines; name the field "
            "by --time, or send all at once by --speed max"
        )
    settings = kafka_settings(bootstrap_servers, config, config_file)
    client = admin(settings)
    known_topics(client)
    ensure_topic(client, topic, partitions)
    begun = wall.monotonic()
    source = Lines(files, time_field, key, times)
    sent = send(source, topic, settings["bootstrap.servers"], pace=times > 0, config=settings)
    seconds = wall.monotonic() - begun
    if as_json:
        write_json({"topic": topic, "sent": sent, "seconds": round(seconds, 3), "time": time_field})
    else:
        by = f" by {time_field}" if time_field and times else ""
        write_line(f"{sent:,} messages to {topic}{by} in {seconds:.1f} s", sys.stderr)
