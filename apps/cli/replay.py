"""`streamgauge replay`: files into a topic, at the speed at which they were recorded or any other."""

from __future__ import annotations

import sys
import time as wall
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...operators.rendering.names import amount
from ...operators.watching.terminal import write_json, write_line
from ..dev.replay.speed import Speed, faster
from ..ending import at_once
from .settings import Config, ConfigFile, Servers, kafka_settings

if TYPE_CHECKING:
    from ..recordings.batch import Source


def replay(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE", help="Files of lines, plain or .gz; - is stdin; or an archive."),
    ],
    topic: Annotated[
        str,
        typer.Option(metavar="TOPIC", help="Topic to send to, created if missing."),
    ],
    bootstrap_servers: Servers = "localhost:9092",
    speed: Speed = "1x",
    time: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Time field of JSON lines; detected by default."),
    ] = None,
    key_field: Annotated[
        str | None, typer.Option(metavar="NAME", help="Field to use as message key.")
    ] = None,
    partitions: Annotated[
        int | None, typer.Option(metavar="NUMBER", min=1, help="Partitions, if the topic has to be created.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the account as JSON.")] = False,
    config: Config = None,
    config_file: ConfigFile = None,
) -> None:
    """Send the lines of files, or an archive, to a topic, in order.

    Messages are sent unchanged. Lines of JSON are sent in the rhythm of their own times, beginning
    immediately, and get these times as timestamps. A time is text in ISO 8601, or a number since 1970, whose
    size reveals its unit. Name a nested field by its path: `commit.at`. Lines without a time are sent
    together with the line before. The exit code is 1 if a file can't be read, no broker answers or messages
    are lost.

    An archive (`streamgauge archive`), named by its path or URL, is sent with its keys, headers and
    timestamps, each message to its original partition. PATH/topic=NAME selects one of several topics.

        streamgauge replay posts.jsonl --topic posts

        streamgauge replay monday.jsonl.gz tuesday.jsonl.gz --topic trades --speed 60x --key-field symbol

        streamgauge replay access.log --topic logs --speed max

        zcat *.gz | streamgauge replay - --topic events --time header.ts --speed max --json

        streamgauge replay archive --topic posts-again --speed 60x
    """
    with at_once():
        from ...operators.kafka.topics import admin, ensure_topic, partitions_of
        from ..dev.replay.sender import send
        from ..topics.known import known_topics

    times = faster(speed)
    settings = kafka_settings(bootstrap_servers, config, config_file)
    source, time_field, needed = _source(files, time, key_field, times)
    client = admin(settings)
    known_topics(client)
    ensure_topic(client, topic, partitions or needed)
    if (there := partitions_of(client, topic)) < needed:
        raise ValueError(
            f"the archived topic had {needed} partitions, and {topic!r} has {there}: messages can't return "
            "to their partitions; name a topic that doesn't exist yet, or one with more partitions"
        )
    begun = wall.monotonic()
    sent = send(source, topic, settings["bootstrap.servers"], pace=times > 0, config=settings)
    seconds = wall.monotonic() - begun
    if as_json:
        write_json({"topic": topic, "sent": sent, "seconds": round(seconds, 3), "time": time_field})
    else:
        by = f" by {time_field}" if time_field and times else ""
        write_line(f"{amount(sent, 'message')} to {topic}{by} in {seconds:.1f} s", sys.stderr)


def _source(
    files: list[str], time: str | None, key: str | None, times: float
) -> tuple[Source, str | None, int]:
    """What is sent, the field that its times are in, and how many partitions it needs."""
    with at_once():
        from ..recordings.lines import TIMES, Lines, time_in

    if len(files) == 1 and ("://" in files[0] or Path(files[0]).is_dir()):
        from ...operators.archive.recording import Recording
        from ..recordings.archived import Archived

        for option, given in (("--time", time), ("--key-field", key)):
            if given is not None:
                raise ValueError(
                    f"{option} is for files of lines; archived messages have a time and a key already; "
                    "leave it out"
                )
        recording = Recording.open(files[0])
        return Archived(recording, times), "timestamp", recording.n_partitions
    paths = [Path(file) for file in files]
    for path in paths:
        if path != Path("-") and not path.is_file():
            also = "; an archive must be named alone" if path.is_dir() else ""
            raise ValueError(f"{path}: there is no such file{also}")
    time_field = time or time_in(paths[0])
    if time_field is None and times:
        raise ValueError(
            f"{paths[0]}: none of {', '.join(TIMES)} holds a time in all of its first lines; name the field "
            "by --time, or send all at once by --speed max"
        )
    return Lines(paths, time_field, key, times), time_field, 1
