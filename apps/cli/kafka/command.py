"""The command `streamgauge kafka`: topics and consumer groups of any cluster, and brokers for experiments."""

from __future__ import annotations

import typer

from ..ordered import Ordered
from .cluster import start, status, stop
from .groups import app as groups
from .tail import tail
from .topics import topics

_BROKERS = "Brokers on this machine"


class _Kafka(Ordered):
    names = ("topics", "tail", "groups", "start", "status", "stop")


app = typer.Typer(
    name="kafka",
    cls=_Kafka,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="""Look into topics and groups; start a broker for experiments.

    `topics`, `tail` and `groups` work on any cluster (`--bootstrap-servers`). `start` runs real brokers in
    the background on this machine, until `stop`.

        # topics with their sizes and contents, and the newest messages of one
        streamgauge kafka topics
        streamgauge kafka tail posts --follow

        # is a group keeping up, and what holds its windows open?
        streamgauge kafka groups list
        streamgauge kafka groups show by-minute

        # a broker on this machine, and a cluster of three beside it
        streamgauge kafka start --port 9092 --data ~/kafka
        streamgauge kafka start --name shop --brokers 3
        streamgauge kafka stop --name shop
    """,
)
app.add_typer(groups)
app.command()(topics)
app.command()(tail)
app.command(rich_help_panel=_BROKERS)(start)
app.command(rich_help_panel=_BROKERS)(status)
app.command(rich_help_panel=_BROKERS)(stop)
