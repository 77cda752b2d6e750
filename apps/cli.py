"""The command line's root: `streamgauge`. Each subcommand is a file of its own and loads what it needs."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from .. import __version__
from ..operators.watching.logs import LogFormat, log_to
from .bench import bench
from .demo.command import apps
from .groups.command import app as groups
from .kafka.command import app as kafka
from .replay.command import replay
from .running.command import run
from .serve import serve
from .tables.inspect import inspect
from .tables.query import query
from .topics.command import topics
from .topics.tail import tail
from .trending.command import trending
from .warm import warm


class _Ordered(TyperGroup):
    """Commands in the order in which a newcomer needs them."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [
            "demo",
            "run",
            "kafka",
            "topics",
            "tail",
            "replay",
            "serve",
            "query",
            "inspect",
            "warm",
            "groups",
            "bench",
        ]


app = typer.Typer(
    name="streamgauge",
    cls=_Ordered,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="""Approximate analytics for streams that never end.

    How many different, which are the most frequent, how are they spread, show me a fair sample: in bounded
    memory, with stated error bounds, on Spark and straight off Kafka.

        # see it work: Kafka, Spark, a social stream
        streamgauge demo trending

        # the same with the standalone consumer
        streamgauge demo trending --engine local

        # what a field wants to be told, from a recording or from your topic
        streamgauge run iot --input readings.csv

        # a broker to try your own streams on
        streamgauge kafka start --port 9092

        # a recording into a topic, sixty times faster, and what is in it now
        streamgauge replay posts.jsonl --topic posts --speed 60x
        streamgauge tail posts --follow

        # ask a table of sketches that a stream wrote
        streamgauge query trades --every 1h

        # answer questions over HTTP from the table of a running stream
        streamgauge serve --group by-minute
    """,
)

demo = typer.Typer(
    name="demo", help="Complete examples on a real Kafka broker, started for you.", no_args_is_help=True
)
demo.command("apps")(apps)
demo.command("trending")(trending)
app.add_typer(demo)
app.add_typer(kafka)
app.add_typer(groups)
app.command()(topics)
app.command()(tail)
app.command()(replay)
app.command()(run)
app.command()(serve)
app.command()(query)
app.command()(inspect)
app.command()(warm)
app.command()(bench)


def _version(asked: bool) -> None:
    if asked:
        print(f"streamgauge {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    log_format: Annotated[
        LogFormat | None,
        typer.Option(help="Write what is logged to standard error, as text or as lines of JSON."),
    ] = None,
) -> None:
    """Options of the root."""
    if log_format is not None:
        log_to(format=log_format)


def main() -> None:
    """Run the command line. What the user can fix is one line on stderr and exit code 1, not a traceback."""
    try:
        app()
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        sys.exit(130)
    except Exception as error:
        if not _is_for_the_user(error):
            raise
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)


def _is_for_the_user(error: Exception) -> bool:
    """Whether the message says what is wrong and what to do: our own do, and those about files and Kafka."""
    own = type(error).__module__.startswith(__package__.rpartition(".")[0] + ".")
    kafka = type(error).__module__ == "cimpl"
    return own or kafka or isinstance(error, (OSError, ValueError))
