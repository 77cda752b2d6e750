"""`streamgauge demo trending`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ..ending import at_once


class Engine(StrEnum):
    """Where the stream runs."""

    spark = "spark"
    local = "local"


def trending(
    engine: Annotated[Engine, typer.Option(help="Spark, or the standalone consumer.")] = Engine.spark,
    seconds: Annotated[
        float, typer.Option(metavar="SECONDS", min=1, help="How long to stream; a recording may end earlier.")
    ] = 30.0,
    rate: Annotated[
        float, typer.Option(metavar="POSTS", min=1, help="Posts a second to generate, on average.")
    ] = 20_000.0,
    input: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Replay a recording instead: Bluesky Jetstream, Twitter v1.1 or v2 JSON, plain or .gz.",
        ),
    ] = None,
    speed: Annotated[
        float,
        typer.Option(metavar="TIMES", min=0, help="Replay the recording so many times faster; 0 is at once."),
    ] = 1.0,
    seed: Annotated[int, typer.Option(metavar="NUMBER", help="Another number generates other posts.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as one JSON object.")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the broker up and print its address.")] = False,
) -> None:
    """Trending tags of a social stream, live in the terminal, then checked against exact answers.

    Starts a Kafka broker, replays posts into it, counts them with sketches in windows of ten seconds, and
    ends by itself with a summary: every estimate, its bounds, the exact figure. Ctrl-C stops all of it.

        streamgauge demo trending

        streamgauge demo trending --engine local --seconds 60 --rate 100000

        streamgauge demo trending --input jetstream.jsonl --speed 10

        streamgauge demo trending --json | jq .all_inside_bounds

        streamgauge demo trending --engine local --keep
    """
    with at_once():
        from .demo import Options, run

    run(Options(engine.value, seconds, rate, input, speed, seed, as_json, keep))
