"""`streamgauge groups`: what can be done with a group while none of its runs goes on."""

from __future__ import annotations

from typing import Annotated

import typer

from ...operators.watching.terminal import write_line
from .settings import Config, ConfigFile, Servers, kafka_settings

app = typer.Typer(
    name="groups",
    no_args_is_help=True,
    help="""Consumer groups of streams.

        streamgauge groups reset by-minute --to earliest
    """,
)


@app.callback()
def groups() -> None:
    """Consumer groups of streams."""


@app.command()
def reset(
    group: Annotated[str, typer.Argument(metavar="GROUP", help="The group_id of its runs.")],
    to: Annotated[
        str,
        typer.Option(metavar="PLACE", help="earliest, latest, an offset, or a time: 2026-06-01T12:00, UTC."),
    ],
    bootstrap_servers: Servers = "localhost:9092",
    topic: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Input topics, if the group never committed offsets."),
    ] = None,
    config: Config = None,
    config_file: ConfigFile = None,
) -> None:
    """Have the next run of a group count again from another place, once all its runs have ended.

    Open windows and what was counted and not handed over are dropped. Windows that were handed over stay, and
    are emitted again if their rows are read again.

        streamgauge groups reset by-minute --to earliest

        streamgauge groups reset by-minute --to 2026-06-01T12:00 --bootstrap-servers broker-1:9092
    """
    from ...operators.consumer.group import reset as resetting
    from ...operators.table.stored import moment

    settings = kafka_settings(bootstrap_servers, config, config_file)
    address = settings.pop("bootstrap.servers")
    place: resetting.Place
    if to in ("earliest", "latest"):
        place = "earliest" if to == "earliest" else "latest"
    elif to.isdigit():
        place = int(to)
    else:
        time = moment(to)
        assert time is not None
        place = time
    report = resetting.reset(group, place, bootstrap_servers=address, config=settings, topics=topic or ())
    for where, offset in sorted(report.items()):
        write_line(f"{where}: {offset}")
