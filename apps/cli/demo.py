"""`streamgauge demo`: complete examples on a real broker."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from ..ending import at_once
from ..registry import APPS, app_of
from .run import RunEngine


class DemoEngine(StrEnum):
    """Where apps run."""

    local = "local"
    spark = "spark"
    mixed = "mixed"


Seconds = Annotated[float, typer.Option(metavar="SECONDS", min=5, help="Duration of the generated messages.")]
Seed = Annotated[int, typer.Option(metavar="NUMBER", help="Seed of the generated messages.")]
Port = Annotated[
    int, typer.Option(metavar="PORT", min=0, max=65_535, help="Port of the page; 0 picks a free one.")
]
Json = Annotated[bool, typer.Option("--json", help="Print the results as one JSON object.")]
Details = Annotated[bool, typer.Option("--details", help="Show every answer at the end, not only a summary.")]


def apps(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="APP", help=f"{', '.join(APPS)}; all of them unless named."),
    ] = None,
    engine: Annotated[
        DemoEngine, typer.Option(help="The standalone consumer, Spark, or mixed: the first app on Spark.")
    ] = DemoEngine.local,
    seconds: Seconds = 90.0,
    seed: Seed = 0,
    port: Port = 8055,
    as_json: Json = False,
    details: Details = False,
) -> None:
    """Run the apps on live messages, with one page in your browser.

    Starts a Kafka broker, sends a few hours of messages for each app and then live ones, runs the apps on
    them, and serves their page. The logs app reads a file that an agent tails. The messages contain
    incidents; at the end you see which alerts were raised and why, whether any incident was missed, and how
    many estimates lie inside their bounds. With --details, every answer is shown beside the exact figure.
    Ctrl-C stops everything.

        streamgauge demo apps

        streamgauge demo apps iot --seconds 600

        streamgauge demo apps trending iot --engine mixed
    """
    with at_once():
        from ..demo.demo_run import Demo, run

    chosen = [app_of(name) for name in dict.fromkeys(names or APPS)]
    if silent := [app.name for app in chosen if app.example is None]:
        raise ValueError(f"{silent[0]!r} must have example messages to be in a demo, got an app without any")
    on_spark = {"local": 0, "spark": len(chosen), "mixed": 1}[engine.value]
    engines = {app.name: "spark" if at < on_spark else "local" for at, app in enumerate(chosen)}
    run(Demo(chosen, engines, seconds, seed, port), as_json, details)


def scenarios(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SCENARIO",
            help="Scenarios or fields: social, logs, finance, astronomy, things; default: all.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Run scenarios: common questions with definitions that answer them.

    Each scenario has a stream, rules and generated messages in which the incident happens once. Scenarios run
    in this process, without a broker; a single one is shown with its definition. The exit code is 1 if a
    result is wrong.

        streamgauge demo scenarios

        streamgauge demo scenarios memory-leak

        streamgauge demo scenarios things --json | jq '.[].alerts'
    """
    with at_once():
        from ..scenarios.view import show

    if not show(names or [], as_json):
        raise typer.Exit(1)


def trending(
    engine: Annotated[RunEngine, typer.Option(help="The standalone consumer, or Spark.")] = RunEngine.local,
    seconds: Seconds = 60.0,
    rate: Annotated[
        float, typer.Option(metavar="NUMBER", min=1, help="Posts per second to generate, on average.")
    ] = 1_000.0,
    seed: Seed = 0,
    port: Port = 8055,
    as_json: Json = False,
    details: Details = False,
) -> None:
    """Run the app for social streams under load, with its page.

    Starts a Kafka broker and generates posts whose rate follows the rhythm of a day, with bursts and with
    repeated, late and malformed posts. Runs the app on them, and ends with every estimate beside the exact
    figure. Ctrl-C stops everything. To replay a recording, use `streamgauge run trending --input FILE`.

        streamgauge demo trending

        streamgauge demo trending --seconds 600 --rate 3000

        streamgauge demo trending --engine spark

        streamgauge demo trending --json | jq .trending.all_inside_bounds
    """
    with at_once():
        from dataclasses import replace

        from ..demo.demo_run import Demo, run
        from ..trending.example import under_load

    app = replace(app_of("trending"), example=under_load(rate, seconds))
    run(Demo([app], {app.name: engine.value}, seconds, seed, port), as_json, details)
