"""The command line's root: `streamgauge`. Each subcommand is a file of its own and loads what it needs."""

from __future__ import annotations

import logging
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ...operators.watching.logs import LogFormat, log_to
from ...operators.watching.terminal import LogFormatter, write_line
from ...sketches.core.version import VERSION
from .alerts.candidates import app as supernova
from .alerts.outlets import app as alerts
from .archive import archive
from .bench import bench
from .demo import apps, scenarios, trending
from .env.cache import cache
from .env.dashboard import app as grafana
from .env.pack import pack
from .env.warm import warm
from .ingest import ingest
from .inspect import inspect
from .kafka.cluster import app as kafka
from .kafka.groups import app as groups
from .kafka.tail import tail
from .kafka.topics import topics
from .query import query
from .replay import replay
from .run import run
from .serve import serve
from .size import size
from .sketch import sketch
from .sql import sql


class _Ordered(TyperGroup):
    """Commands in the order in which a newcomer needs them."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [
            "demo",
            "run",
            "sketch",
            "kafka",
            "topics",
            "tail",
            "replay",
            "ingest",
            "archive",
            "sql",
            "serve",
            "query",
            "inspect",
            "warm",
            "cache",
            "pack",
            "size",
            "groups",
            "alerts",
            "grafana",
            "supernova",
            "bench",
        ]


app = typer.Typer(
    name="streamgauge",
    cls=_Ordered,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="""Approximate analytics for streams that never end.

    How many distinct values, which are the most frequent, how are they distributed, show me a fair sample: in
    bounded memory, with stated error bounds, over files, on Spark and straight off Kafka.

        # the demo: Kafka, five apps on live messages, and their page
        streamgauge demo apps

        # a social stream of a thousand posts per second, on Spark
        streamgauge demo trending --engine spark

        # a built-in app on a recording or on your topic
        streamgauge run iot --input readings.csv

        # distinct users, top tags and latencies of files; needs no broker
        streamgauge sketch posts.parquet --distinct user --top-k tag --quantiles ms

        # a broker to try your own streams on
        streamgauge kafka start --port 9092

        # replay a recording into a topic, sixty times faster, and watch it
        streamgauge replay posts.jsonl --topic posts --speed 60x
        streamgauge tail posts --follow

        # follow log files into a topic, exactly once
        streamgauge ingest tail "/var/log/nginx/access.log*" --to access

        # archive a topic as Parquet files, and send it again
        streamgauge archive posts --to archive --once
        streamgauge replay archive --topic posts-again --speed max

        # run SQL statements on a broker
        streamgauge sql -e "SHOW TOPICS"

        # query a table of sketches that a stream wrote
        streamgauge query trades --every 1h

        # serve the table of a running stream over HTTP
        streamgauge serve --group by-minute
    """,
)

demo = typer.Typer(
    name="demo", help="Complete examples, on a Kafka broker started for you.", no_args_is_help=True
)
demo.command("apps")(apps)
demo.command("scenarios")(scenarios)
demo.command("trending")(trending)
app.add_typer(demo)
app.add_typer(kafka)
app.add_typer(groups)
app.add_typer(alerts)
app.add_typer(grafana)
app.add_typer(supernova)
app.command()(topics)
app.command()(tail)
app.command()(replay)
app.command()(ingest)
app.command()(archive)
app.command()(run)
app.command()(sketch)
app.command()(sql)
app.command()(serve)
app.command()(query)
app.command()(inspect)
app.command()(warm)
app.command()(cache)
app.command()(pack)
app.command()(size)
app.command()(bench)


def _version(requested: bool) -> None:
    if requested:
        write_line(f"streamgauge {VERSION}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    log_format: Annotated[
        LogFormat | None,
        typer.Option(help="Format of log lines on standard error: text or JSON."),
    ] = None,
) -> None:
    """Options of the root."""
    if log_format is not None:
        log_to(format=log_format)
    elif logging.lastResort is not None:
        # Warnings of a program without handlers come by this one.
        logging.lastResort.setFormatter(LogFormatter())


def main() -> None:
    """Run the command line. What the user can fix is one line on stderr and exit code 1, not a traceback."""
    try:
        app()
    except KeyboardInterrupt:
        write_line("stopped", sys.stderr)
        sys.exit(130)
    except Exception as error:
        if not _is_for_the_user(error):
            raise
        write_line(f"error: {error}", sys.stderr)
        sys.exit(1)


def _is_for_the_user(error: Exception) -> bool:
    """Whether the message says what is wrong and what to do: our own do, and those about files and Kafka."""
    own = type(error).__module__.startswith(__package__.split(".")[0] + ".")
    kafka = type(error).__module__ == "cimpl"
    return own or kafka or isinstance(error, (OSError, ValueError))
