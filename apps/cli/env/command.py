"""The command `streamgauge env`: what a machine needs besides the package."""

from __future__ import annotations

import typer

from .cache import cache
from .dashboard import dashboard
from .pack import pack
from .warm import warm

app = typer.Typer(
    name="env",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="""Prepare machines: kernels, caches, Spark executors, dashboards.

    None of this is required on your own machine: kernels are compiled, and Kafka's jars are downloaded, when
    they are first needed.

        # in an image: compile all kernels, so no process waits for the compiler
        streamgauge env warm

        # where compiled kernels and downloads are stored
        streamgauge env cache

        # an archive for Spark's executors, which then need nothing installed
        streamgauge env pack environment.tar.gz

        # a dashboard of the metrics of runs
        streamgauge env dashboard > runs.json
    """,
)
app.command()(warm)
app.command()(cache)
app.command()(pack)
app.command()(dashboard)
