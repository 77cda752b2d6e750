"""`streamgauge run`: an app on a recording or on a topic of yours."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ..ending import at_once


class RunEngine(StrEnum):
    """Where an app runs."""

    local = "local"
    spark = "spark"


def run(
    app: Annotated[str, typer.Argument(metavar="APP", help="iot", show_default=False)],
    input: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", help="Replay a recording through a Kafka broker of its own. Repeatable."
        ),
    ] = None,
    format: Annotated[
        str | None, typer.Option(metavar="FORMAT", help="The messages' format; found out unless given.")
    ] = None,
    engine: Annotated[RunEngine, typer.Option(help="The standalone consumer, or Spark.")] = RunEngine.local,
    rules: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Rules in TOML, in place of the app's own (docs/rules.md)."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting of the app or format. Repeatable."),
    ] = None,
    speed: Annotated[
        float,
        typer.Option(metavar="TIMES", min=0, help="Replay so many times faster than recorded; 0 is at once."),
    ] = 0.0,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object; live, one line an alert.")
    ] = False,
    bootstrap_servers: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Run live, on the topic of these brokers.")
    ] = None,
    topic: Annotated[str | None, typer.Option(metavar="NAME", help="The topic to read live.")] = None,
    group: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The live run's consumer group: it goes on where it ended."),
    ] = None,
    alerts_topic: Annotated[
        str | None, typer.Option(metavar="NAME", help="Send alerts to this topic, too, each exactly once.")
    ] = None,
    alerts_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Append alerts to this file, as lines of JSON.")
    ] = None,
    webhook: Annotated[
        str | None, typer.Option(metavar="URL", help="POST alerts to this address, as JSON.")
    ] = None,
    stale: Annotated[
        str | None,
        typer.Option(metavar="LENGTH", help="Live: tell when no message has come for so long, such as 10m."),
    ] = None,
) -> None:
    """Run an app: what its field wants to be told, and why.

    With `--input` a recording is sent through a real broker, which is started for it; the app's answers are
    checked against exact ones, and everything that fired is listed. With `--bootstrap-servers` and `--topic`
    the app runs on a topic of yours until Ctrl-C, and goes on where it ended: its rules' state lies in Kafka.

        streamgauge run iot --input readings.csv --set time=timestamp --set limit=78 --set hysteresis=2

        streamgauge run iot --input readings.csv --rules rules.toml --json | jq .alerts

        streamgauge run iot --input readings.csv --engine spark

        streamgauge run iot --bootstrap-servers localhost:9092 --topic sensors --alerts-topic alerts
    """
    with at_once():
        from ..registry import app_of
        from .asked import Job
        from .outlets import outlets
        from .watching import watch

    given = _settings(settings or [])
    live = bootstrap_servers is not None or topic is not None
    if live == bool(input):
        raise ValueError("name a recording by --input FILE, or a topic by --bootstrap-servers and --topic")
    for path in input or ():
        if not path.is_file():
            raise ValueError(f"{path}: there is no such file")
    job = Job.of(app_of(app), format, given, rules, input[0] if input else None)
    to = outlets(alerts_topic, alerts_file, webhook)
    if input:
        from .replaying import AppReplay, replay

        replay(AppReplay(job, input, engine.value, speed, to), as_json)
        return
    if bootstrap_servers is None or topic is None:
        raise ValueError("a live run needs both --bootstrap-servers HOST:PORT and --topic NAME")
    if engine is RunEngine.spark or speed:
        raise ValueError("a live run has no --speed, and runs as a consumer; on Spark use spark_udafs.alerts")
    watch(job, topic, bootstrap_servers, group or f"{app}-{topic}", to, stale, as_json)


def _settings(given: list[str]) -> dict[str, str]:
    found = {}
    for one in given:
        name, sign, value = one.partition("=")
        if not sign or not name:
            raise ValueError(f"--set {one}: write NAME=VALUE")
        found[name] = value
    return found
