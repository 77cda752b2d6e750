"""The command line's root: `streamgauge`. Each subcommand is a file of its own and loads what it needs."""

from __future__ import annotations

import logging
import sys
from typing import Annotated

import typer

from ...operators.watching.logs import LogFormat, log_to
from ...operators.watching.terminal import LogFormatter, write_line
from ...sketches.core.version import VERSION
from .alerts.command import app as alerts
from .archive import archive
from .demo import apps, scenarios, trending
from .env.command import app as env
from .ingest import ingest
from .kafka.command import app as kafka
from .moved import CommandLine
from .query import query
from .replay import replay
from .run import run
from .serve import serve
from .size import size
from .sketch import sketch
from .sql import sql

_BEGIN, _MOVE = "Start here", "Bring data into Kafka, store it, send it again"
_ASK, _OPERATE = "Questions", "Kafka, alerts, machines"


class _Program(CommandLine):
    names = (
        *("demo", "run", "sketch"),
        *("ingest", "archive", "replay"),
        *("sql", "query", "serve"),
        *("kafka", "alerts", "size", "env"),
    )


app = typer.Typer(
    name="streamgauge",
    cls=_Program,
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
        streamgauge kafka tail posts --follow

        # follow log files into a topic, exactly once
        streamgauge ingest tail "/var/log/nginx/access.log*" --topic access

        # archive a topic as Parquet files, and send it again
        streamgauge archive posts --output archive --once
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
    name="demo",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="""Run complete examples, on a Kafka broker started for you.

    Kafka is downloaded the first time; only Java 17 has to be installed. Ctrl-C ends everything that a demo
    has started.

        # five apps on live messages, and their page
        streamgauge demo apps

        # one app under load, on Spark
        streamgauge demo trending --engine spark

        # 28 common questions, each with a short definition; needs no broker
        streamgauge demo scenarios
    """,
)
demo.command()(apps)
demo.command()(trending)
demo.command()(scenarios)
app.add_typer(demo, rich_help_panel=_BEGIN)
app.command(rich_help_panel=_BEGIN)(run)
app.command(rich_help_panel=_BEGIN)(sketch)
app.command(rich_help_panel=_MOVE)(ingest)
app.command(rich_help_panel=_MOVE)(archive)
app.command(rich_help_panel=_MOVE)(replay)
app.command(rich_help_panel=_ASK)(sql)
app.command(rich_help_panel=_ASK)(query)
app.command(rich_help_panel=_ASK)(serve)
app.add_typer(kafka, rich_help_panel=_OPERATE)
app.add_typer(alerts, rich_help_panel=_OPERATE)
app.command(rich_help_panel=_OPERATE)(size)
app.add_typer(env, rich_help_panel=_OPERATE)


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
