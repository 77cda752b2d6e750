"""`streamgauge demo`: complete examples on a real broker."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from ..ending import at_once
from ..registry import APPS, app_of


class DemoEngine(StrEnum):
    """Where apps run."""

    local = "local"
    spark = "spark"
    mixed = "mixed"


Seconds = Annotated[float, typer.Option(metavar="SECONDS", min=5, help="How long messages come.")]
Seed = Annotated[int, typer.Option(metavar="NUMBER", help="Another number makes up other messages.")]
Port = Annotated[int, typer.Option(min=0, max=65_535, help="Where the page is; 0 is a free port.")]
Json = Annotated[bool, typer.Option("--json", help="Print what was found as one JSON object.")]


def apps(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[APP]...", help=f"{', '.join(APPS)}; all of them unless named."),
    ] = None,
    engine: Annotated[
        DemoEngine, typer.Option(help="The standalone consumer, Spark, or mixed: the first app on Spark.")
    ] = DemoEngine.local,
    seconds: Seconds = 90.0,
    seed: Seed = 0,
    port: Port = 8055,
    as_json: Json = False,
) -> None:
    """The apps on messages that are made up as they would come, on one page in your browser.

    Starts a Kafka broker, sends some hours of each field's messages at once and then live ones, runs the apps
    on them, and serves their page. Things happen in the messages; at the end you see whether all were told,
    and every estimate beside the exact figure. Ctrl-C stops all of it.

        streamgauge demo apps

        streamgauge demo apps iot --seconds 600

        streamgauge demo apps trending iot --engine mixed
    """
    with at_once():
        from .running import Demo, run

    asked = [app_of(name) for name in dict.fromkeys(names or APPS)]
    on_spark = {"local": 0, "spark": len(asked), "mixed": 1}[engine.value]
    engines = {app.name: "spark" if at < on_spark else "local" for at, app in enumerate(asked)}
    run(Demo(asked, engines, seconds, seed, port), as_json)
